//! The scan by attempt id: one id, one row; one request in a receiver's log, one row of the ledger.

use super::codec::{Reader, Writer};
use super::delivery_key;
use super::finding::{Finding, Findings, Kind};
use super::receiver::Seen;
use super::sort::{Key, Sorted, Sorter};
use super::{ATTEMPT, SEEN};
use contract::ledger::AttemptRecord;
use contract::{DeliveryNo, Instant};
use std::io;

pub(super) fn ledger(ids: &mut Sorter, row: &AttemptRecord) -> io::Result<()> {
    let mut out = Writer::default();
    out.byte(ATTEMPT);
    out.text(&row.attempt_id);
    out.number(row.seq.get());
    out.text(&row.message_id);
    out.text(&row.endpoint_id);
    out.number(row.delivery_no.get().into());
    let key = Key::default()
        .text(&row.attempt_id)
        .byte(ATTEMPT)
        .number(row.seq.get());
    ids.push(&key.0, &out.0)
}

pub(super) fn receiver(ids: &mut Sorter, seen: &Seen) -> io::Result<()> {
    let mut out = Writer::default();
    out.byte(SEEN);
    out.0.extend(write(seen));
    let key = Key::default().text(&seen.attempt_id).byte(SEEN).number(seen.line);
    ids.push(&key.0, &out.0)
}

fn write(seen: &Seen) -> Vec<u8> {
    let mut out = Writer::default();
    out.number(seen.line);
    out.text(&seen.attempt_id);
    // Microseconds go where milliseconds do: the codec only carries them.
    out.instant(Instant::from_unix_ms(seen.arrival_us));
    out.option(seen.answered_us.map(Instant::from_unix_ms), Writer::instant);
    out.0
}

pub(super) fn read_seen(bytes: &[u8]) -> Option<Seen> {
    let mut from = Reader(bytes);
    Some(Seen {
        line: from.number()?,
        attempt_id: from.text()?,
        arrival_us: from.instant()?.as_unix_ms(),
        answered_us: from.option(Reader::instant)?.map(Instant::as_unix_ms),
    })
}

/// The row of the ledger that the lines of a log are held against.
struct Row {
    id: String,
    seq: u64,
    delivery: Key,
    requests: u64,
}

/// Judges ids, and hands what receivers saw on to the scan by delivery.
pub(super) fn scan(mut ids: Sorted, deliveries: &mut Sorter, findings: &mut Findings) -> io::Result<()> {
    let mut row: Option<Row> = None;
    while let Some((_, bytes)) = ids.next()? {
        let (what, rest) = bytes.split_first().ok_or(io::ErrorKind::InvalidData)?;
        if *what == ATTEMPT {
            let next = read_row(rest).ok_or(io::ErrorKind::InvalidData)?;
            if let Some(row) = row.as_ref().filter(|row| row.id == next.id) {
                let text = format!(
                    "{}: its id stands at seq {} and at seq {}",
                    row.id, row.seq, next.seq
                );
                findings.add(Finding::new(Kind::DuplicateAttempt, text, vec![next.id.clone()]));
            }
            row = Some(next);
            continue;
        }
        let seen = read_seen(rest).ok_or(io::ErrorKind::InvalidData)?;
        let known = row.as_mut().filter(|row| row.id == seen.attempt_id);
        let unknown = match known {
            None if seen.attempt_id.is_empty() => Some("a request without an attempt id".to_owned()),
            None => Some(format!(
                "a request for attempt {}, which the ledger does not know",
                seen.attempt_id
            )),
            Some(row) => {
                row.requests += 1;
                let again = format!(
                    "request {} for attempt {}, which is one row",
                    row.requests, row.id
                );
                (row.requests > 1).then_some(again)
            }
        };
        match (unknown, &row) {
            (Some(text), _) => {
                let line = format!("line {}", seen.line);
                findings.add(Finding::new(
                    Kind::NotInLedger,
                    format!("{line}: {text}"),
                    vec![line],
                ));
            }
            (None, Some(row)) => {
                let key = [&row.delivery.0[..], &[SEEN]].concat();
                let value = [&[SEEN][..], rest].concat();
                deliveries.push(&key, &value)?;
            }
            (None, None) => {}
        }
    }
    Ok(())
}

fn read_row(bytes: &[u8]) -> Option<Row> {
    let mut from = Reader(bytes);
    let (id, seq) = (from.text()?, from.number()?);
    let (message, endpoint) = (from.text()?, from.text()?);
    let no = DeliveryNo::new(u32::try_from(from.number()?).ok()?);
    Some(Row {
        id,
        seq,
        delivery: delivery_key(&message, &endpoint, no),
        requests: 0,
    })
}
