//! The engine against real sockets, a real store and virtual time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod clocks;
mod connector;
mod delivering;
mod failing;
mod faulty;
mod live;
mod outage;
mod pacing;
mod recovery;
mod shutdown;
mod sink;
mod states;
mod tls;
mod wire;
mod world;
