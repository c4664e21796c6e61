//! The audit of the live ledger (spec/engine.md): derives every decision again from contract and ledger, and names each
//! breach with its rows.
//!
//! Records come in any order, from a folder ([`judge_folder`]), from memory ([`Ledger`]) or from whatever feeds a
//! [`Judge`]. They are put in order on disk where memory does not hold them, and judged in two scans: by message,
//! endpoint and delivery (`delivery`, `ending`), and by endpoint and time (`endpoint`). Knows no clock, no store and
//! no scheduler; what cannot be judged is an error, never a clean report (I7).

mod codec;
mod context;
mod delivery;
mod due;
mod elapsed;
mod ending;
mod endpoint;
mod finding;
mod folder;
mod ids;
mod memory;
mod message;
mod receiver;
mod report;
mod sort;

pub use finding::{Finding, Kind};
pub use folder::{judge_folder, read_folder, read_receiver};
pub use memory::Ledger;
pub use report::{Judged, Report};

use crate::facts::FactsError;
use context::Context;
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, MessageRecord, NodeEvent,
};
use contract::{DeliveryNo, Instant};
use finding::Findings;
use sort::{Key, Sorter};
use std::collections::BTreeMap;
use std::io::BufRead;

/// How to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Judge as of this moment: what should have happened by then and has not is a breach. `None`: the latest moment in
    /// the ledger, at which a server that is not running is late with nothing.
    pub as_of: Option<Instant>,
    /// Judge only deliveries of which something happened since then, each of them whole.
    pub since: Option<Instant>,
    /// About so many bytes are held in memory before records go to temporary files.
    pub memory: usize,
    /// So many findings are listed; all are counted.
    pub listed: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            as_of: None,
            since: None,
            memory: 256 * 1024 * 1024,
            listed: 10_000,
        }
    }
}

/// Takes the records of a ledger, in any order, and judges them at the end.
pub struct Judge {
    options: Options,
    context: Context,
    findings: Findings,
    judged: Judged,
    inputs: BTreeMap<String, String>,
    latest: Option<Instant>,
    deliveries: Sorter,
    ids: Sorter,
}

/// What a record in the sorter of deliveries is; at one delivery they come in this order.
const MESSAGE: u8 = 0;
const EVENT: u8 = 1;
const ATTEMPT: u8 = 2;
const SEEN: u8 = 3;

fn delivery_key(message: &str, endpoint: &str, no: DeliveryNo) -> Key {
    Key::default()
        .text(message)
        .text(endpoint)
        .number(no.get().into())
}

impl Judge {
    /// A judge that has seen nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let share = options.memory / 4;
        Self {
            context: Context::default(),
            findings: Findings::new(options.listed),
            judged: Judged::default(),
            inputs: BTreeMap::new(),
            latest: None,
            deliveries: Sorter::new(share.saturating_mul(2)),
            ids: Sorter::new(share),
            options,
        }
    }

    fn saw(&mut self, at: Instant) {
        self.latest = self.latest.max(Some(at));
    }

    /// Names an input and its SHA-256 in the report, so that a stale report shows itself.
    pub fn input(&mut self, name: &str, sha256: &str) {
        self.inputs.insert(name.to_owned(), sha256.to_owned());
    }

    /// Takes a contract.
    pub fn contract(&mut self, record: &ContractRecord) {
        self.judged.contracts += 1;
        self.context.contract_record(record, &mut self.findings);
    }

    /// Takes a change of an endpoint's state.
    pub fn endpoint_event(&mut self, event: &EndpointEvent) {
        self.judged.endpoint_events += 1;
        self.saw(event.at);
        self.context.endpoint_event(event);
    }

    /// Takes what a node saw of itself and its clock.
    pub fn node_event(&mut self, event: &NodeEvent) {
        self.judged.node_events += 1;
        self.saw(event.at);
        self.context.node_event(event);
    }

    /// Takes a message.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn message(&mut self, message: &MessageRecord) -> Result<(), FactsError> {
        self.saw(message.at);
        let key = Key::default().text(&message.message_id);
        self.push(&key, MESSAGE, &codec::write_message(message))
    }

    /// Takes what happened to a delivery.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn delivery_event(&mut self, event: &DeliveryEvent) -> Result<(), FactsError> {
        self.saw(event.at);
        let key = delivery_key(&event.message_id, &event.endpoint_id, event.delivery_no);
        let key = key.byte(EVENT).number(event.seq.get());
        self.push(&key, EVENT, &codec::write_event(event))
    }

    /// Takes an attempt.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn attempt(&mut self, row: &AttemptRecord) -> Result<(), FactsError> {
        self.saw(row.started_at);
        if let Some(end) = row.ended_at {
            self.saw(end);
        }
        ids::ledger(&mut self.ids, row).map_err(FactsError::spill)?;
        let key = delivery_key(&row.message_id, &row.endpoint_id, row.delivery_no);
        let key = key.byte(ATTEMPT).number(row.seq.get());
        self.push(&key, ATTEMPT, &codec::write_attempt(row))
    }

    /// Takes a receiver's own log; `name` is what errors call it.
    ///
    /// # Errors
    /// It cannot be read, or a line is no request.
    pub fn receiver(&mut self, name: &str, log: impl BufRead) -> Result<(), FactsError> {
        let (ids, judged) = (&mut self.ids, &mut self.judged);
        receiver::read(name, log, |seen| {
            judged.receiver_lines += 1;
            ids::receiver(ids, &seen).map_err(FactsError::spill)
        })
    }

    fn push(&mut self, key: &Key, what: u8, value: &[u8]) -> Result<(), FactsError> {
        let mut tagged = Vec::with_capacity(value.len() + 1);
        tagged.push(what);
        tagged.extend_from_slice(value);
        self.deliveries.push(&key.0, &tagged).map_err(FactsError::spill)
    }

    /// Judges everything that was taken.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub fn finish(mut self) -> Result<Report, FactsError> {
        self.context.ready();
        let nothing = Instant::from_unix_ms(0);
        let as_of = self.options.as_of.or(self.latest).unwrap_or(nothing);
        self.scan(as_of).map_err(FactsError::spill)?;
        let Self {
            options,
            findings,
            judged,
            inputs,
            ..
        } = self;
        Ok(Report::new(options, as_of, judged, inputs, findings))
    }

    fn scan(&mut self, as_of: Instant) -> std::io::Result<()> {
        let empty = || Sorter::new(self.options.memory / 4);
        let ids = std::mem::replace(&mut self.ids, empty()).finish()?;
        ids::scan(ids, &mut self.deliveries, &mut self.findings)?;
        let deliveries = std::mem::replace(&mut self.deliveries, empty()).finish()?;
        let mut paced = endpoint::Paced(empty());
        let mut scan = message::MessageScan {
            context: &self.context,
            as_of,
            since: self.options.since,
            findings: &mut self.findings,
            judged: &mut self.judged,
            paced: &mut paced,
        };
        scan.run(deliveries)?;
        endpoint::scan(paced.0.finish()?, &self.context, &mut self.findings)
    }
}
