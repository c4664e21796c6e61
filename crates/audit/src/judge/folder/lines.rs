//! Lines of a file, read and hashed in one pass.

use crate::facts::{FactsError, quoted_bytes};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Between a file and its reader.
pub(super) const BUFFER: usize = 256 * 1024;
/// A contract's canonical text has at most 4 MiB; escapes can double it.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// Hashes what is read through it.
pub(super) struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R> Hashing<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
        }
    }

    /// Of everything read so far: 64 lower-case hex digits.
    pub(super) fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

pub(super) struct Lines {
    file: BufReader<Hashing<File>>,
    line: u64,
    bytes: Vec<u8>,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, FactsError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| FactsError::io(&name, error))?;
        Ok(Self {
            file: BufReader::with_capacity(BUFFER, Hashing::new(file)),
            line: 0,
            bytes: Vec::new(),
        })
    }

    /// To be asked at the end of the file.
    pub(super) fn sha256(&self) -> String {
        self.file.get_ref().sha256()
    }

    /// The next line and its number, without its end (LF or CRLF).
    pub(super) fn next(&mut self, name: &str) -> Result<Option<(u64, &str)>, FactsError> {
        self.bytes.clear();
        self.line += 1;
        let mut limited = (&mut self.file).take(MAX_LINE_BYTES);
        let read = limited
            .read_until(b'\n', &mut self.bytes)
            .map_err(|error| FactsError::io(name, error))?;
        if read == 0 {
            return Ok(None);
        }
        let wrong = |found: String, right: &str| Err(FactsError::new(name, Some(self.line), found, right));
        let bytes = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        if bytes.len() == self.bytes.len() && self.bytes.len() as u64 == MAX_LINE_BYTES {
            return wrong("a line of 16 MiB and more".to_owned(), "one record a line");
        }
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let bytes = match bytes.strip_prefix("\u{feff}".as_bytes()) {
            Some(rest) if self.line == 1 => rest,
            _ => bytes,
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some((self.line, text))),
            Err(_) => wrong(format!("{}, which is no UTF-8", quoted_bytes(bytes)), "UTF-8"),
        }
    }
}
