//! The one loop that touches the world: claim, send, settle, commit; target guard and signing.

pub mod clock;
pub mod connector;
pub mod guard;
pub mod header;
pub mod sign;
pub mod target;
pub mod tls;
pub mod wire;
