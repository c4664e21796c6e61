//! The schema and its changes: SQL files in order, each applied once, all that are missing in one transaction, so
//! that a start killed half-way leaves the old schema whole. A file written by a newer program is refused.

use super::open::OpenError;
use rusqlite::{Connection, TransactionBehavior};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;

/// One change of the schema.
pub(super) struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

/// All of them, in order.
pub(super) const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "first",
    sql: include_str!("migrations/0001_first.sql"),
}];

impl Migration {
    fn digest(&self) -> String {
        Sha256::digest(self.sql)
            .iter()
            .fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            })
    }
}

/// What a check of the applied ones against ours found.
fn pending<'a>(conn: &Connection, path: &Path, ours: &'a [Migration]) -> Result<&'a [Migration], OpenError> {
    let unfit = |reason: String| OpenError::Unfit {
        path: path.to_owned(),
        reason,
    };
    let read = || -> rusqlite::Result<Vec<(i64, String, String)>> {
        if !conn.table_exists(None, "schema_migrations")? {
            return Ok(Vec::new());
        }
        conn.prepare("SELECT version, name, sha256 FROM schema_migrations ORDER BY version")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect()
    };
    let applied = read().map_err(|source| OpenError::Sqlite {
        path: path.to_owned(),
        source,
    })?;
    for (at, (version, name, sha256)) in applied.iter().enumerate() {
        let Some(known) = ours.get(at) else {
            return Err(unfit(format!(
                "its schema is version {version} ({name}), this program knows up to {}: it was written by a newer duehook; use that one, or a backup made before the upgrade",
                ours.len()
            )));
        };
        if known.version != *version || known.digest() != *sha256 {
            return Err(unfit(format!(
                "migration {version} ({name}) was applied with the digest {sha256}, this program has {}: it was written by another build; use that one",
                known.digest()
            )));
        }
    }
    Ok(&ours[applied.len()..])
}

/// Brings the schema to the newest version, or changes nothing.
pub(super) fn run(conn: &mut Connection, path: &Path, ours: &[Migration]) -> Result<(), OpenError> {
    let sqlite = |source| OpenError::Sqlite {
        path: path.to_owned(),
        source,
    };
    let tx = conn
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(sqlite)?;
    for migration in pending(&tx, path, ours)? {
        apply(&tx, migration).map_err(sqlite)?;
        tracing::info!(
            version = migration.version,
            name = migration.name,
            "schema migrated"
        );
    }
    tx.commit().map_err(sqlite)
}

fn apply(conn: &Connection, migration: &Migration) -> rusqlite::Result<()> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_migrations (
             version INTEGER PRIMARY KEY,
             name TEXT NOT NULL,
             sha256 TEXT NOT NULL,
             applied_at INTEGER NOT NULL
         ) STRICT",
    )?;
    conn.execute_batch(migration.sql)?;
    conn.execute(
        "INSERT INTO schema_migrations (version, name, sha256, applied_at)
         VALUES (?, ?, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER))",
        (migration.version, migration.name, migration.digest()),
    )?;
    Ok(())
}

/// For readers, who change nothing: the schema must be the newest.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    match pending(conn, path, MIGRATIONS)? {
        [] => Ok(()),
        [first, ..] => Err(OpenError::Unfit {
            path: path.to_owned(),
            reason: format!(
                "its schema lacks version {} ({}): start `duehook serve` on it once, which migrates it",
                first.version, first.name
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Migration = Migration {
        version: 1,
        name: "one",
        sql: "CREATE TABLE a (x INTEGER)",
    };
    const SECOND: Migration = Migration {
        version: 2,
        name: "two",
        sql: "CREATE TABLE b (x INTEGER)",
    };
    const BROKEN: Migration = Migration {
        version: 2,
        name: "two",
        sql: "CREATE TABLE b (x INTEGER); INSERT INTO nowhere VALUES (1)",
    };

    fn tables(conn: &Connection) -> Vec<String> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
        let mut statement = conn.prepare(sql).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn each_migration_is_applied_once() {
        let mut conn = Connection::open_in_memory().unwrap();
        for _ in 0..2 {
            run(&mut conn, Path::new("x"), &[FIRST]).unwrap();
        }
        run(&mut conn, Path::new("x"), &[FIRST, SECOND]).unwrap();
        assert_eq!(tables(&conn), ["a", "b", "schema_migrations"]);
        let applied: i64 = conn
            .query_row("SELECT min(applied_at) FROM schema_migrations", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert!(applied > 1_600_000_000_000, "milliseconds: {applied}");
    }

    #[test]
    fn a_migration_that_fails_half_way_leaves_the_old_schema_whole() {
        let mut conn = Connection::open_in_memory().unwrap();
        run(&mut conn, Path::new("x"), &[FIRST]).unwrap();
        assert!(run(&mut conn, Path::new("x"), &[FIRST, BROKEN]).is_err());
        assert_eq!(tables(&conn), ["a", "schema_migrations"]);
        run(&mut conn, Path::new("x"), &[FIRST, SECOND]).unwrap();
    }

    #[test]
    fn a_newer_schema_is_refused_and_says_what_to_do() {
        let mut conn = Connection::open_in_memory().unwrap();
        run(&mut conn, Path::new("x"), &[FIRST, SECOND]).unwrap();
        let error = run(&mut conn, Path::new("x"), &[FIRST]).unwrap_err().to_string();
        assert!(
            error.contains("version 2 (two), this program knows up to 1"),
            "{error}"
        );
    }

    #[test]
    fn a_migration_that_was_changed_since_is_refused() {
        let mut conn = Connection::open_in_memory().unwrap();
        run(&mut conn, Path::new("x"), &[FIRST, SECOND]).unwrap();
        assert!(run(&mut conn, Path::new("x"), &[FIRST, BROKEN]).is_err());
    }
}
