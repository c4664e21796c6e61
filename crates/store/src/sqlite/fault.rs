//! What SQLite's errors mean to a caller: wait (busy, disk full), or stop (an I/O error, damage). Nothing is retried
//! here: after a failed sync nobody can say what is on the disk, and only a restart reads it back from the log.

use crate::StoreError;
use rusqlite::{Error, ErrorCode, ffi};

/// Why a command or a whole commit did not happen.
#[derive(Debug)]
pub(super) enum Fault {
    /// The command's own: found before anything was written, so that its neighbours in the commit are safe.
    Store(StoreError),
    /// The database's: takes the whole commit with it.
    Sqlite(Error),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Sqlite(error) => error.fmt(f),
        }
    }
}

/// The result of a command before its commit.
pub(super) type Outcome<R> = Result<R, Fault>;

/// Why a whole commit failed, for each of its commands.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    reason: String,
    /// True when the store must not be written to again before a restart.
    pub(super) stop: bool,
}

impl Failure {
    pub(super) fn of(error: &Error) -> Self {
        Self {
            reason: told(error),
            stop: must_stop(error),
        }
    }

    pub(super) fn stopped(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            stop: true,
        }
    }

    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn to_error(&self) -> StoreError {
        if self.stop {
            StoreError::Corrupt {
                reason: self.reason.clone(),
                source: None,
            }
        } else {
            unavailable(self.reason.clone())
        }
    }
}

pub(super) fn unavailable(reason: impl Into<String>) -> StoreError {
    StoreError::Unavailable {
        reason: reason.into(),
        source: None,
    }
}

/// With the number that says which call failed: "disk I/O error" alone may be a read or a sync.
fn told(error: &Error) -> String {
    match error {
        Error::SqliteFailure(failure, _) => format!("{error} (SQLite code {})", failure.extended_code),
        _ => error.to_string(),
    }
}

/// An I/O error or damage: what was written cannot be known any more.
fn must_stop(error: &Error) -> bool {
    let Error::SqliteFailure(failure, _) = error else {
        return false;
    };
    match failure.code {
        // No room for the log's shared index: nothing was written, and it is tried anew with the next commit.
        ErrorCode::SystemIoFailure => !matches!(
            failure.extended_code,
            ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_SHMMAP
        ),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => true,
        _ => false,
    }
}

/// What a failed read means.
impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        if must_stop(&error) {
            return Self::Corrupt {
                reason: told(&error),
                source: Some(Box::new(error)),
            };
        }
        Self::Unavailable {
            reason: told(&error),
            source: Some(Box::new(error)),
        }
    }
}

/// True for a broken uniqueness: the one statement was undone, the transaction stands.
pub(super) fn is_taken(error: &Error) -> bool {
    matches!(error, Error::SqliteFailure(failure, _)
        if matches!(failure.extended_code, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(extended: std::ffi::c_int) -> Failure {
        Failure::of(&Error::SqliteFailure(ffi::Error::new(extended), None))
    }

    #[test]
    fn a_full_disk_is_an_outage_and_a_failed_sync_is_the_end() {
        for (code, stop) in [
            (ffi::SQLITE_FULL, false),
            (ffi::SQLITE_BUSY, false),
            (ffi::SQLITE_IOERR_SHMSIZE, false),
            (ffi::SQLITE_IOERR_FSYNC, true),
            (ffi::SQLITE_IOERR_WRITE, true),
            (ffi::SQLITE_IOERR_READ, true),
            (ffi::SQLITE_CORRUPT, true),
        ] {
            assert_eq!(failure(code).stop, stop, "{code}");
            let is_corrupt = matches!(failure(code).to_error(), StoreError::Corrupt { .. });
            assert_eq!(is_corrupt, stop, "{code}");
        }
    }
}
