//! The HTTP API over real sockets, a real store and a real engine.

mod applications;
mod contracts;
mod deliveries;
mod endpoints;
mod harness;
mod limits;
mod messages;
mod pages;
mod refusals;
mod tokens;
