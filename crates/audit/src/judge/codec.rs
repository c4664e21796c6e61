//! Records as bytes for the sorter: private to one run of the auditor, never kept.

use contract::ledger::{AttemptRecord, DeliveryEvent, DeliveryEventKind, MessageRecord, Outcome, Trigger};
use contract::{AttemptNo, DeliveryNo, Duration, Instant, Seq};

/// Writes fields one after the other.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn number(&mut self, n: u64) {
        self.0.extend(n.to_le_bytes());
    }
    pub(super) fn instant(&mut self, at: Instant) {
        self.number(at.as_unix_ms().cast_unsigned());
    }
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }
    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Reads them back in that order. `None` for bytes that no [`Writer`] wrote.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }
    pub(super) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
    pub(super) fn instant(&mut self) -> Option<Instant> {
        self.number().map(|ms| Instant::from_unix_ms(ms.cast_signed()))
    }
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }
    pub(super) fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }
    pub(super) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            _ => read(self).map(Some),
        }
    }
    fn short<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }
}

fn place<T: PartialEq>(all: &[T], value: &T) -> u8 {
    let place = all.iter().position(|one| one == value);
    place
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(u8::MAX)
}

fn at_place<T: Copy>(all: &[T], place: u8) -> Option<T> {
    all.get(usize::from(place)).copied()
}

pub(super) fn write_attempt(row: &AttemptRecord) -> Vec<u8> {
    let mut out = Writer::default();
    out.text(&row.attempt_id);
    out.number(row.seq.get());
    out.text(&row.message_id);
    out.text(&row.endpoint_id);
    out.number(row.delivery_no.get().into());
    out.number(row.attempt_no.get().into());
    out.text(&row.retry_rev);
    out.text(&row.endpoint_rev);
    out.instant(row.due_at);
    out.instant(row.started_at);
    out.option(row.ended_at, Writer::instant);
    out.option(row.outcome, |out, outcome| {
        out.byte(place(Outcome::ALL, &outcome));
    });
    out.option(row.status, |out, status| out.number(status.into()));
    out.option(row.error.as_deref(), Writer::text);
    out.option(row.retry_after.as_deref(), Writer::text);
    out.option(row.wait_ms, |out, wait| out.number(wait.as_ms()));
    out.text(&row.node);
    out.byte(place(Trigger::ALL, &row.trigger));
    out.0
}

pub(super) fn read_attempt(bytes: &[u8]) -> Option<AttemptRecord> {
    let mut from = Reader(bytes);
    Some(AttemptRecord {
        attempt_id: from.text()?,
        seq: Seq::new(from.number()?),
        message_id: from.text()?,
        endpoint_id: from.text()?,
        delivery_no: DeliveryNo::new(from.short()?),
        attempt_no: AttemptNo::new(from.short()?),
        retry_rev: from.text()?,
        endpoint_rev: from.text()?,
        due_at: from.instant()?,
        started_at: from.instant()?,
        ended_at: from.option(Reader::instant)?,
        outcome: from.option(|from| at_place(Outcome::ALL, from.byte()?))?,
        status: from.option(Reader::short)?,
        error: from.option(Reader::text)?,
        retry_after: from.option(Reader::text)?,
        wait_ms: from.option(|from| from.number().map(Duration::from_ms))?,
        node: from.text()?,
        trigger: at_place(Trigger::ALL, from.byte()?)?,
    })
}

pub(super) fn write_event(event: &DeliveryEvent) -> Vec<u8> {
    let mut out = Writer::default();
    out.number(event.seq.get());
    out.text(&event.message_id);
    out.text(&event.endpoint_id);
    out.number(event.delivery_no.get().into());
    out.instant(event.at);
    out.byte(place(DeliveryEventKind::ALL, &event.event));
    out.option(event.reason.as_deref(), Writer::text);
    out.text(&event.retry_rev);
    out.0
}

pub(super) fn read_event(bytes: &[u8]) -> Option<DeliveryEvent> {
    let mut from = Reader(bytes);
    Some(DeliveryEvent {
        seq: Seq::new(from.number()?),
        message_id: from.text()?,
        endpoint_id: from.text()?,
        delivery_no: DeliveryNo::new(from.short()?),
        at: from.instant()?,
        event: at_place(DeliveryEventKind::ALL, from.byte()?)?,
        reason: from.option(Reader::text)?,
        retry_rev: from.text()?,
    })
}

pub(super) fn write_message(message: &MessageRecord) -> Vec<u8> {
    let mut out = Writer::default();
    out.number(message.seq.get());
    out.text(&message.message_id);
    out.instant(message.at);
    out.number(message.deliveries.into());
    out.0
}

pub(super) fn read_message(bytes: &[u8]) -> Option<MessageRecord> {
    let mut from = Reader(bytes);
    Some(MessageRecord {
        seq: Seq::new(from.number()?),
        message_id: from.text()?,
        at: from.instant()?,
        deliveries: from.short()?,
    })
}
