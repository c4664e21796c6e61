//! The files of a round, where they lie, and what they hash to. Contents are read by the judges themselves.

use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The files of a retry round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryFiles {
    /// `retry.env`.
    pub contract: PathBuf,
    /// `endpoints.tsv`.
    pub endpoints: PathBuf,
    /// `attempts.tsv`.
    pub attempts: PathBuf,
}

impl RetryFiles {
    /// The files by their usual names in a directory.
    #[must_use]
    pub fn in_dir(dir: &Path) -> Self {
        Self {
            contract: dir.join("retry.env"),
            endpoints: dir.join("endpoints.tsv"),
            attempts: dir.join("attempts.tsv"),
        }
    }
}

/// The files of a queue round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueFiles {
    /// `queue.env`.
    pub contract: PathBuf,
    /// `channels.json`.
    pub channels: PathBuf,
    /// `queue.jsonl`.
    pub queue: PathBuf,
}

impl QueueFiles {
    /// The files by their usual names in a directory.
    #[must_use]
    pub fn in_dir(dir: &Path) -> Self {
        Self {
            contract: dir.join("queue.env"),
            channels: dir.join("channels.json"),
            queue: dir.join("queue.jsonl"),
        }
    }
}

/// The SHA-256 of bytes, in lower-case hex.
#[must_use]
pub fn sha256_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 of a file, in lower-case hex; `None` where it cannot be read. Reads in pieces: a ledger may be large.
#[must_use]
pub fn sha256_of_file(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Some(hex(&hasher.finalize())),
            Ok(n) => hasher.update(&piece[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there, is a directory, or its disk failed.
    #[error("{}: cannot be read, expected a readable file", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no text.
    #[error("{}:{line}: found {what}, expected UTF-8 text", .path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The first line that is wrong, from 1.
        line: usize,
        /// What stands there.
        what: &'static str,
    },
}

/// A file as UTF-8 text without NUL, whole. SQL takes no other text, so this much is checked before it.
pub(crate) fn read_text(path: &Path) -> Result<String, ReadError> {
    let bytes = std::fs::read(path).map_err(|source| ReadError::Io {
        path: path.to_owned(),
        source,
    })?;
    let wrong = |at: usize, what| ReadError::Text {
        path: path.to_owned(),
        line: 1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count(),
        what,
    };
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        return Err(wrong(at, "a NUL"));
    }
    match std::str::from_utf8(&bytes) {
        Ok(_) => {}
        Err(error) => return Err(wrong(error.valid_up_to(), "bytes that are not UTF-8")),
    }
    String::from_utf8(bytes).map_err(|error| ReadError::Text {
        path: path.to_owned(),
        line: 1,
        what: if error.as_bytes().is_empty() {
            "nothing"
        } else {
            "bytes that are not UTF-8"
        },
    })
}
