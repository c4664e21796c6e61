//! Which file has which columns, and what record a row of them is.

use super::cells::Row;
use crate::facts::FactsError;
use crate::judge::Judge;
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, DeliveryEventKind, EndpointEvent, EndpointState,
    MessageRecord, NodeEvent, NodeEventKind, Outcome, Trigger,
};
use contract::{AttemptNo, DeliveryNo, Duration, Instant, Seq};

/// A kind of record, and so a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Contract,
    Node,
    Endpoint,
    Message,
    Delivery,
    Attempt,
}

impl Kind {
    pub(super) const ALL: &'static [Self] = &[
        Self::Contract,
        Self::Node,
        Self::Endpoint,
        Self::Message,
        Self::Delivery,
        Self::Attempt,
    ];

    /// The file's name without its ending.
    pub(super) const fn stem(self) -> &'static str {
        match self {
            Self::Contract => "contracts",
            Self::Node => "node_events",
            Self::Endpoint => "endpoint_events",
            Self::Message => "messages",
            Self::Delivery => "delivery_events",
            Self::Attempt => "attempts",
        }
    }

    pub(super) const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Contract => &["rev", "canonical"],
            Self::Node => &["seq", "node", "at", "boot_id", "mono_ms", "event", "size_ms"],
            Self::Endpoint => &["seq", "endpoint_id", "at", "state", "why", "by"],
            Self::Message => &["seq", "message_id", "at", "deliveries"],
            Self::Delivery => &[
                "seq",
                "message_id",
                "endpoint_id",
                "delivery_no",
                "at",
                "event",
                "reason",
                "retry_rev",
            ],
            Self::Attempt => &[
                "attempt_id",
                "seq",
                "message_id",
                "endpoint_id",
                "delivery_no",
                "attempt_no",
                "retry_rev",
                "endpoint_rev",
                "due_at",
                "started_at",
                "ended_at",
                "outcome",
                "status",
                "error",
                "retry_after",
                "wait_ms",
                "node",
                "trigger",
            ],
        }
    }

    /// Reads a row as a record of this kind and hands it to the judge; its place in commit order.
    pub(super) fn take(self, row: &Row<'_>, judge: &mut Judge) -> Result<Option<Seq>, FactsError> {
        match self {
            Self::Contract => {
                judge.contract(&ContractRecord {
                    rev: row.id("rev")?,
                    canonical: row.text("canonical")?,
                });
                return Ok(None);
            }
            Self::Node => judge.node_event(&node_event(row)?),
            Self::Endpoint => judge.endpoint_event(&endpoint_event(row)?),
            Self::Message => judge.message(&message(row)?)?,
            Self::Delivery => judge.delivery_event(&delivery_event(row)?)?,
            Self::Attempt => judge.attempt(&attempt(row)?)?,
        }
        seq(row).map(Some)
    }
}

fn seq(row: &Row<'_>) -> Result<Seq, FactsError> {
    row.number("seq").map(Seq::new)
}

fn instant(row: &Row<'_>, column: &str) -> Result<Instant, FactsError> {
    row.number(column).map(Instant::from_unix_ms)
}

fn node_event(row: &Row<'_>) -> Result<NodeEvent, FactsError> {
    Ok(NodeEvent {
        seq: seq(row)?,
        node: row.id("node")?,
        at: instant(row, "at")?,
        boot_id: row.text("boot_id")?,
        mono_ms: row.number("mono_ms")?,
        event: row.word("event", NodeEventKind::ALL, NodeEventKind::from_word)?,
        size_ms: row.number("size_ms")?,
    })
}

fn endpoint_event(row: &Row<'_>) -> Result<EndpointEvent, FactsError> {
    Ok(EndpointEvent {
        seq: seq(row)?,
        endpoint_id: row.id("endpoint_id")?,
        at: instant(row, "at")?,
        state: row.word("state", EndpointState::ALL, EndpointState::from_word)?,
        why: row.optional_text("why")?,
        by: row.text("by")?,
    })
}

fn message(row: &Row<'_>) -> Result<MessageRecord, FactsError> {
    Ok(MessageRecord {
        seq: seq(row)?,
        message_id: row.id("message_id")?,
        at: instant(row, "at")?,
        deliveries: row.number("deliveries")?,
    })
}

fn delivery_event(row: &Row<'_>) -> Result<DeliveryEvent, FactsError> {
    Ok(DeliveryEvent {
        seq: seq(row)?,
        message_id: row.id("message_id")?,
        endpoint_id: row.id("endpoint_id")?,
        delivery_no: row.number("delivery_no").map(DeliveryNo::new)?,
        at: instant(row, "at")?,
        event: row.word("event", DeliveryEventKind::ALL, DeliveryEventKind::from_word)?,
        reason: row.optional_text("reason")?,
        retry_rev: row.text("retry_rev")?,
    })
}

fn attempt(row: &Row<'_>) -> Result<AttemptRecord, FactsError> {
    Ok(AttemptRecord {
        attempt_id: row.id("attempt_id")?,
        seq: seq(row)?,
        message_id: row.id("message_id")?,
        endpoint_id: row.id("endpoint_id")?,
        delivery_no: row.number("delivery_no").map(DeliveryNo::new)?,
        attempt_no: row.number("attempt_no").map(AttemptNo::new)?,
        retry_rev: row.text("retry_rev")?,
        endpoint_rev: row.text("endpoint_rev")?,
        due_at: instant(row, "due_at")?,
        started_at: instant(row, "started_at")?,
        ended_at: row.optional("ended_at")?.map(Instant::from_unix_ms),
        outcome: row.optional_word("outcome", Outcome::ALL, Outcome::from_word)?,
        status: row.optional("status")?,
        error: row.optional_text("error")?,
        retry_after: row.optional_text("retry_after")?,
        wait_ms: row.optional("wait_ms")?.map(Duration::from_ms),
        node: row.id("node")?,
        trigger: row.word("trigger", Trigger::ALL, Trigger::from_word)?,
    })
}
