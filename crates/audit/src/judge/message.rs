//! Gathers the deliveries of each message in order, and judges what lies between them: deliveries that are missing, and
//! numbers that are.

use super::context::Context;
use super::delivery::{Delivery, DeliveryScan};
use super::due::DeliveryId;
use super::endpoint::Paced;
use super::finding::{Finding, Findings, Kind};
use super::report::Judged;
use super::sort::Sorted;
use super::{ATTEMPT, EVENT, MESSAGE, codec, ids};
use contract::Instant;
use contract::ledger::{AttemptRecord, DeliveryEvent, DeliveryEventKind, MessageRecord};
use std::io;

pub(super) struct MessageScan<'a> {
    pub(super) context: &'a Context,
    pub(super) as_of: Instant,
    pub(super) since: Option<Instant>,
    pub(super) findings: &'a mut Findings,
    pub(super) judged: &'a mut Judged,
    pub(super) paced: &'a mut Paced,
}

/// A message as far as it has been read.
#[derive(Default)]
struct Current {
    id: String,
    records: Vec<MessageRecord>,
    /// Endpoints with a first delivery.
    opened: u32,
    /// The delivery before, at the same endpoint.
    before: Option<Before>,
    /// Something of it happened since the moment from which is judged.
    recent: bool,
    /// Somewhere a row of one of its deliveries.
    row: Option<String>,
}

struct Before {
    id: DeliveryId,
    closed: Option<DeliveryEventKind>,
}

enum Record {
    Message(MessageRecord),
    Event(DeliveryEvent),
    Attempt(AttemptRecord),
    Seen(super::receiver::Seen),
}

fn read(bytes: &[u8]) -> Option<Record> {
    let (what, rest) = bytes.split_first()?;
    match *what {
        MESSAGE => codec::read_message(rest).map(Record::Message),
        EVENT => codec::read_event(rest).map(Record::Event),
        ATTEMPT => codec::read_attempt(rest).map(Record::Attempt),
        _ => ids::read_seen(rest).map(Record::Seen),
    }
}

impl MessageScan<'_> {
    pub(super) fn run(&mut self, mut all: Sorted) -> io::Result<()> {
        let mut message = Current::default();
        let mut delivery: Option<Delivery> = None;
        while let Some((_, bytes)) = all.next()? {
            let record = read(&bytes).ok_or(io::ErrorKind::InvalidData)?;
            let id = match &record {
                Record::Message(record) => {
                    self.delivery(&mut message, delivery.take())?;
                    self.turn_to(&mut message, &record.message_id);
                    None
                }
                Record::Event(event) => Some((&event.message_id, &event.endpoint_id, event.delivery_no)),
                Record::Attempt(row) => Some((&row.message_id, &row.endpoint_id, row.delivery_no)),
                Record::Seen(_) => None,
            };
            if let Some((of, endpoint, no)) = id {
                let same =
                    |one: &Delivery| one.id.message == *of && one.id.endpoint == *endpoint && one.id.no == no;
                if !delivery.as_ref().is_some_and(same) {
                    self.delivery(&mut message, delivery.take())?;
                    self.turn_to(&mut message, of);
                    let id = DeliveryId {
                        message: of.clone(),
                        endpoint: endpoint.clone(),
                        no,
                    };
                    delivery = Some(Delivery {
                        id,
                        events: Vec::new(),
                        attempts: Vec::new(),
                        seen: Vec::new(),
                    });
                }
            }
            match (record, &mut delivery) {
                (Record::Message(record), _) => message.records.push(record),
                (Record::Event(event), Some(delivery)) => delivery.events.push(event),
                (Record::Attempt(row), Some(delivery)) => delivery.attempts.push(row),
                (Record::Seen(seen), Some(delivery)) => delivery.seen.push(seen),
                (_, None) => {}
            }
        }
        self.delivery(&mut message, delivery)?;
        self.turn_to(&mut message, "");
        Ok(())
    }

    /// The next message, if it is another one: judges the one that is complete.
    fn turn_to(&mut self, message: &mut Current, id: &str) {
        if message.id == id && !id.is_empty() {
            return;
        }
        let done = std::mem::take(message);
        id.clone_into(&mut message.id);
        let since = |at: Instant| self.since.is_none_or(|since| at >= since);
        if !(done.recent || done.records.iter().any(|record| since(record.at))) {
            return;
        }
        let row = |record: &MessageRecord| format!("seq {}", record.seq);
        match &done.records[..] {
            [] if done.row.is_none() => return,
            [] => {
                let text = format!("{}: deliveries of a message that no record accepts", done.id);
                self.findings.add(Finding::new(
                    Kind::StateWithoutEvidence,
                    text,
                    done.row.into_iter().collect(),
                ));
                return;
            }
            [record] => {
                if done.opened < record.deliveries {
                    let text = format!(
                        "{}: {} deliveries were due when it was accepted, {} were opened",
                        done.id, record.deliveries, done.opened
                    );
                    self.findings
                        .add(Finding::new(Kind::Lost, text, vec![row(record)]));
                }
            }
            [first, second, ..] => {
                let text = format!("{}: accepted twice", done.id);
                self.findings.add(Finding::new(
                    Kind::StateWithoutEvidence,
                    text,
                    vec![row(first), row(second)],
                ));
            }
        }
        self.judged.messages += 1;
    }

    fn delivery(&mut self, message: &mut Current, delivery: Option<Delivery>) -> io::Result<()> {
        let Some(one) = delivery else { return Ok(()) };
        let event_at = one.events.iter().map(|event| event.at);
        let attempt_at = one
            .attempts
            .iter()
            .map(|row| row.ended_at.unwrap_or(row.started_at));
        let latest = event_at.chain(attempt_at).max();
        let recent = self
            .since
            .is_none_or(|since| latest.is_some_and(|latest| latest >= since));
        let opened = one
            .events
            .iter()
            .any(|event| event.event == DeliveryEventKind::Opened);
        if opened && one.id.no.get() == 1 {
            message.opened += 1;
        }
        message.recent |= recent;
        let event_row = one.events.first().map(|event| format!("seq {}", event.seq));
        let row = event_row.or_else(|| one.attempts.first().map(|row| row.attempt_id.clone()));
        message.row = message.row.take().or_else(|| row.clone());
        if recent {
            self.judged.deliveries += 1;
            self.judged.attempts += one.attempts.len() as u64;
            self.judged.delivery_events += one.events.len() as u64;
            self.follows(message.before.as_ref(), &one, &row.unwrap_or_default());
            let mut scan = DeliveryScan {
                one: &one,
                context: self.context,
                as_of: self.as_of,
                findings: self.findings,
                paced: self.paced,
            };
            scan.judge()?;
        } else {
            // Its starts still pace those that are judged.
            for row in &one.attempts {
                self.paced.start(self.context, row)?;
            }
        }
        let closed = one
            .events
            .iter()
            .find(|event| event.event != DeliveryEventKind::Opened);
        message.before = Some(Before {
            closed: closed.map(|closed| closed.event),
            id: one.id,
        });
        Ok(())
    }

    /// A resend or redrive opens the next number, when the one before is final or superseded by it.
    fn follows(&mut self, before: Option<&Before>, one: &Delivery, row: &str) {
        let before = before
            .filter(|before| before.id.endpoint == one.id.endpoint && before.id.message == one.id.message);
        let last = before.map_or(0, |before| before.id.no.get());
        let mut breach = |kind, text: String| {
            let text = format!("{}: {text}", one.id);
            self.findings.add(Finding::new(kind, text, vec![row.to_owned()]));
        };
        if one.id.no.get() != last + 1 {
            breach(Kind::NumberingGap, format!("expected delivery {}", last + 1));
        }
        if before.is_some_and(|before| before.closed.is_none()) {
            breach(
                Kind::StateWithoutEvidence,
                format!("opened, and delivery {last} is not final"),
            );
        }
    }
}
