//! Accepting a message: its row, a delivery for each endpoint that wants it, and first attempts written as started
//! where the gate allows (I2, I3). The states of endpoints act as spec/engine.md has it: `active` fans out,
//! `draining` fans out and is held, `disabled` is recorded as dead.

use super::codes::{self, int, size, state};
use super::fault::{Fault, Outcome, is_taken, unavailable};
use super::rows;
use super::settle::{WRITES_INTENT, begin};
use super::writer::Work;
use crate::{
    Accepted, Claimed, ContractKey, DeliveryKey, Due, EndpointKey, Message, NewMessage, Start, StartGate,
    StoreError,
};
use contract::ledger::{DeadReason, EndpointState, Trigger};
use contract::{AttemptNo, DeliveryNo};
use rusqlite::OptionalExtension;
use std::sync::Arc;

/// A delivery about to be opened.
struct Plan {
    endpoint: EndpointKey,
    state: EndpointState,
    retry: ContractKey,
}

pub(super) fn accept(work: &mut Work<'_>, new: &NewMessage, gate: &Arc<dyn StartGate>) -> Outcome<Accepted> {
    if let Some(earlier) = earlier(work, new)? {
        return Ok(earlier);
    }
    let plans = plan(work, new)?;
    let key = insert_message(work, new, plans.len())?;
    let first = work.known.seq + 1;
    work.known.seq += size(plans.len());
    let message = Arc::new(Message {
        id: new.id,
        app: new.app,
        event_id: new.event_id.clone(),
        event_type: new.event_type.clone(),
        channels: new.channels.clone(),
        payload: Some(new.payload.clone()),
        contract: new.contract,
        accepted_at: new.now.wall,
    });
    let mut accepted = Accepted {
        message,
        repeated: false,
        deliveries: u32::try_from(plans.len()).unwrap_or(u32::MAX),
        claimed: Vec::new(),
        due_at_endpoints: Vec::new(),
    };
    for (delivery, plan) in (first..).zip(plans) {
        open(work, &mut accepted, key, DeliveryKey(delivery), &plan, new, gate)?;
    }
    Ok(accepted)
}

/// The first answer to this idempotency key.
fn earlier(work: &Work<'_>, new: &NewMessage) -> Outcome<Option<Accepted>> {
    let Some(key) = &new.idempotency_key else {
        return Ok(None);
    };
    let sql = earlier_sql(rows::MESSAGE);
    let found = work
        .conn
        .prepare_cached(&sql)?
        .query_row((new.app.0, key), |row| {
            Ok((rows::message(row, 0), row.get(rows::MESSAGE_COLUMNS)?))
        })
        .optional()?;
    let Some((message, deliveries)) = found else {
        return Ok(None);
    };
    Ok(Some(Accepted {
        message: Arc::new(message?),
        repeated: true,
        deliveries: codes::small("deliveries", deliveries)?,
        claimed: Vec::new(),
        due_at_endpoints: Vec::new(),
    }))
}

fn earlier_sql(columns: &str) -> String {
    format!(
        "SELECT {columns}, message.deliveries FROM idempotency JOIN message ON message.key = idempotency.message
         WHERE idempotency.app = ? AND idempotency.key = ?"
    )
}

/// Who gets it, and under which contract. Everything that can be refused is refused here, before a row is written.
fn plan(work: &Work<'_>, new: &NewMessage) -> Outcome<Vec<Plan>> {
    let wanted = work
        .known
        .wanted_by(new.app, &new.event_type, new.channels.as_deref());
    let Some(wanted) = wanted else {
        return Err(Fault::Store(StoreError::NotFound {
            what: "application",
            found: new.app.0.to_string(),
        }));
    };
    let plan = |endpoint: EndpointKey| {
        let retry = work.known.contract_for(new.contract, new.app, endpoint);
        let state = work.known.target(endpoint).map(|target| target.state);
        match (retry, state) {
            (Some(retry), Some(state)) => Ok(Plan {
                endpoint,
                state,
                retry,
            }),
            _ => Err(Fault::Store(no_contract())),
        }
    };
    wanted.into_iter().map(plan).collect()
}

pub(super) fn no_contract() -> StoreError {
    unavailable(
        "no contract is in force: set the organisation's (`duehook serve --contract FILE` does so at its start)",
    )
}

fn insert_message(work: &mut Work<'_>, new: &NewMessage, deliveries: usize) -> Outcome<i64> {
    let key = work.next_seq();
    let inserted = work
        .conn
        .prepare_cached(
            "INSERT INTO message (key, id, app, event_id, event_type, channels, contract, accepted_at, deliveries, payload)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            key,
            rows::bits(new.id.bits()),
            new.app.0,
            &new.event_id,
            &new.event_type,
            rows::list_text(new.channels.as_deref()),
            new.contract.map(|contract| contract.0),
            new.now.wall.as_unix_ms(),
            size(deliveries),
            &new.payload[..],
        ));
    match inserted {
        Ok(_) => {}
        // The command's first statement: nothing else of it is there (see `writer`).
        Err(error) if is_taken(&error) => return Err(taken(work, new)?.into()),
        Err(error) => return Err(error.into()),
    }
    if let Some(idempotency_key) = &new.idempotency_key {
        work.conn
            .prepare_cached("INSERT INTO idempotency (app, key, message) VALUES (?, ?, ?)")?
            .execute((new.app.0, idempotency_key, key))?;
    }
    work.rows += 1;
    Ok(key)
}

/// Which name of the message was taken.
fn taken(work: &Work<'_>, new: &NewMessage) -> Outcome<StoreError> {
    let known_id = work
        .conn
        .prepare_cached("SELECT 1 FROM message WHERE id = ?")?
        .exists([rows::bits(new.id.bits())])?;
    Ok(match &new.event_id {
        Some(event_id) if !known_id => StoreError::Conflict {
            what: "event id",
            found: event_id.clone(),
        },
        _ => StoreError::Conflict {
            what: "message id",
            found: new.id.to_string(),
        },
    })
}

fn open(
    work: &mut Work<'_>,
    accepted: &mut Accepted,
    message: i64,
    key: DeliveryKey,
    plan: &Plan,
    new: &NewMessage,
    gate: &Arc<dyn StartGate>,
) -> Outcome<()> {
    work.rows += 1;
    if plan.state == EndpointState::Disabled {
        return open_dead(work, message, key, plan, new);
    }
    let start = reserve(work, plan, new, gate);
    let row = Opening {
        key,
        message,
        endpoint: plan.endpoint,
        delivery_no: DeliveryNo::FIRST,
        resent: false,
        retry: start.map_or(plan.retry, |start| start.retry),
        trigger: Trigger::Scheduled,
        at: new.now.wall,
    };
    let mono = int(new.now.boot.as_ms());
    let Some(start) = start else {
        insert_pending(work, &row, Some(mono))?;
        if work.known.may_send(plan.endpoint) {
            accepted.due_at_endpoints.push(plan.endpoint);
        }
        return Ok(());
    };
    let due = Due {
        key,
        endpoint: plan.endpoint,
        message: Arc::clone(&accepted.message),
        delivery_no: DeliveryNo::FIRST,
        opened_at: new.now.wall,
        first_started_at: None,
        attempts: 0,
        due_at: new.now.wall,
        due_boot: work.known.node.map(|_| new.now.boot),
        wait: None,
        retry: None,
        trigger: Trigger::Scheduled,
    };
    let claimed = insert_sending(work, &row, mono, due, start)?;
    accepted.claimed.push(claimed);
    Ok(())
}

/// Asks the gate; what it reserves is given back when the commit fails. No attempt without a node to make it.
fn reserve(work: &mut Work<'_>, plan: &Plan, new: &NewMessage, gate: &Arc<dyn StartGate>) -> Option<Start> {
    if !work.known.may_send(plan.endpoint) || work.known.node.is_none() {
        return None;
    }
    let start = gate.try_reserve(plan.endpoint, new)?;
    let (gate, endpoint) = (Arc::clone(gate), plan.endpoint);
    work.undo.push(Box::new(move || gate.release(endpoint)));
    Some(start)
}

/// A delivery row about to be written; its key is the seq of its `opened` event.
pub(super) struct Opening {
    pub(super) key: DeliveryKey,
    pub(super) message: i64,
    pub(super) endpoint: EndpointKey,
    pub(super) delivery_no: DeliveryNo,
    pub(super) resent: bool,
    pub(super) retry: ContractKey,
    pub(super) trigger: Trigger,
    pub(super) at: contract::Instant,
}

const INSERT_OPEN: &str = "INSERT INTO delivery (key, message, endpoint, delivery_no, resent, state, attempts, \
     trigger, opened_at, opened_retry, first_started_at, due_at, due_mono, due_boot) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Due now. `mono` is the boot-time clock's reading, where one is known.
pub(super) fn insert_pending(work: &mut Work<'_>, row: &Opening, mono: Option<i64>) -> Outcome<()> {
    insert_open(work, row, mono, state::PENDING, 0, None)?;
    work.known.count_pending(row.endpoint, 1);
    Ok(())
}

fn insert_open(
    work: &Work<'_>,
    row: &Opening,
    mono: Option<i64>,
    state: i64,
    attempts: i64,
    first_started_at: Option<i64>,
) -> Outcome<()> {
    let boot = work.known.node.map(|node| node.boot);
    work.conn.prepare_cached(INSERT_OPEN)?.execute((
        row.key.0,
        row.message,
        row.endpoint.0,
        i64::from(row.delivery_no.get()),
        row.resent,
        state,
        attempts,
        codes::trigger(row.trigger),
        row.at.as_unix_ms(),
        row.retry.0,
        first_started_at,
        row.at.as_unix_ms(),
        mono.filter(|_| boot.is_some()),
        boot.filter(|_| mono.is_some()),
    ))?;
    Ok(())
}

/// With its first attempt written as started, in the same commit.
fn insert_sending(work: &mut Work<'_>, row: &Opening, mono: i64, due: Due, start: Start) -> Outcome<Claimed> {
    begin(work, &due, start)?;
    if WRITES_INTENT {
        let started = start.started_at.as_unix_ms();
        insert_open(work, row, Some(mono), state::SENDING, 1, Some(started))?;
        work.known.tally.sending += 1;
    } else {
        insert_pending(work, row, Some(mono))?;
    }
    Ok(super::settle::claimed(due, AttemptNo::FIRST, start))
}

/// At a `disabled` endpoint: opened and dead in one row, redrivable.
fn open_dead(
    work: &mut Work<'_>,
    message: i64,
    key: DeliveryKey,
    plan: &Plan,
    new: &NewMessage,
) -> Outcome<()> {
    let row = Opening {
        key,
        message,
        endpoint: plan.endpoint,
        delivery_no: DeliveryNo::FIRST,
        resent: false,
        retry: plan.retry,
        trigger: Trigger::Scheduled,
        at: new.now.wall,
    };
    insert_dead(work, &row, DeadReason::EndpointDisabled)
}

pub(super) fn insert_dead(work: &mut Work<'_>, row: &Opening, reason: DeadReason) -> Outcome<()> {
    let seq = work.next_seq();
    work.conn
        .prepare_cached(
            "INSERT INTO delivery (key, message, endpoint, delivery_no, resent, state, attempts, trigger, opened_at,
                 opened_retry, closed_seq, closed_at, closed_retry, reason)
             VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            row.key.0,
            row.message,
            row.endpoint.0,
            i64::from(row.delivery_no.get()),
            row.resent,
            state::DEAD,
            codes::trigger(row.trigger),
            row.at.as_unix_ms(),
            row.retry.0,
            seq,
            row.at.as_unix_ms(),
            row.retry.0,
            reason.word(),
        ))?;
    work.known.tally.dead += 1;
    Ok(())
}
