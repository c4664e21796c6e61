//! Retention: takes away messages whose deliveries are all final and old, whole, or their payloads alone, in steps
//! that each are one short commit. What is taken away stays counted. What is not final is never touched (I3).
//!
//! By whole messages, since a message without all the deliveries it was due would read as a lost one to every judge.

use super::codes::{self, size, state};
use super::fault::Outcome;
use super::rows;
use super::writer::Work;
use crate::{EndpointKey, MessageKey, Result, Retain, Retained, Tombstone, Tombstones};
use contract::Instant;
use rusqlite::Connection;

/// A message that is old enough to be looked at.
struct Old {
    key: i64,
    deliveries: i64,
    has_payload: bool,
}

/// A delivery of it, final.
struct Ended {
    key: i64,
    endpoint: i64,
    state: i64,
}

pub(super) fn retain(
    work: &mut Work<'_>,
    what: Retain,
    before: Instant,
    after: Option<MessageKey>,
    limit: usize,
) -> Outcome<Retained> {
    let mut done = Retained::default();
    for old in candidates(work, before, after, limit, &mut done.next)? {
        let Some(ended) = ended(work, &old, before)? else {
            continue;
        };
        match what {
            Retain::Payloads => {
                if old.has_payload {
                    empty(work, &old, &ended)?;
                    done.messages += 1;
                }
            }
            Retain::Ledger => {
                remove(work, &old, &ended, &mut done)?;
                done.messages += 1;
            }
        }
        work.rows += 1 + ended.len();
    }
    Ok(done)
}

/// Messages by age, until one is too young: keys follow the order of acceptance. `next` becomes the last one looked
/// at, where there may be more behind it.
fn candidates(
    work: &Work<'_>,
    before: Instant,
    after: Option<MessageKey>,
    limit: usize,
    next: &mut Option<MessageKey>,
) -> Outcome<Vec<Old>> {
    let sql = "SELECT key, deliveries, payload IS NOT NULL, accepted_at FROM message
               WHERE key > ? ORDER BY key LIMIT ?";
    let mut statement = work.conn.prepare_cached(sql)?;
    let mut found = statement.query((after.map_or(0, |key| key.0), size(limit)))?;
    let mut old = Vec::new();
    while let Some(row) = found.next()? {
        if row.get::<_, i64>(3)? >= before.as_unix_ms() {
            *next = None;
            break;
        }
        let one = Old {
            key: row.get(0)?,
            deliveries: row.get(1)?,
            has_payload: row.get(2)?,
        };
        *next = Some(MessageKey(one.key));
        old.push(one);
    }
    if old.len() < limit {
        *next = None;
    }
    Ok(old)
}

/// A message's deliveries, if all of them ended before then and none has an attempt in flight.
fn ended(work: &Work<'_>, old: &Old, before: Instant) -> Outcome<Option<Vec<Ended>>> {
    let sql = "SELECT key, endpoint, state, closed_at,
                   EXISTS (SELECT 1 FROM attempt WHERE attempt.delivery = delivery.key AND attempt.outcome = 2)
               FROM delivery WHERE key BETWEEN ?1 + 1 AND ?1 + ?2
               UNION ALL
               SELECT key, endpoint, state, closed_at,
                   EXISTS (SELECT 1 FROM attempt WHERE attempt.delivery = delivery.key AND attempt.outcome = 2)
               FROM delivery WHERE resent = 1 AND message = ?1";
    let mut statement = work.conn.prepare_cached(sql)?;
    let mut found = statement.query((old.key, old.deliveries))?;
    let mut ended = Vec::new();
    while let Some(row) = found.next()? {
        let closed_at: Option<i64> = row.get(3)?;
        let in_flight: bool = row.get(4)?;
        if in_flight || closed_at.is_none_or(|at| at >= before.as_unix_ms()) {
            return Ok(None);
        }
        ended.push(Ended {
            key: row.get(0)?,
            endpoint: row.get(1)?,
            state: row.get(2)?,
        });
    }
    Ok(Some(ended))
}

/// Payload and answers go, the records stay.
fn empty(work: &Work<'_>, old: &Old, ended: &[Ended]) -> Outcome<()> {
    work.conn
        .prepare_cached("UPDATE message SET payload = NULL WHERE key = ?")?
        .execute([old.key])?;
    for delivery in ended {
        work.conn
            .prepare_cached("DELETE FROM response WHERE delivery = ?")?
            .execute([delivery.key])?;
    }
    Ok(())
}

fn remove(work: &mut Work<'_>, old: &Old, ended: &[Ended], done: &mut Retained) -> Outcome<()> {
    for delivery in ended {
        work.conn
            .prepare_cached("DELETE FROM response WHERE delivery = ?")?
            .execute([delivery.key])?;
        let attempts = work
            .conn
            .prepare_cached("DELETE FROM attempt WHERE delivery = ?")?
            .execute([delivery.key])?;
        work.conn
            .prepare_cached("DELETE FROM delivery WHERE key = ?")?
            .execute([delivery.key])?;
        count(work, delivery, attempts)?;
        done.deliveries += 1;
        done.attempts += codes::unsigned("attempts", size(attempts))?;
    }
    work.conn
        .prepare_cached("DELETE FROM idempotency WHERE message = ?")?
        .execute([old.key])?;
    work.conn
        .prepare_cached("DELETE FROM message WHERE key = ?")?
        .execute([old.key])?;
    work.conn
        .prepare_cached("UPDATE meta SET removed_messages = removed_messages + 1")?
        .execute([])?;
    Ok(())
}

/// Moves a delivery from the counts to its endpoint's tombstone.
fn count(work: &mut Work<'_>, delivery: &Ended, attempts: usize) -> Outcome<()> {
    let tally = &mut work.known.tally;
    let (succeeded, dead, cancelled) = match delivery.state {
        state::SUCCEEDED => (1, 0, 0),
        state::DEAD => (0, 1, 0),
        _ => (0, 0, 1),
    };
    tally.succeeded -= succeeded;
    tally.dead -= dead;
    tally.cancelled -= cancelled;
    let sql = "INSERT INTO tombstone (endpoint, succeeded, dead, cancelled, attempts) VALUES (?, ?, ?, ?, ?)
               ON CONFLICT (endpoint) DO UPDATE SET succeeded = succeeded + excluded.succeeded,
                   dead = dead + excluded.dead, cancelled = cancelled + excluded.cancelled,
                   attempts = attempts + excluded.attempts";
    work.conn.prepare_cached(sql)?.execute((
        delivery.endpoint,
        succeeded,
        dead,
        cancelled,
        size(attempts),
    ))?;
    Ok(())
}

pub(super) fn tombstones(conn: &Connection) -> Result<Tombstones> {
    // One moment for both.
    let moment = conn.unchecked_transaction()?;
    let messages: i64 = moment
        .prepare_cached("SELECT removed_messages FROM meta")?
        .query_row([], |row| row.get(0))?;
    let sql = "SELECT endpoint, succeeded, dead, cancelled, attempts FROM tombstone ORDER BY endpoint";
    let count = |row: &rusqlite::Row<'_>, at| codes::unsigned("a tombstone's count", row.get(at)?);
    let endpoints = rows::all(&mut *moment.prepare_cached(sql)?, [], |row| {
        Ok(Tombstone {
            endpoint: EndpointKey(row.get(0)?),
            succeeded: count(row, 1)?,
            dead: count(row, 2)?,
            cancelled: count(row, 3)?,
            attempts: count(row, 4)?,
        })
    })?;
    Ok(Tombstones {
        messages: codes::unsigned("removed_messages", messages)?,
        endpoints,
    })
}
