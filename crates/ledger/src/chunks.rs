//! A file in chunks that end at line ends, so that each can be read on its own.

use crate::error::FactsError;
use crate::table::without_cr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Small enough that a chunk stays in the processor's own cache from reading to folding.
const CHUNK: usize = 256 * 1024;
/// A longer line is no line of a ledger but another file by mistake.
pub(crate) const MAX_LINE: usize = 64 * 1024;

/// Cuts a file into chunks of whole lines. Together they hold every byte of it, in order.
pub(crate) struct Chunks<R> {
    source: R,
    name: String,
    carry: Vec<u8>,
    ticket: u64,
    done: bool,
}

impl Chunks<File> {
    pub(crate) fn open(path: &Path, name: &str) -> Result<Self, FactsError> {
        let unreadable = |error| FactsError::unreadable(name, error);
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        Ok(Self::of(file, name))
    }
}

impl<R: Read> Chunks<R> {
    pub(crate) fn of(source: R, name: &str) -> Self {
        Self {
            source,
            name: name.to_owned(),
            carry: Vec::new(),
            ticket: 0,
            done: false,
        }
    }

    /// Fills `buffer` with the next chunk and gives its number, from 0; none at the end. A chunk ends with a line end
    /// unless it is the last. An error counts its line from the start of the chunk, and is the last one.
    pub(crate) fn next(&mut self, buffer: &mut Vec<u8>) -> Option<(u64, Result<(), FactsError>)> {
        buffer.clear();
        if self.done {
            return None;
        }
        let filled = self.fill(buffer);
        self.done |= filled.is_err();
        if filled.is_ok() && buffer.is_empty() {
            return None;
        }
        let ticket = self.ticket;
        self.ticket += 1;
        Some((ticket, filled))
    }

    fn fill(&mut self, buffer: &mut Vec<u8>) -> Result<(), FactsError> {
        buffer.reserve(CHUNK);
        buffer.append(&mut self.carry);
        let room = u64::try_from(CHUNK.saturating_sub(buffer.len())).unwrap_or(0);
        let read = self.source.by_ref().take(room).read_to_end(buffer);
        read.map_err(|error| FactsError::unreadable(&self.name, error))?;
        if buffer.len() < CHUNK {
            self.done = true;
            return Ok(());
        }
        let end = memchr::memrchr(b'\n', buffer).map_or(0, |newline| newline + 1);
        self.carry
            .extend_from_slice(buffer.get(end..).unwrap_or_default());
        buffer.truncate(end);
        if self.carry.len() <= MAX_LINE {
            return Ok(());
        }
        let found = format!("a line of more than {MAX_LINE} bytes");
        let error = FactsError::new(&self.name, found, "end each line; is this the right file?");
        Err(error.at(lines_in(buffer) + 1, without_cr(&self.carry)))
    }
}

/// Line ends in it.
pub(crate) fn lines_in(bytes: &[u8]) -> u64 {
    u64::try_from(memchr::memchr_iter(b'\n', bytes).count()).unwrap_or(u64::MAX)
}
