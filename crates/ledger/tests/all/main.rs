//! The readers of facts against plain ones, at the edges of chunks and of memory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attempts;
mod small_files;
