//! SQLite stores in folders of their own.

use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::Arc;
use store::conformance::Factory;
use store::sqlite::{Options, SqliteStore};

/// A folder with a store file.
pub(crate) struct Sqlite {
    folder: tempfile::TempDir,
}

impl Sqlite {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("duehook.db")
    }

    pub(crate) fn store(&self) -> Arc<SqliteStore> {
        SqliteStore::open(self.path(), Options::default()).expect("open")
    }
}

#[async_trait]
impl Factory for Sqlite {
    async fn open(&self) -> Arc<dyn store::Store> {
        self.store()
    }
}

pub(crate) fn factory() -> Sqlite {
    Sqlite {
        folder: tempfile::tempdir().expect("a folder"),
    }
}
