//! What happens to deliveries beside attempts: burial at disabled endpoints, expiry, cancelling, redrives. Each writes
//! the final event into the delivery's row, once.

use super::accept::{self, Opening};
use super::codes::state;
use super::fault::Outcome;
use super::settle::reason_to_bury;
use super::writer::Work;
use super::{read, rows};
use crate::{Change, ContractKey, Delivery, DeliveryKey, DeliveryState, EndpointKey, Redrive, StoreError};
use contract::ledger::{DeadReason, EndpointState, Trigger};
use contract::{DeliveryNo, Instant};
use rusqlite::OptionalExtension;

/// Ends a delivery that waits. False when it does not.
fn end(
    work: &mut Work<'_>,
    key: DeliveryKey,
    endpoint: EndpointKey,
    state: i64,
    at: Instant,
    retry: Option<ContractKey>,
    reason: &str,
) -> Outcome<bool> {
    let seq = work.known.seq + 1;
    let ended = work
        .conn
        .prepare_cached(
            "UPDATE delivery SET state = ?, closed_seq = ?, closed_at = ?,
                 closed_retry = coalesce(?, retry, opened_retry), reason = ?,
                 due_at = NULL, due_mono = NULL, due_boot = NULL, wait_ms = NULL
             WHERE key = ? AND state = 2",
        )?
        .execute((
            state,
            seq,
            at.as_unix_ms(),
            retry.map(|retry| retry.0),
            reason,
            key.0,
        ))?;
    if ended == 0 {
        return Ok(false);
    }
    work.known.seq = seq;
    work.rows += 1;
    work.known.count_pending(endpoint, -1);
    if state == state::DEAD {
        work.known.tally.dead += 1;
    } else {
        work.known.tally.cancelled += 1;
    }
    Ok(true)
}

pub(super) fn bury_one(
    work: &mut Work<'_>,
    key: DeliveryKey,
    endpoint: EndpointKey,
    reason: DeadReason,
    at: Instant,
) -> Outcome<bool> {
    end(work, key, endpoint, state::DEAD, at, None, reason.word())
}

/// What waits at an endpoint that takes nothing dies, oldest due first.
pub(super) fn bury(work: &mut Work<'_>, endpoint: EndpointKey, at: Instant, limit: usize) -> Outcome<u64> {
    let state = work.known.target(endpoint).map(|target| target.state);
    let Some(reason) = state.and_then(reason_to_bury) else {
        return Ok(0);
    };
    let sql = "SELECT key FROM delivery WHERE state = 2 AND endpoint = ? ORDER BY due_at LIMIT ?";
    let keys = rows::all(
        &mut *work.conn.prepare_cached(sql)?,
        (endpoint.0, super::codes::size(limit)),
        |row| Ok(DeliveryKey(row.get(0)?)),
    )?;
    let mut buried = 0;
    for key in keys {
        buried += u64::from(bury_one(work, key, endpoint, reason, at)?);
    }
    Ok(buried)
}

pub(super) fn expire(
    work: &mut Work<'_>,
    deliveries: &[(DeliveryKey, ContractKey)],
    at: Instant,
) -> Outcome<u64> {
    let mut expired = 0;
    for (key, retry) in deliveries {
        let Some(endpoint) = endpoint_of(work, *key)? else {
            continue;
        };
        let reason = DeadReason::MaxAge.word();
        expired += u64::from(end(work, *key, endpoint, state::DEAD, at, Some(*retry), reason)?);
    }
    Ok(expired)
}

fn endpoint_of(work: &Work<'_>, key: DeliveryKey) -> Outcome<Option<EndpointKey>> {
    let sql = "SELECT endpoint FROM delivery WHERE key = ?";
    let found = work
        .conn
        .prepare_cached(sql)?
        .query_row([key.0], |row| row.get(0))
        .optional()?;
    Ok(found.map(EndpointKey))
}

pub(super) fn cancel(work: &mut Work<'_>, key: DeliveryKey, why: &str, at: Instant) -> Outcome<bool> {
    let Some(endpoint) = endpoint_of(work, key)? else {
        return Err(not_found("delivery", &key.0).into());
    };
    end(work, key, endpoint, state::CANCELLED, at, None, why)
}

fn not_found(what: &'static str, found: &dyn ToString) -> StoreError {
    StoreError::NotFound {
        what,
        found: found.to_string(),
    }
}

/// The message of a redrive.
struct Sent {
    key: i64,
    app: crate::AppKey,
    contract: Option<ContractKey>,
}

/// Opens the next delivery number, due now; one that is not final is superseded.
pub(super) fn redrive(work: &mut Work<'_>, redrive: &Redrive) -> Outcome<Delivery> {
    let Redrive {
        message,
        endpoint,
        now,
    } = *redrive;
    let sent = sent(work, message)?;
    let target = work
        .known
        .target(endpoint)
        .filter(|target| target.app == sent.app);
    let state = target
        .map(|target| target.state)
        .filter(|state| *state != EndpointState::Deleted);
    let Some(state) = state else {
        return Err(not_found("endpoint", &endpoint.0).into());
    };
    let retry = work
        .known
        .contract_for(sent.contract, sent.app, endpoint)
        .ok_or_else(accept::no_contract)?;
    let before = read::messages::deliveries_to(work.conn, sent.key, endpoint)?.pop();
    let number = before
        .as_ref()
        .map_or(DeliveryNo::FIRST, |before| before.delivery_no.next());
    if let Some(before) = before {
        supersede(work, &before, number, now)?;
    }
    let row = Opening {
        key: DeliveryKey(work.next_seq()),
        message: sent.key,
        endpoint,
        delivery_no: number,
        resent: true,
        retry,
        trigger: Trigger::Manual,
        at: now,
    };
    work.rows += 1;
    if state == EndpointState::Disabled {
        accept::insert_dead(work, &row, DeadReason::EndpointDisabled)?;
    } else {
        // Due at once by the wall clock alone: a person asked, and no wait has to be watched by the other clock.
        accept::insert_pending(work, &row, None)?;
        work.changes.push(Change::Work(endpoint));
    }
    let mut opened = read::messages::deliveries_to(work.conn, sent.key, endpoint)?;
    opened
        .pop()
        .ok_or_else(|| not_found("delivery", &row.key.0).into())
}

fn sent(work: &Work<'_>, message: contract::MessageId) -> Outcome<Sent> {
    let sql = "SELECT key, app, contract, payload IS NULL FROM message WHERE id = ?";
    let found = work
        .conn
        .prepare_cached(sql)?
        .query_row([rows::bits(message.bits())], |row| {
            let sent = Sent {
                key: row.get(0)?,
                app: crate::AppKey(row.get(1)?),
                contract: row.get::<_, Option<i64>>(2)?.map(ContractKey),
            };
            Ok((sent, row.get::<_, bool>(3)?))
        })
        .optional()?;
    match found {
        None => Err(not_found("message", &message).into()),
        Some((_, true)) => Err(not_found("payload (it was erased) of message", &message).into()),
        Some((sent, false)) => Ok(sent),
    }
}

/// A delivery that is not final gives way to its successor. An attempt in flight may still end: it changes nothing.
fn supersede(work: &mut Work<'_>, before: &Delivery, by: DeliveryNo, at: Instant) -> Outcome<()> {
    let reason = format!("delivery {by} was opened");
    match before.state {
        DeliveryState::Pending => {
            end(
                work,
                before.key,
                before.endpoint,
                state::SUPERSEDED,
                at,
                None,
                &reason,
            )?;
        }
        DeliveryState::Sending => {
            let seq = work.next_seq();
            work.conn
                .prepare_cached(
                    "UPDATE delivery SET state = 7, closed_seq = ?, closed_at = ?,
                         closed_retry = coalesce(retry, opened_retry), reason = ?,
                         due_at = NULL, due_mono = NULL, due_boot = NULL, wait_ms = NULL
                     WHERE key = ? AND state = 3",
                )?
                .execute((seq, at.as_unix_ms(), &reason, before.key.0))?;
            work.known.tally.sending -= 1;
            work.known.tally.cancelled += 1;
        }
        DeliveryState::Succeeded | DeliveryState::Dead | DeliveryState::Cancelled => {}
    }
    Ok(())
}
