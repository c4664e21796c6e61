//! The whole ledger of one moment, record by record, with memory for one message's deliveries. The caller opens the
//! transaction that makes it one moment.

use super::admin::endpoint_event;
use crate::sqlite::codes::{self, AttemptRow};
use crate::sqlite::rows;
use crate::{LedgerSink, Result, StoreError};
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, DeliveryEventKind, MessageRecord, NodeEvent,
};
use contract::{EndpointId, MessageId, Seq};
use rusqlite::{Connection, Row, Statement};
use std::collections::HashMap;

/// Streams everything into the sink.
pub(in crate::sqlite) fn stream(conn: &Connection, sink: &mut dyn LedgerSink) -> Result<()> {
    let mut statement = conn.prepare("SELECT rev, canonical FROM contract ORDER BY key")?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        sink.contract(&ContractRecord {
            rev: row.get(0)?,
            canonical: row.get(1)?,
        })?;
    }
    let mut statement = conn.prepare("SELECT key, id, accepted_at, deliveries FROM message ORDER BY key")?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        sink.message(&MessageRecord {
            seq: seq(row, 0)?,
            message_id: MessageId::from_bits(rows::id(row, 1)?).to_string(),
            at: rows::instant(row, 2)?,
            deliveries: codes::small("deliveries", row.get(3)?)?,
        })?;
    }
    stream_events(conn, sink)?;
    Groups::new(conn)?.stream(conn, sink)
}

fn seq(row: &Row<'_>, at: usize) -> Result<Seq> {
    codes::unsigned("seq", row.get(at)?).map(Seq::new)
}

fn stream_events(conn: &Connection, sink: &mut dyn LedgerSink) -> Result<()> {
    let mut statement = conn.prepare(
        "SELECT endpoint_event.seq, endpoint.id, endpoint_event.at, endpoint_event.state, endpoint_event.why,
             endpoint_event.by
         FROM endpoint_event JOIN endpoint ON endpoint.key = endpoint_event.endpoint ORDER BY endpoint_event.seq",
    )?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        sink.endpoint_event(&endpoint_event(row)?)?;
    }
    let mut statement = conn.prepare(
        "SELECT node_event.seq, node.name, node_event.at, boot.id, node_event.mono, node_event.event, node_event.size_ms
         FROM node_event JOIN node ON node.key = node_event.node JOIN boot ON boot.key = node_event.boot
         ORDER BY node_event.seq",
    )?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        sink.node_event(&NodeEvent {
            seq: seq(row, 0)?,
            node: row.get(1)?,
            at: rows::instant(row, 2)?,
            boot_id: row.get(3)?,
            mono_ms: codes::unsigned("mono", row.get(4)?)?,
            event: codes::to_node_event(row.get(5)?)?,
            size_ms: row.get(6)?,
        })?;
    }
    Ok(())
}

/// What rows refer to by number: few, and looked up for every row.
struct Groups {
    contracts: HashMap<i64, String>,
    endpoints: HashMap<i64, String>,
    nodes: HashMap<i64, String>,
}

/// A delivery's row, as far as the ledger tells it.
struct Group {
    key: i64,
    message_id: String,
    endpoint_id: String,
    delivery_no: contract::DeliveryNo,
    opened: DeliveryEvent,
    closed: Option<DeliveryEvent>,
}

impl Groups {
    fn new(conn: &Connection) -> Result<Self> {
        let texts = |sql: &str| -> Result<HashMap<i64, String>> {
            let pairs = rows::all(&mut conn.prepare(sql)?, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(pairs.into_iter().collect())
        };
        let endpoints = rows::all(&mut conn.prepare("SELECT key, id FROM endpoint")?, [], |row| {
            Ok((row.get(0)?, EndpointId::from_bits(rows::id(row, 1)?).to_string()))
        })?;
        Ok(Self {
            contracts: texts("SELECT key, rev FROM contract")?,
            endpoints: endpoints.into_iter().collect(),
            nodes: texts("SELECT key, name FROM node")?,
        })
    }

    fn named<'a>(names: &'a HashMap<i64, String>, what: &str, key: i64) -> Result<&'a String> {
        names.get(&key).ok_or_else(|| StoreError::Corrupt {
            reason: format!("a row refers to {what} {key}, which does not exist"),
            source: None,
        })
    }

    fn stream(&self, conn: &Connection, sink: &mut dyn LedgerSink) -> Result<()> {
        let mut messages = conn.prepare("SELECT key, id, deliveries FROM message ORDER BY key")?;
        let mut opened_with = conn.prepare(&format!("{GROUP} WHERE key BETWEEN ? AND ?"))?;
        let mut resent = conn.prepare(&format!("{GROUP} WHERE resent = 1 AND message = ?"))?;
        let mut attempts = conn.prepare(
            "SELECT attempt_no, claimed_at, seq, retry, pacing, due_at, started_at, ended_at, outcome, status,
                 error, retry_after, wait_ms, node, trigger FROM attempt WHERE delivery = ? ORDER BY attempt_no",
        )?;
        let mut found = messages.query([])?;
        while let Some(row) = found.next()? {
            let key: i64 = row.get(0)?;
            let id = MessageId::from_bits(rows::id(row, 1)?).to_string();
            let last = key.saturating_add(row.get(2)?);
            let read = |row: &Row<'_>| self.group(row, &id);
            let mut groups = rows::all(&mut opened_with, (key + 1, last), read)?;
            groups.extend(rows::all(&mut resent, [key], read)?);
            groups.sort_by(|a, b| (&a.endpoint_id, a.delivery_no).cmp(&(&b.endpoint_id, b.delivery_no)));
            for group in groups {
                self.tell(&group, &mut attempts, sink)?;
            }
        }
        Ok(())
    }

    fn group(&self, row: &Row<'_>, message_id: &str) -> Result<Group> {
        let endpoint_id = Self::named(&self.endpoints, "endpoint", row.get(1)?)?;
        let delivery_no = codes::delivery_no(row.get(2)?)?;
        let event = |seq, at, event, reason, retry| -> Result<DeliveryEvent> {
            Ok(DeliveryEvent {
                seq,
                message_id: message_id.to_owned(),
                endpoint_id: endpoint_id.clone(),
                delivery_no,
                at,
                event,
                reason,
                retry_rev: Self::named(&self.contracts, "contract", retry)?.clone(),
            })
        };
        let at = rows::instant(row, 4)?;
        let opened = event(seq(row, 0)?, at, DeliveryEventKind::Opened, None, row.get(5)?)?;
        let closed = match codes::to_final_event(row.get(3)?)? {
            None => None,
            Some(kind) => Some(event(
                seq(row, 6)?,
                rows::instant(row, 7)?,
                kind,
                row.get(9)?,
                row.get(8)?,
            )?),
        };
        Ok(Group {
            key: row.get(0)?,
            message_id: message_id.to_owned(),
            endpoint_id: endpoint_id.clone(),
            delivery_no,
            opened,
            closed,
        })
    }

    /// One delivery: its events and attempts by `seq`.
    fn tell(&self, group: &Group, attempts: &mut Statement<'_>, sink: &mut dyn LedgerSink) -> Result<()> {
        sink.delivery_event(&group.opened)?;
        let mut closed = group.closed.as_ref();
        let mut found = attempts.query([group.key])?;
        while let Some(row) = found.next()? {
            let attempt = self.attempt(row, group)?;
            if let Some(event) = closed.take_if(|event| event.seq < attempt.seq) {
                sink.delivery_event(event)?;
            }
            sink.attempt(&attempt)?;
        }
        closed.map_or(Ok(()), |event| sink.delivery_event(event))
    }

    fn attempt(&self, row: &Row<'_>, group: &Group) -> Result<AttemptRecord> {
        let attempt_no = codes::attempt_no(row.get(0)?)?;
        let claimed_at = rows::instant(row, 1)?;
        let outcome = codes::to_outcome(row.get(8)?)?;
        let id = AttemptRow {
            claimed_at,
            delivery: group.key,
            attempt_no,
        }
        .id();
        Ok(AttemptRecord {
            attempt_id: id.to_string(),
            seq: seq(row, 2)?,
            message_id: group.message_id.clone(),
            endpoint_id: group.endpoint_id.clone(),
            delivery_no: group.delivery_no,
            attempt_no,
            retry_rev: Self::named(&self.contracts, "contract", row.get(3)?)?.clone(),
            endpoint_rev: Self::named(&self.contracts, "contract", row.get(4)?)?.clone(),
            due_at: rows::instant(row, 5)?,
            started_at: rows::instant(row, 6)?,
            ended_at: Some(rows::instant(row, 7)?).filter(|_| outcome.is_some()),
            outcome,
            status: codes::to_status(row.get(9)?)?,
            error: row.get(10)?,
            retry_after: row.get(11)?,
            wait_ms: codes::wait(row.get(12)?)?,
            node: Self::named(&self.nodes, "node", row.get(13)?)?.clone(),
            trigger: codes::to_trigger(row.get(14)?)?,
        })
    }
}

const GROUP: &str = "SELECT key, endpoint, delivery_no, state, opened_at, opened_retry, closed_seq, closed_at, \
     closed_retry, reason FROM delivery";
