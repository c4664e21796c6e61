//! The engine against real sockets, a real store and virtual time.

mod connector;
mod sink;
mod tls;
mod wire;
