//! The life of an attempt: written as started by the commit that claims it (I2), completed by the commit that settles
//! it. Every step is a compare-and-set on the delivery's state and attempt number, so that a late or repeated call
//! changes nothing.
//!
//! | delivery is | claim | settle |
//! |---|---|---|
//! | `pending` | `sending`, if its endpoint is `active` | – (no attempt is in flight) |
//! | `sending` | moved | `succeeded`, `dead` or `pending` |
//! | `succeeded`, `dead` | moved | – |
//! | `cancelled` | moved | stale: the attempt's row is completed, no more |

use super::codes::{self, AttemptRow, IN_FLIGHT, NO_STATUS, int, state};
use super::fault::{Outcome, unavailable};
use super::registry::Node;
use super::writer::Work;
use crate::{Claim, Claimed, ContractKey, Due, Next, NotClaimed, Settle, Settled, Start};
use contract::ledger::{DeadReason, EndpointState, Outcome as End, Trigger};
use contract::{AttemptNo, BootInstant, Duration, Instant};
use rusqlite::OptionalExtension;

/// False with a fault compiled in, for tests alone: a claim is then known to this process and not to the store.
pub(super) const WRITES_INTENT: bool = !cfg!(feature = "bug-intent-not-written");

/// Writes the attempt that follows `due` as started.
pub(super) fn begin(work: &mut Work<'_>, due: &Due, start: Start) -> Outcome<()> {
    let seq = work.next_seq();
    if WRITES_INTENT {
        return insert_attempt(work, due, start, seq);
    }
    work.known.in_hand.insert(due.key);
    Ok(())
}

fn insert_attempt(work: &mut Work<'_>, due: &Due, start: Start, seq: i64) -> Outcome<()> {
    let node = node(work)?;
    let started = start.started_at.as_unix_ms();
    work.conn
        .prepare_cached(
            "INSERT INTO attempt (delivery, attempt_no, endpoint, claimed_at, seq, node, trigger, retry, pacing,
                 due_at, wait_ms, started_at, outcome, ended_at, status)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            due.key.0,
            i64::from(due.attempts) + 1,
            due.endpoint.0,
            started,
            seq,
            node.key,
            codes::trigger(due.trigger),
            start.retry.0,
            start.endpoint.0,
            due.due_at.as_unix_ms(),
            due.wait.map(|wait| int(wait.as_ms())),
            started,
            IN_FLIGHT,
            started,
            NO_STATUS,
        ))?;
    work.rows += 1;
    Ok(())
}

fn node(work: &Work<'_>) -> Outcome<Node> {
    work.known
        .node
        .ok_or_else(|| unavailable("no node is up: `node_up` comes first").into())
}

/// What a claim hands out.
pub(super) fn claimed(due: Due, attempt_no: AttemptNo, start: Start) -> Claimed {
    let row = AttemptRow {
        claimed_at: start.started_at,
        delivery: due.key.0,
        attempt_no,
    };
    Claimed {
        due,
        attempt_no,
        attempt_id: row.id(),
        start,
    }
}

/// pending → sending.
pub(super) fn claim(work: &mut Work<'_>, claim: Claim) -> Outcome<Result<Claimed, NotClaimed>> {
    let Claim { due, start } = claim;
    node(work)?;
    if !work.known.may_send(due.endpoint) {
        return Ok(Err(NotClaimed::Held)); // I4
    }
    let taken = if WRITES_INTENT {
        move_to_sending(work, &due, start)?
    } else {
        !work.known.in_hand.contains(&due.key) && is_pending(work, &due)?
    };
    if !taken {
        return Ok(Err(NotClaimed::Moved));
    }
    begin(work, &due, start)?;
    let attempt_no = AttemptNo::new(due.attempts.saturating_add(1));
    Ok(Ok(claimed(due, attempt_no, start)))
}

/// What the fault looks at and does not write.
fn is_pending(work: &Work<'_>, due: &Due) -> Outcome<bool> {
    let sql = "SELECT 1 FROM delivery WHERE key = ? AND state = 2 AND attempts = ?";
    Ok(work
        .conn
        .prepare_cached(sql)?
        .exists((due.key.0, i64::from(due.attempts)))?)
}

fn move_to_sending(work: &mut Work<'_>, due: &Due, start: Start) -> Outcome<bool> {
    let moved = work
        .conn
        .prepare_cached(
            "UPDATE delivery SET state = 3, attempts = attempts + 1,
                 first_started_at = coalesce(first_started_at, ?)
             WHERE key = ? AND state = 2 AND attempts = ? AND endpoint = ?",
        )?
        .execute((
            start.started_at.as_unix_ms(),
            due.key.0,
            i64::from(due.attempts),
            due.endpoint.0,
        ))?;
    if moved == 0 {
        return Ok(false);
    }
    work.rows += 1;
    work.known.count_pending(due.endpoint, -1);
    work.known.tally.sending += 1;
    Ok(true)
}

/// Completes an attempt and moves its delivery.
pub(super) fn settle(work: &mut Work<'_>, settle: &Settle) -> Outcome<Settled> {
    if !WRITES_INTENT && work.known.in_hand.remove(&settle.claimed.due.key) {
        if settle.next == Next::Released {
            return Ok(Settled::Done);
        }
        move_to_sending(work, &settle.claimed.due, settle.claimed.start)?;
        let seq = work.next_seq();
        insert_attempt(work, &settle.claimed.due, settle.claimed.start, seq)?;
    }
    if settle.next == Next::Released {
        return release(work, &settle.claimed);
    }
    if !complete(work, settle)? {
        return Ok(Settled::Stale);
    }
    let at = settle.ended_at;
    match settle.next {
        Next::Succeeded => close(
            work,
            settle,
            state::SUCCEEDED,
            at,
            settle.claimed.start.retry,
            None,
        ),
        Next::Dead { reason, retry } => close(work, settle, state::DEAD, at, retry, Some(reason)),
        Next::Retry {
            due_at,
            due_boot,
            wait,
            retry,
        } => match burial(work, &settle.claimed) {
            Some(reason) => close(work, settle, state::DEAD, at, retry, Some(reason)),
            None => wait_again(work, settle, due_at, due_boot, wait, retry),
        },
        Next::Released => Ok(Settled::Done),
    }
}

/// Waiting deliveries of such endpoints are dead; one that would begin to wait is, too.
fn burial(work: &Work<'_>, claimed: &Claimed) -> Option<DeadReason> {
    let target = work.known.target(claimed.due.endpoint)?;
    reason_to_bury(target.state)
}

pub(super) const fn reason_to_bury(state: EndpointState) -> Option<DeadReason> {
    match state {
        EndpointState::Active | EndpointState::Draining => None,
        EndpointState::Disabled => Some(DeadReason::EndpointDisabled),
        EndpointState::Deleted => Some(DeadReason::EndpointDeleted),
    }
}

/// Completes the attempt's row, once: false when it was completed before.
fn complete(work: &mut Work<'_>, settle: &Settle) -> Outcome<bool> {
    let (key, no) = row_of(&settle.claimed);
    let completed = work
        .conn
        .prepare_cached(
            "UPDATE attempt SET started_at = ?, outcome = ?, ended_at = ?, status = ?, error = ?, retry_after = ?
             WHERE delivery = ? AND attempt_no = ? AND outcome = 2",
        )?
        .execute((
            settle.started_at.as_unix_ms(),
            codes::ended(settle.outcome),
            settle.ended_at.as_unix_ms(),
            settle.status.map_or(NO_STATUS, i64::from),
            &settle.error,
            &settle.retry_after,
            key,
            no,
        ))?;
    if completed == 0 {
        return Ok(false);
    }
    work.rows += 1;
    if !settle.response.is_empty() {
        work.conn
            .prepare_cached("INSERT INTO response (delivery, attempt_no, body) VALUES (?, ?, ?)")?
            .execute((key, no, &settle.response[..]))?;
    }
    note_failing(work, settle)?;
    Ok(true)
}

fn row_of(claimed: &Claimed) -> (i64, i64) {
    (claimed.due.key.0, i64::from(claimed.attempt_no.get()))
}

/// A success ends a failing spell in the commit that records it, whoever forgot to say so.
fn note_failing(work: &mut Work<'_>, settle: &Settle) -> Outcome<()> {
    let endpoint = settle.claimed.due.endpoint;
    let ends =
        settle.outcome == End::Succeeded && work.known.target(endpoint).is_some_and(|target| target.failing);
    if ends {
        super::admin::set_failing_since(work, endpoint, None)?;
    }
    Ok(())
}

/// The first attempt's start becomes the real one, for contracts that count from it.
fn first_started(settle: &Settle) -> Option<i64> {
    (settle.claimed.attempt_no == AttemptNo::FIRST).then(|| settle.started_at.as_unix_ms())
}

fn close(
    work: &mut Work<'_>,
    settle: &Settle,
    state: i64,
    at: Instant,
    retry: ContractKey,
    reason: Option<DeadReason>,
) -> Outcome<Settled> {
    let (key, no) = row_of(&settle.claimed);
    let seq = work.known.seq + 1;
    let closed = work
        .conn
        .prepare_cached(
            "UPDATE delivery SET state = ?, closed_seq = ?, closed_at = ?, closed_retry = ?, reason = ?,
                 first_started_at = coalesce(?, first_started_at),
                 due_at = NULL, due_mono = NULL, due_boot = NULL, wait_ms = NULL
             WHERE key = ? AND state = 3 AND attempts = ?",
        )?
        .execute((
            state,
            seq,
            at.as_unix_ms(),
            retry.0,
            reason.map(DeadReason::word),
            first_started(settle),
            key,
            no,
        ))?;
    if closed == 0 {
        return Ok(Settled::Stale);
    }
    work.known.seq = seq;
    work.known.tally.sending -= 1;
    if state == state::SUCCEEDED {
        work.known.tally.succeeded += 1;
    } else {
        work.known.tally.dead += 1;
    }
    Ok(match (&settle.next, reason) {
        (Next::Retry { .. }, Some(reason)) => Settled::Dead(reason),
        _ => Settled::Done,
    })
}

fn wait_again(
    work: &mut Work<'_>,
    settle: &Settle,
    due_at: Instant,
    due_boot: BootInstant,
    wait: Duration,
    retry: ContractKey,
) -> Outcome<Settled> {
    let (key, no) = row_of(&settle.claimed);
    let boot = node(work)?.boot;
    let waits = work
        .conn
        .prepare_cached(
            "UPDATE delivery SET state = 2, due_at = ?, due_mono = ?, due_boot = ?, wait_ms = ?, retry = ?, trigger = ?,
                 first_started_at = coalesce(?, first_started_at)
             WHERE key = ? AND state = 3 AND attempts = ?",
        )?
        .execute((
            due_at.as_unix_ms(),
            int(due_boot.as_ms()),
            boot,
            int(wait.as_ms()),
            retry.0,
            codes::trigger(Trigger::Scheduled),
            first_started(settle),
            key,
            no,
        ))?;
    if waits == 0 {
        return Ok(Settled::Stale);
    }
    work.known.tally.sending -= 1;
    work.known.count_pending(settle.claimed.due.endpoint, 1);
    Ok(Settled::Done)
}

/// Takes a claim back that was never sent: the delivery is as it was before. Its endpoint may have been disabled
/// since, and then nothing may wait there.
pub(super) fn release(work: &mut Work<'_>, claimed: &Claimed) -> Outcome<Settled> {
    let (key, no) = row_of(claimed);
    let sql = "DELETE FROM attempt WHERE delivery = ? AND attempt_no = ? AND outcome = 2";
    if work.conn.prepare_cached(sql)?.execute((key, no))? == 0 {
        return Ok(Settled::Stale);
    }
    work.rows += 1;
    // A superseded delivery keeps its end; it made one attempt less.
    let sql = "UPDATE delivery SET attempts = attempts - 1,
                   state = CASE state WHEN 3 THEN 2 ELSE state END,
                   first_started_at = CASE attempts WHEN 1 THEN NULL ELSE first_started_at END
               WHERE key = ? AND attempts = ? RETURNING state";
    let after: Option<i64> = work
        .conn
        .prepare_cached(sql)?
        .query_row((key, no), |row| row.get(0))
        .optional()?;
    if after != Some(state::PENDING) {
        return Ok(Settled::Stale);
    }
    work.known.tally.sending -= 1;
    work.known.count_pending(claimed.due.endpoint, 1);
    let Some(reason) = burial(work, claimed) else {
        return Ok(Settled::Done);
    };
    let at = claimed.start.started_at;
    super::deliveries::bury_one(work, claimed.due.key, claimed.due.endpoint, reason, at)?;
    Ok(Settled::Dead(reason))
}
