//! Due work, found by query: what both clocks allow now, when to look again, and what a crash left in flight.
//! A due time is a value here; the law that made it is the engine's.

use crate::sqlite::codes::{self, int, size};
use crate::sqlite::rows;
use crate::{Claimed, ContractKey, DeliveryKey, Due, EndpointKey, Reading, Result, Start};
use contract::{AttemptNo, BootInstant, Duration, Instant};
use rusqlite::Connection;
use std::collections::HashSet;

/// The index decides by both clocks before a row is read; another boot's reading says nothing (spec/engine.md, Clock).
pub(in crate::sqlite) fn due(
    conn: &Connection,
    boot: i64,
    endpoint: EndpointKey,
    now: &Reading,
    limit: usize,
    except: &[DeliveryKey],
) -> Result<Vec<Due>> {
    let sql = format!(
        "SELECT {}, {} FROM delivery INDEXED BY delivery_due CROSS JOIN message ON message.key = delivery.message
         WHERE delivery.state = 2 AND delivery.endpoint = ? AND delivery.due_at <= ?
             AND (delivery.due_boot IS NOT ? OR delivery.due_mono <= ?)
         ORDER BY delivery.due_at, delivery.due_mono LIMIT ?",
        rows::MESSAGE,
        rows::DUE
    );
    let except: HashSet<i64> = except.iter().map(|key| key.0).collect();
    let mut statement = conn.prepare_cached(&sql)?;
    let mut found = statement.query((
        endpoint.0,
        now.wall.as_unix_ms(),
        boot,
        int(now.boot.as_ms()),
        size(limit.saturating_add(except.len())),
    ))?;
    let mut due = Vec::new();
    while let Some(row) = found.next()? {
        if due.len() == limit {
            break;
        }
        if !except.contains(&row.get(rows::MESSAGE_COLUMNS)?) {
            due.push(rows::due(row, boot)?);
        }
    }
    Ok(due)
}

/// How many rows that the wall clock allows are searched for one that the boot clock does not: past that there is
/// work enough, and the question comes again.
const LOOK: i64 = 4096;

/// The earliest moment at which one more delivery may become due. It is never too late; it may be too early when
/// the clocks have parted, and then the question comes again.
pub(in crate::sqlite) fn next_due(
    conn: &Connection,
    boot: i64,
    endpoint: EndpointKey,
    now: &Reading,
) -> Result<Option<(Instant, Option<BootInstant>)>> {
    let (wall, mono) = (now.wall.as_unix_ms(), int(now.boot.as_ms()));
    // The wall clock has it wait.
    let sql = "SELECT due_at, due_mono FROM delivery INDEXED BY delivery_due
               WHERE state = 2 AND endpoint = ? AND due_at > ? ORDER BY due_at LIMIT 1";
    let by_wall: Option<(i64, Option<i64>)> =
        rows::first(&mut *conn.prepare_cached(sql)?, (endpoint.0, wall), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    // The boot clock alone has it wait: the wall clock was set forward.
    let sql = "SELECT min(due_mono) FROM
                   (SELECT due_mono, due_boot FROM delivery INDEXED BY delivery_due
                    WHERE state = 2 AND endpoint = ? AND due_at <= ? ORDER BY due_at LIMIT ?)
               WHERE due_boot = ? AND due_mono > ?";
    let by_boot: Option<i64> = conn
        .prepare_cached(sql)?
        .query_row((endpoint.0, wall, LOOK, boot, mono), |row| row.get(0))?;
    let by_wall = by_wall.map(|(due_at, _)| {
        let rest = Instant::from_unix_ms(due_at).since(now.wall);
        // Readings are rounded down, each on its own: a millisecond more saves a look in vain.
        (
            rest,
            (
                Instant::from_unix_ms(due_at),
                Some(now.boot + rest + Duration::from_ms(1)),
            ),
        )
    });
    let by_boot = by_boot.map(|due| {
        let due = BootInstant::from_ms(u64::try_from(due).unwrap_or(0));
        (due.since(now.boot), (now.wall, Some(due)))
    });
    Ok(by_wall
        .into_iter()
        .chain(by_boot)
        .min_by_key(|(rest, _)| *rest)
        .map(|(_, at)| at))
}

/// Attempts that are written as started and not settled, by delivery.
pub(in crate::sqlite) fn sending(
    conn: &Connection,
    after: Option<DeliveryKey>,
    limit: usize,
) -> Result<Vec<Claimed>> {
    // Where a claim kept the delivery's due time it is read there; a superseded delivery has none left, and the
    // attempt's row tells it.
    let sql = format!(
        "SELECT {}, {}, attempt.attempt_no, attempt.claimed_at, attempt.due_at, attempt.wait_ms, attempt.trigger,
             attempt.retry, attempt.pacing
         FROM attempt INDEXED BY attempt_in_flight
             CROSS JOIN delivery ON delivery.key = attempt.delivery
             CROSS JOIN message ON message.key = delivery.message
         WHERE attempt.outcome = 2 AND attempt.delivery > ? ORDER BY attempt.delivery LIMIT ?",
        rows::MESSAGE,
        rows::DUE.replace("delivery.due_at,", "coalesce(delivery.due_at, attempt.due_at),")
    );
    let mut statement = conn.prepare_cached(&sql)?;
    rows::all(
        &mut statement,
        (after.map_or(i64::MIN, |key| key.0), size(limit)),
        |row| {
            const AT: usize = rows::DUE_COLUMNS;
            // No boot: what was in flight goes by its own start, not by a due time.
            let mut due = rows::due(row, 0)?;
            let attempt_no = codes::attempt_no(row.get(AT)?)?;
            due.attempts = attempt_no.get().saturating_sub(1);
            if attempt_no == AttemptNo::FIRST {
                due.first_started_at = None;
            }
            due.due_at = rows::instant(row, AT + 2)?;
            due.wait = codes::wait(row.get(AT + 3)?)?;
            due.trigger = codes::to_trigger(row.get(AT + 4)?)?;
            let start = Start {
                started_at: rows::instant(row, AT + 1)?,
                retry: ContractKey(row.get(AT + 5)?),
                endpoint: ContractKey(row.get(AT + 6)?),
            };
            Ok(crate::sqlite::settle::claimed(due, attempt_no, start))
        },
    )
}
