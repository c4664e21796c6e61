//! The life of the node: up, signs of life, clock steps, down; and what a start finds of the run before it.

use super::codes::{self, int};
use super::fault::{Outcome, unavailable};
use super::registry::{Node, boot_key};
use super::writer::Work;
use crate::{Reading, Started, StoreError};
use contract::ledger::NodeEventKind;
use rusqlite::OptionalExtension;

/// The last sign of life.
struct Last {
    key: i64,
    boot: i64,
    wall: i64,
    mono: i64,
}

fn last(work: &Work<'_>, name: &str) -> Outcome<Option<Last>> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Last {
            key: row.get(0)?,
            boot: row.get(1)?,
            wall: row.get(2)?,
            mono: row.get(3)?,
        })
    };
    let sql = "SELECT key, boot, wall, mono FROM node WHERE name = ?";
    Ok(work
        .conn
        .prepare_cached(sql)?
        .query_row([name], read)
        .optional()?)
}

/// One node runs on this store (one owner a file): others that the last run left `up`, under whatever name, are down.
fn end_those_left_up(work: &mut Work<'_>) -> Outcome<bool> {
    let sql = "SELECT key, boot, wall, mono FROM node WHERE up = 1";
    let left = super::rows::all(&mut work.conn.prepare(sql)?, [], |row| {
        Ok(Last {
            key: row.get(0)?,
            boot: row.get(1)?,
            wall: row.get(2)?,
            mono: row.get(3)?,
        })
    })?;
    let crashed = !left.is_empty();
    for last in left {
        let event = Event {
            node: last.key,
            boot: last.boot,
            wall: last.wall,
            mono: last.mono,
            kind: NodeEventKind::Down,
            size_ms: 0,
        };
        write(work, &event)?;
        work.conn
            .prepare_cached("UPDATE node SET up = 0 WHERE key = ?")?
            .execute([last.key])?;
    }
    Ok(crashed)
}

/// What the start found, and the number of its boot.
pub(super) fn up(work: &mut Work<'_>, name: &str, boot_id: &str, now: &Reading) -> Outcome<(Started, i64)> {
    let boot = boot_key(work.conn, boot_id)?;
    let last = last(work, name)?;
    let (wall, mono) = (now.wall.as_unix_ms(), int(now.boot.as_ms()));
    let after_crash = end_those_left_up(work)?;
    let mut started = last.as_ref().map_or_else(Started::default, |last| Started {
        rebooted: last.boot != boot,
        after_crash: false,
        step_ms: if last.boot == boot {
            wall.saturating_sub(last.wall)
                .saturating_sub(mono.saturating_sub(last.mono))
        } else {
            0
        },
    });
    started.after_crash = after_crash;
    let key = match last {
        Some(last) => last.key,
        None => {
            work.conn
                .prepare("INSERT INTO node (name, boot, wall, mono, up) VALUES (?, ?, ?, ?, 1)")?
                .execute((name, boot, wall, mono))?;
            work.conn.last_insert_rowid()
        }
    };
    let event = Event {
        node: key,
        boot,
        wall,
        mono,
        kind: NodeEventKind::Up,
        size_ms: 0,
    };
    write(work, &event)?;
    live(work, &event, true)?;
    work.known.node = Some(Node { key, boot });
    Ok((started, boot))
}

struct Event {
    node: i64,
    boot: i64,
    wall: i64,
    mono: i64,
    kind: NodeEventKind,
    size_ms: i64,
}

fn write(work: &mut Work<'_>, event: &Event) -> Outcome<()> {
    let seq = work.next_seq();
    work.conn
        .prepare_cached(
            "INSERT INTO node_event (seq, node, at, boot, mono, event, size_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            seq,
            event.node,
            event.wall,
            event.boot,
            event.mono,
            codes::node_event(event.kind),
            event.size_ms,
        ))?;
    Ok(())
}

/// Writes the sign of life.
fn live(work: &Work<'_>, event: &Event, up: bool) -> Outcome<()> {
    work.conn
        .prepare_cached("UPDATE node SET boot = ?, wall = ?, mono = ?, up = ? WHERE key = ?")?
        .execute((event.boot, event.wall, event.mono, up, event.node))?;
    Ok(())
}

/// The running node, which must be the one that speaks.
fn running(work: &Work<'_>, name: &str) -> Outcome<Node> {
    let node = work
        .known
        .node
        .ok_or_else(|| unavailable("no node is up: `node_up` comes first"))?;
    match last(work, name)? {
        Some(last) if last.key == node.key => Ok(node),
        _ => Err(StoreError::NotFound {
            what: "running node",
            found: name.to_owned(),
        }
        .into()),
    }
}

pub(super) fn event(
    work: &mut Work<'_>,
    name: &str,
    kind: NodeEventKind,
    now: &Reading,
    size_ms: i64,
) -> Outcome<()> {
    let node = running(work, name)?;
    let event = Event {
        node: node.key,
        boot: node.boot,
        wall: now.wall.as_unix_ms(),
        mono: int(now.boot.as_ms()),
        kind,
        size_ms,
    };
    write(work, &event)?;
    live(work, &event, kind != NodeEventKind::Down)
}

pub(super) fn heartbeat(work: &Work<'_>, name: &str, now: &Reading) -> Outcome<()> {
    let node = running(work, name)?;
    let event = Event {
        node: node.key,
        boot: node.boot,
        wall: now.wall.as_unix_ms(),
        mono: int(now.boot.as_ms()),
        kind: NodeEventKind::Up,
        size_ms: 0,
    };
    live(work, &event, true)
}
