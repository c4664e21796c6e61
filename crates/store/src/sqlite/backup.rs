//! A copy of the store as of one moment, taken while it runs: checked, synced and then named, so that a file with the
//! backup's name is a whole backup. To restore one, put it in the store's place while nothing runs on it; its start
//! then finds what a crash at that moment would have left.

use super::SqliteStore;
use crate::StoreError;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file is there already.
    #[error("{} exists: name another file, or remove it first", path.display())]
    Exists {
        /// The file asked for.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot write the backup {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its answer.
        #[source]
        source: io::Error,
    },
    /// SQLite could not read the one or write the other.
    #[error("cannot copy the store to {}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Its answer.
        #[source]
        source: rusqlite::Error,
    },
    /// The copy was checked and is not sound: so is the store, or the disk of the copy.
    #[error(
        "the copy of the store is damaged: {found}; check the disks, and the store with `PRAGMA integrity_check`"
    )]
    Damaged {
        /// The first finding.
        found: String,
    },
    /// The store is closed, or its reader could not be opened.
    #[error("cannot read the store")]
    Store(
        /// Why.
        #[source]
        StoreError,
    ),
}

/// Told how many pages are copied, of how many.
pub type BackupProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Pages copied between two words of progress: 32 MiB.
const STEP: std::ffi::c_int = 4096;

impl SqliteStore {
    /// Copies the store into a file that does not exist yet. Works on a store opened to read, beside its owner.
    ///
    /// # Errors
    ///
    /// See [`BackupError`]; the file does not exist then.
    pub async fn backup(&self, to: &Path, progress: BackupProgress) -> Result<(), BackupError> {
        let to = to.to_owned();
        let copied = self
            .readers
            .read_long(move |conn| Ok(copy(conn, &to, &*progress)))
            .await;
        copied.map_err(BackupError::Store)?
    }
}

/// Removed unless the copy got its name.
struct Partial(Option<PathBuf>);

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            for end in ["", "-wal", "-shm", "-journal"] {
                let mut name = path.as_os_str().to_owned();
                name.push(end);
                let _ = std::fs::remove_file(PathBuf::from(name));
            }
        }
    }
}

fn copy(conn: &Connection, to: &Path, progress: &dyn Fn(u64, u64)) -> Result<(), BackupError> {
    let io = |source| BackupError::Io {
        path: to.to_owned(),
        source,
    };
    let sqlite = |source| BackupError::Sqlite {
        path: to.to_owned(),
        source,
    };
    if to.exists() {
        return Err(BackupError::Exists { path: to.to_owned() });
    }
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    let path = PathBuf::from(name);
    // For its owner's eyes alone: it holds signing secrets.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(io)?;
    let mut partial = Partial(Some(path.clone()));
    copy_pages(conn, &path, progress).map_err(sqlite)?;
    check(&path, to)?;
    File::open(&path).and_then(|file| file.sync_all()).map_err(io)?;
    // Unlike a rename this never takes an existing file's place.
    std::fs::hard_link(&path, to).map_err(io)?;
    drop(partial.0.take().map(std::fs::remove_file));
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))
        .and_then(|folder| folder.sync_all())
        .map_err(io)
}

/// One read transaction over the whole copy makes it one moment, and keeps the copy from starting over when the
/// writer commits.
fn copy_pages(conn: &Connection, path: &Path, progress: &dyn Fn(u64, u64)) -> rusqlite::Result<()> {
    let moment = conn.unchecked_transaction()?;
    moment.query_row("SELECT seq FROM meta", [], |row| row.get::<_, i64>(0))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut target = Connection::open_with_flags(path, flags)?;
    let backup = Backup::new(conn, &mut target)?;
    loop {
        let step = backup.step(STEP)?;
        let told = backup.progress();
        let total = u64::try_from(told.pagecount).unwrap_or(0);
        let rest = u64::try_from(told.remaining).unwrap_or(0);
        progress(total.saturating_sub(rest), total);
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            _ => {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(busy, None));
            }
        }
    }
    drop(backup);
    moment.finish()?;
    target.close().map_err(|(_, error)| error)
}

/// A copy that nobody read is a hope, not a backup.
fn check(path: &Path, to: &Path) -> Result<(), BackupError> {
    let sqlite = |source| BackupError::Sqlite {
        path: to.to_owned(),
        source,
    };
    let conn = Connection::open(path).map_err(sqlite)?;
    let found: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(sqlite)?;
    conn.close().map_err(|(_, error)| sqlite(error))?;
    if found == "ok" {
        Ok(())
    } else {
        Err(BackupError::Damaged { found })
    }
}
