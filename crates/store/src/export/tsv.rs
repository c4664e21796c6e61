//! A ledger record as a line of tab-separated text: `-` for nothing, `\-` for that text itself, and `\\`, `\t`, `\n`,
//! `\r` for what would break the table.

use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, MessageRecord, NodeEvent,
};
use std::fmt::Display;
use std::io::Write;

/// A record kind that has a header and lines.
pub(super) trait Table {
    /// The fields' names in order, by spaces.
    const HEADER: &'static str;
    /// Appends its line, without the line's end.
    fn write(&self, line: &mut Vec<u8>);
}

/// A cell.
trait Cell {
    fn put(&self, line: &mut Vec<u8>);
}

impl Cell for String {
    fn put(&self, line: &mut Vec<u8>) {
        if self == "-" {
            line.extend_from_slice(b"\\-");
            return;
        }
        for byte in self.bytes() {
            match byte {
                b'\\' => line.extend_from_slice(b"\\\\"),
                b'\t' => line.extend_from_slice(b"\\t"),
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                _ => line.push(byte),
            }
        }
    }
}

impl<T: Cell> Cell for Option<T> {
    fn put(&self, line: &mut Vec<u8>) {
        match self {
            None => line.push(b'-'),
            Some(cell) => cell.put(line),
        }
    }
}

/// What is written as it is displayed and can hold nothing to escape.
fn plain(value: impl Display, line: &mut Vec<u8>) {
    let _ = write!(line, "{value}");
}

macro_rules! plain {
    ($($type:ty),+) => { $(impl Cell for $type { fn put(&self, line: &mut Vec<u8>) { plain(self, line); } })+ };
}
plain!(
    u16,
    u32,
    u64,
    i64,
    contract::Seq,
    contract::DeliveryNo,
    contract::AttemptNo,
    contract::Instant,
    contract::ledger::Outcome,
    contract::ledger::Trigger,
    contract::ledger::DeliveryEventKind,
    contract::ledger::EndpointState,
    contract::ledger::NodeEventKind
);

/// In milliseconds; for people it would be `1m30s`.
impl Cell for contract::Duration {
    fn put(&self, line: &mut Vec<u8>) {
        plain(self.as_ms(), line);
    }
}

macro_rules! table {
    ($record:ident: $first:ident $($field:ident)+) => {
        impl Table for $record {
            const HEADER: &'static str = concat!(stringify!($first), $(" ", stringify!($field)),+);
            fn write(&self, line: &mut Vec<u8>) {
                self.$first.put(line);
                $(line.push(b'\t'); self.$field.put(line);)+
            }
        }
    };
}
table!(AttemptRecord: attempt_id seq message_id endpoint_id delivery_no attempt_no retry_rev endpoint_rev due_at
    started_at ended_at outcome status error retry_after wait_ms node trigger);
table!(DeliveryEvent: seq message_id endpoint_id delivery_no at event reason retry_rev);
table!(MessageRecord: seq message_id at deliveries);
table!(EndpointEvent: seq endpoint_id at state why by);
table!(ContractRecord: rev canonical);
table!(NodeEvent: seq node at boot_id mono_ms event size_ms);

#[cfg(test)]
mod tests {
    use super::*;
    use contract::ledger::EndpointState;
    use contract::{Instant, Seq};

    #[test]
    fn every_text_finds_its_way_into_one_cell() {
        for (text, cell) in [
            (None, "-"),
            (Some(""), ""),
            (Some("-"), "\\-"),
            (Some("--"), "--"),
            (Some("a\tb\nc\rd\\e"), "a\\tb\\nc\\rd\\\\e"),
            (Some("ä"), "ä"),
        ] {
            let mut line = Vec::new();
            text.map(str::to_owned).put(&mut line);
            assert_eq!(String::from_utf8(line).unwrap(), cell, "{text:?}");
        }
    }

    #[test]
    fn a_line_has_the_headers_cells() {
        let event = EndpointEvent {
            seq: Seq::new(7),
            endpoint_id: "ep_1".to_owned(),
            at: Instant::from_unix_ms(-5),
            state: EndpointState::Draining,
            why: None,
            by: "a\tb".to_owned(),
        };
        let mut line = Vec::new();
        event.write(&mut line);
        assert_eq!(EndpointEvent::HEADER, "seq endpoint_id at state why by");
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "7\tep_1\t-5\tdraining\t-\ta\\tb"
        );
    }
}
