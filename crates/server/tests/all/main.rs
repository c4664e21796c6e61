//! The HTTP API over real sockets, a real store and a real engine.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod applications;
mod endpoints;
mod harness;
mod messages;
mod pages;
mod refusals;
