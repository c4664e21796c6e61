//! Reading messages, deliveries and attempts, for people.

use super::admin::Bounds;
use crate::sqlite::codes::{self, AttemptRow};
use crate::sqlite::rows;
use crate::{AppKey, Attempt, Delivery, DeliveryKey, DeliveryState, EndpointKey, Message, Page, Result};
use bytes::Bytes;
use contract::ledger::AttemptRecord;
use contract::{AttemptId, EndpointId, Instant, MessageId, Seq};
use rusqlite::{Connection, Row};

pub(in crate::sqlite) fn message(
    conn: &Connection,
    app: AppKey,
    id_or_event_id: &str,
) -> Result<Option<Message>> {
    if let Ok(id) = id_or_event_id.parse::<MessageId>() {
        let found = message_by_id(conn, id)?.filter(|found| found.app == app);
        if found.is_some() {
            return Ok(found);
        }
    }
    let sql = format!(
        "SELECT {} FROM message WHERE app = ? AND event_id = ?",
        rows::MESSAGE
    );
    let mut statement = conn.prepare_cached(&sql)?;
    rows::first(&mut statement, (app.0, id_or_event_id), |row| {
        rows::message(row, 0)
    })
}

pub(in crate::sqlite) fn message_by_id(conn: &Connection, id: MessageId) -> Result<Option<Message>> {
    let sql = format!("SELECT {} FROM message WHERE id = ?", rows::MESSAGE);
    let mut statement = conn.prepare_cached(&sql)?;
    rows::first(&mut statement, [rows::bits(id.bits())], |row| {
        rows::message(row, 0)
    })
}

pub(in crate::sqlite) fn messages(
    conn: &Connection,
    app: AppKey,
    page: &Page<MessageId>,
) -> Result<Vec<Message>> {
    let Bounds {
        after,
        compare,
        order,
        limit,
    } = Bounds::of(page, |id| id.bits());
    let sql = format!(
        "SELECT {} FROM message WHERE app = ? AND id {compare} ? ORDER BY id {order} LIMIT ?",
        rows::MESSAGE
    );
    rows::all(&mut *conn.prepare_cached(&sql)?, (app.0, after, limit), |row| {
        rows::message(row, 0)
    })
}

/// The columns that [`delivery`] reads.
const DELIVERY: &str = "delivery.key, message.id, delivery.endpoint, endpoint.id, delivery.delivery_no, \
     delivery.state, delivery.reason, delivery.attempts, delivery.due_at, delivery.wait_ms, delivery.retry, \
     delivery.opened_at, delivery.closed_at";
const DELIVERY_FROM: &str = "delivery JOIN message ON message.key = delivery.message \
     JOIN endpoint ON endpoint.key = delivery.endpoint";

fn delivery(row: &Row<'_>) -> Result<Delivery> {
    let state = codes::to_delivery_state(row.get(5)?)?;
    Ok(Delivery {
        key: DeliveryKey(row.get(0)?),
        message: MessageId::from_bits(rows::id(row, 1)?),
        endpoint: EndpointKey(row.get(2)?),
        endpoint_id: EndpointId::from_bits(rows::id(row, 3)?),
        delivery_no: codes::delivery_no(row.get(4)?)?,
        state,
        reason: row.get(6)?,
        attempts: codes::small("attempts", row.get(7)?)?,
        due_at: rows::maybe_instant(row, 8)?.filter(|_| state == DeliveryState::Pending),
        wait: codes::wait(row.get(9)?)?,
        retry: rows::maybe_contract(row, 10)?,
        opened_at: rows::instant(row, 11)?,
        closed_at: rows::maybe_instant(row, 12)?,
    })
}

/// Which deliveries are a message's: those opened with it are the keys that follow its own; a person's are indexed.
const OF_MESSAGE: &str = "SELECT key FROM delivery WHERE key BETWEEN ?1 + 1 AND ?1 + \
         (SELECT deliveries FROM message WHERE key = ?1) \
     UNION ALL SELECT key FROM delivery WHERE resent = 1 AND message = ?1";

fn message_key(conn: &Connection, id: MessageId) -> Result<Option<i64>> {
    let mut statement = conn.prepare_cached("SELECT key FROM message WHERE id = ?")?;
    rows::first(&mut statement, [rows::bits(id.bits())], |row| Ok(row.get(0)?))
}

pub(in crate::sqlite) fn deliveries(conn: &Connection, id: MessageId) -> Result<Vec<Delivery>> {
    let Some(key) = message_key(conn, id)? else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {DELIVERY} FROM ({OF_MESSAGE}) AS of JOIN {DELIVERY_FROM} WHERE delivery.key = of.key
         ORDER BY delivery.delivery_no, delivery.key"
    );
    rows::all(&mut *conn.prepare_cached(&sql)?, [key], delivery)
}

/// A message's deliveries to one endpoint, by number.
pub(in crate::sqlite) fn deliveries_to(
    conn: &Connection,
    message: i64,
    endpoint: EndpointKey,
) -> Result<Vec<Delivery>> {
    let sql = format!(
        "SELECT {DELIVERY} FROM ({OF_MESSAGE}) AS of JOIN {DELIVERY_FROM}
         WHERE delivery.key = of.key AND delivery.endpoint = ?2 ORDER BY delivery.delivery_no"
    );
    rows::all(&mut *conn.prepare_cached(&sql)?, (message, endpoint.0), delivery)
}

/// Dead deliveries that nothing follows: no later number of the same message and endpoint.
pub(in crate::sqlite) fn dead(
    conn: &Connection,
    endpoint: EndpointKey,
    after: Option<DeliveryKey>,
    limit: usize,
) -> Result<Vec<Delivery>> {
    let sql = format!(
        "SELECT {DELIVERY} FROM {DELIVERY_FROM}
         WHERE delivery.state = 5 AND delivery.endpoint = ?1 AND delivery.key > ?2
             AND NOT EXISTS (SELECT 1 FROM delivery AS later WHERE later.resent = 1
                 AND later.message = delivery.message AND later.endpoint = delivery.endpoint
                 AND later.delivery_no > delivery.delivery_no)
         ORDER BY delivery.key LIMIT ?3"
    );
    let after = after.map_or(i64::MIN, |key| key.0);
    rows::all(
        &mut *conn.prepare_cached(&sql)?,
        (endpoint.0, after, codes::size(limit)),
        delivery,
    )
}

/// The columns that [`attempt`] reads.
const ATTEMPT: &str = "attempt.delivery, attempt.attempt_no, attempt.claimed_at, attempt.seq, message.id, \
     endpoint.id, delivery.delivery_no, retry.rev, pacing.rev, attempt.due_at, attempt.started_at, \
     attempt.ended_at, attempt.outcome, attempt.status, attempt.error, attempt.retry_after, attempt.wait_ms, \
     node.name, attempt.trigger, response.body";
const ATTEMPT_FROM: &str = "attempt \
     CROSS JOIN delivery ON delivery.key = attempt.delivery CROSS JOIN message ON message.key = delivery.message \
     CROSS JOIN endpoint ON endpoint.key = attempt.endpoint CROSS JOIN contract AS retry ON retry.key = attempt.retry \
     CROSS JOIN contract AS pacing ON pacing.key = attempt.pacing CROSS JOIN node ON node.key = attempt.node \
     LEFT JOIN response ON response.delivery = attempt.delivery AND response.attempt_no = attempt.attempt_no";

fn attempt(row: &Row<'_>) -> Result<Attempt> {
    let attempt_no = codes::attempt_no(row.get(1)?)?;
    let key = AttemptRow {
        claimed_at: rows::instant(row, 2)?,
        delivery: row.get(0)?,
        attempt_no,
    };
    let outcome = codes::to_outcome(row.get(12)?)?;
    let record = AttemptRecord {
        attempt_id: key.id().to_string(),
        seq: Seq::new(codes::unsigned("seq", row.get(3)?)?),
        message_id: MessageId::from_bits(rows::id(row, 4)?).to_string(),
        endpoint_id: EndpointId::from_bits(rows::id(row, 5)?).to_string(),
        delivery_no: codes::delivery_no(row.get(6)?)?,
        attempt_no,
        retry_rev: row.get(7)?,
        endpoint_rev: row.get(8)?,
        due_at: rows::instant(row, 9)?,
        started_at: rows::instant(row, 10)?,
        ended_at: Some(rows::instant(row, 11)?).filter(|_| outcome.is_some()),
        outcome,
        status: codes::to_status(row.get(13)?)?,
        error: row.get(14)?,
        retry_after: row.get(15)?,
        wait_ms: codes::wait(row.get(16)?)?,
        node: row.get(17)?,
        trigger: codes::to_trigger(row.get(18)?)?,
    };
    let response: Option<Vec<u8>> = row.get(19)?;
    Ok(Attempt {
        record,
        response: response.map(Bytes::from).unwrap_or_default(),
    })
}

pub(in crate::sqlite) fn attempts(
    conn: &Connection,
    id: MessageId,
    endpoint: Option<EndpointKey>,
) -> Result<Vec<Attempt>> {
    let Some(key) = message_key(conn, id)? else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {ATTEMPT} FROM ({OF_MESSAGE}) AS of CROSS JOIN {ATTEMPT_FROM}
         WHERE attempt.delivery = of.key AND (?2 IS NULL OR attempt.endpoint = ?2)
         ORDER BY attempt.started_at, attempt.seq"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    rows::all(
        &mut statement,
        (key, endpoint.map(|endpoint| endpoint.0)),
        attempt,
    )
}

pub(in crate::sqlite) fn attempts_of_endpoint(
    conn: &Connection,
    endpoint: EndpointKey,
    page: &Page<AttemptId>,
) -> Result<Vec<Attempt>> {
    let (compare, order, open) = if page.newest_first {
        ("<", "DESC", i64::MAX)
    } else {
        (">", "ASC", i64::MIN)
    };
    let after = match page.after {
        None => (open, open, open),
        Some(id) => match position(id) {
            Some(after) => after,
            None => return Ok(Vec::new()),
        },
    };
    let sql = format!(
        "SELECT {ATTEMPT} FROM {ATTEMPT_FROM}
         WHERE attempt.endpoint = ? AND (attempt.claimed_at, attempt.delivery, attempt.attempt_no) {compare} (?, ?, ?)
         ORDER BY attempt.claimed_at {order}, attempt.delivery {order}, attempt.attempt_no {order} LIMIT ?"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let (claimed_at, delivery, no) = after;
    rows::all(
        &mut statement,
        (endpoint.0, claimed_at, delivery, no, page.limit),
        attempt,
    )
}

/// Where an id stands in the order of attempts. An id made from a time alone stands at that time.
fn position(id: AttemptId) -> Option<(i64, i64, i64)> {
    if let Some(row) = AttemptRow::of(id) {
        return Some((
            row.claimed_at.as_unix_ms(),
            row.delivery,
            i64::from(row.attempt_no.get()),
        ));
    }
    let ms = i64::try_from(id.bits() >> 80).ok()?;
    let all_ones = id.bits() & 1 == 1;
    Some((ms, if all_ones { i64::MAX } else { -1 }, 0))
}

pub(in crate::sqlite) fn attempt_by_id(conn: &Connection, id: AttemptId) -> Result<Option<Attempt>> {
    let Some(row) = AttemptRow::of(id) else {
        return Ok(None);
    };
    let AttemptRow {
        claimed_at,
        delivery,
        attempt_no,
    } = row;
    let sql = format!(
        "SELECT {ATTEMPT} FROM {ATTEMPT_FROM}
         WHERE attempt.delivery = ? AND attempt.attempt_no = ? AND attempt.claimed_at = ?"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let at = Instant::as_unix_ms(claimed_at);
    rows::first(
        &mut statement,
        (delivery, i64::from(attempt_no.get()), at),
        attempt,
    )
}
