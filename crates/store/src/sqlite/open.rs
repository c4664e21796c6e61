//! Opening a store file: one owner by a lock beside it, the settings that durability rests on set and read back,
//! and errors that say what was found and what to do. Leaves the schema to `migrate`.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How an owner runs its store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Commands that may wait for the writer before an accept is refused ([`crate::StoreError::Full`]).
    pub queue: usize,
    /// Commands that one commit gathers at most. Past a thousand or so a commit only gets slower.
    pub batch: usize,
    /// Connections that read at once.
    pub readers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue: 4096,
            batch: 1000,
            readers: 4,
        }
    }
}

/// Why a store file was not opened. The operator acts; the data is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process owns it.
    #[error(
        "{} is in use by another duehook (process {owner}): stop that one, or talk to it through its HTTP API; `audit`, `probe`, `explain` and `ledger export` work beside it",
        path.display()
    )]
    InUse {
        /// The store file.
        path: PathBuf,
        /// The process id found in the lock file.
        owner: String,
    },
    /// There is no such file, and it was opened to read.
    #[error("there is no store at {}: check the path of --store; `duehook serve` makes one", path.display())]
    Missing {
        /// The path asked for.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot open the store {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its answer.
        #[source]
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot open the store {}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Its answer.
        #[source]
        source: rusqlite::Error,
    },
    /// It is a database, but not one of ours, not one this program can read, or not set as durability needs.
    #[error("the store {} cannot be used: {reason}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What was found and what would be right.
        reason: String,
    },
}

/// `Dueh` in ASCII: marks our files, so that nobody's address book gets our tables.
const APPLICATION_ID: i64 = 0x4475_6568;
/// Messages of about a kilobyte: eight a page, and few pages on the way down.
const PAGE_SIZE: i64 = 8192;
/// A log longer than this is cut back when it starts over.
const WAL_KEPT_BYTES: i64 = 64 << 20;
/// How long a connection waits for another one's short lock (recovery, a checkpoint's end).
const BUSY: Duration = Duration::from_secs(5);
/// The writer's page cache, in KiB.
const WRITER_CACHE_KIB: i64 = 48 << 10;
/// A reader's.
const READER_CACHE_KIB: i64 = 8 << 10;
/// Statements kept prepared: more than there are.
const STATEMENTS: usize = 128;

/// Held as long as the store is open. The file stays: removing it would let a third process lock a new one.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub(super) fn take(store: &Path) -> Result<Self, OpenError> {
        let mut name = store.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let failed = |source| OpenError::Io {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        if rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut owner = String::new();
            let _ = (&mut file).take(32).read_to_string(&mut owner);
            let owner = owner.trim();
            return Err(OpenError::InUse {
                path: store.to_owned(),
                owner: if owner.is_empty() {
                    "unknown".to_owned()
                } else {
                    owner.to_owned()
                },
            });
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// The file's one name, so that two ways to write it meet at the same lock.
pub(super) fn canonical(path: &Path) -> Result<PathBuf, OpenError> {
    let failed = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    if path.exists() {
        return path.canonicalize().map_err(failed);
    }
    let name = path.file_name().ok_or_else(|| OpenError::Unfit {
        path: path.to_owned(),
        reason: "the path names no file: give one such as sqlite:duehook.db".to_owned(),
    })?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(parent
        .unwrap_or(Path::new("."))
        .canonicalize()
        .map_err(failed)?
        .join(name))
}

/// The writer's connection. Makes the file, for its owner's eyes alone (it holds signing secrets).
pub(super) fn writer(path: &Path) -> Result<Connection, OpenError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source,
        })?;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_CACHE_KIB)?;
    let sqlite = |source| OpenError::Sqlite {
        path: path.to_owned(),
        source,
    };
    refuse_foreign(&conn, path)?;
    conn.pragma_update(None, "page_size", PAGE_SIZE).map_err(sqlite)?;
    // Read back below, since a file system without shared memory answers `delete` and no error.
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
        .map_err(sqlite)?;
    conn.pragma_update(None, "synchronous", "full").map_err(sqlite)?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)
        .map_err(sqlite)?;
    conn.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES)
        .map_err(sqlite)?;
    conn.pragma_update(None, "foreign_keys", true).map_err(sqlite)?;
    let id: i64 = conn
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(sqlite)?;
    if id != APPLICATION_ID {
        conn.pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(sqlite)?;
    }
    // Closing is no commit: what is in the log stays there until somebody opens the file again.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(sqlite)?;
    check_settings(&conn, path)?;
    Ok(conn)
}

/// The checkpointing thread's connection. It waits only a moment for readers: the writer is held meanwhile.
pub(super) fn checkpointer(path: &Path) -> Result<Connection, OpenError> {
    let set = |conn: Connection| {
        conn.busy_timeout(Duration::from_millis(20))?;
        conn.pragma_update(None, "synchronous", "full")?;
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(conn)
    };
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, READER_CACHE_KIB)?;
    set(conn).map_err(|source| OpenError::Sqlite {
        path: path.to_owned(),
        source,
    })
}

/// Durability rests on these: what was asked for is read back, and anything else is refused.
fn check_settings(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let unfit = |reason: String| OpenError::Unfit {
        path: path.to_owned(),
        reason,
    };
    let sqlite = |source| OpenError::Sqlite {
        path: path.to_owned(),
        source,
    };
    let mode: String = conn
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(sqlite)?;
    if mode != "wal" {
        return Err(unfit(format!(
            "journal_mode is {mode}, expected wal: put the file on a local file system with shared memory"
        )));
    }
    for (pragma, want) in [
        ("synchronous", 2),
        ("page_size", PAGE_SIZE),
        ("foreign_keys", 1),
        ("wal_autocheckpoint", 0),
    ] {
        let found: i64 = conn
            .pragma_query_value(None, pragma, |row| row.get(0))
            .map_err(sqlite)?;
        if found != want {
            return Err(unfit(format!(
                "PRAGMA {pragma} is {found} after it was set, expected {want}"
            )));
        }
    }
    Ok(())
}

/// A database that holds tables and not our mark is somebody else's.
fn refuse_foreign(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let sqlite = |source| OpenError::Sqlite {
        path: path.to_owned(),
        source,
    };
    let id: i64 = conn
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(sqlite)?;
    let tables: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(sqlite)?;
    if tables > 0 && id != APPLICATION_ID {
        return Err(OpenError::Unfit {
            path: path.to_owned(),
            reason: format!(
                "it is an SQLite database of another program (application_id {id}, expected {APPLICATION_ID}): name another file"
            ),
        });
    }
    Ok(())
}

/// A reader beside the writer's connection, or beside another process.
pub(super) fn reader(path: &Path) -> Result<Connection, OpenError> {
    if !path.exists() {
        return Err(OpenError::Missing {
            path: path.to_owned(),
        });
    }
    let opened = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, READER_CACHE_KIB)
        .and_then(|conn| refuse_foreign(&conn, path).map(|()| conn));
    match opened {
        // A folder that cannot be written to (a read-only mount, somebody else's copy) has no room for the
        // shared memory. Without a log beside it the file is whole, and nobody can be writing to it here.
        Err(OpenError::Sqlite { source, .. }) if is_cannot_open(&source) && log_is_empty(path) => {
            let conn = connect_immutable(path)?;
            refuse_foreign(&conn, path)?;
            Ok(conn)
        }
        other => other,
    }
}

fn connect(path: &Path, flags: OpenFlags, cache_kib: i64) -> Result<Connection, OpenError> {
    let opened = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    settle_in(opened, path, cache_kib)
}

fn connect_immutable(path: &Path) -> Result<Connection, OpenError> {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    settle_in(Connection::open_with_flags(uri, flags), path, READER_CACHE_KIB)
}

fn settle_in(
    opened: rusqlite::Result<Connection>,
    path: &Path,
    cache_kib: i64,
) -> Result<Connection, OpenError> {
    let set = |conn: Connection| {
        conn.busy_timeout(BUSY)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        conn.pragma_update(None, "cache_size", -cache_kib)?;
        conn.pragma_update(None, "temp_store", "memory")?;
        Ok(conn)
    };
    opened.and_then(set).map_err(|source| OpenError::Sqlite {
        path: path.to_owned(),
        source,
    })
}

fn is_cannot_open(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly)
    )
}

fn log_is_empty(path: &Path) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    std::fs::metadata(name).map_or(true, |log| log.len() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_durability_rests_on_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let conn = writer(&path).unwrap();
        for (pragma, expected) in [
            ("synchronous", 2),
            ("page_size", 8192),
            ("foreign_keys", 1),
            ("wal_autocheckpoint", 0),
        ] {
            let found: i64 = conn.pragma_query_value(None, pragma, |row| row.get(0)).unwrap();
            assert_eq!(found, expected, "{pragma}");
        }
        let mode: String = conn
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn a_setting_that_did_not_take_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        for (pragma, value, named) in [
            (
                "synchronous",
                "normal",
                "PRAGMA synchronous is 1 after it was set, expected 2",
            ),
            ("foreign_keys", "off", "PRAGMA foreign_keys is 0"),
            ("wal_autocheckpoint", "1000", "PRAGMA wal_autocheckpoint is 1000"),
        ] {
            let conn = writer(&path).unwrap();
            conn.execute_batch(&format!("PRAGMA {pragma} = {value}")).unwrap();
            let error = check_settings(&conn, &path).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        let conn = Connection::open(folder.path().join("other.db")).unwrap();
        let error = check_settings(&conn, &path).unwrap_err().to_string();
        assert!(error.contains("journal_mode is delete, expected wal"), "{error}");
    }

    #[test]
    fn a_file_without_a_log_is_read_where_nothing_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b%?#.db");
        writer(&path)
            .unwrap()
            .execute_batch("CREATE TABLE t (x); PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        let conn = connect_immutable(&path).unwrap();
        let tables: i64 = conn
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
        assert!(log_is_empty(&path));
    }
}
