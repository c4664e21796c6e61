//! The one loop that touches the world: claim, send, settle, commit; target guard and signing.
