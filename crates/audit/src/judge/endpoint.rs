//! The scan by endpoint and time: state, gap, rate and in-flight window at each start, and what excuses those who were late.
//!
//! One sweep over an endpoint's starts, ends and late attempts. Between two moments of the sweep nothing may start while
//! the endpoint is not active, no node is up, the window is full, the gap after a start is not over, or the rate is
//! used up: that much, and no more, is excused.

use super::codec::{Reader, Writer};
use super::context::{Context, Span};
use super::finding::{Finding, Findings, Kind};
use super::sort::{Key, Sorted, Sorter};
use contract::ledger::{AttemptRecord, EndpointState, Outcome};
use contract::model::{Contract, EndpointClauses};
use contract::{Duration, Instant, Seq};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

/// Starts are rounded down and ends up: two that touch can seem to overlap by so much.
const ROUNDING: Duration = Duration::from_ms(1);
/// At one moment a late attempt's due time comes before starts.
const LATE: u8 = 0;
const START: u8 = 1;

/// Somebody who is late, or of whom nothing came: to be excused or named.
pub(super) struct Late {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) row: String,
    pub(super) due: Instant,
    pub(super) until: Instant,
    pub(super) late_after: Duration,
}

/// One start at an endpoint, on the axis of elapsed time.
struct Start {
    attempt_id: String,
    seq: Seq,
    endpoint_rev: String,
    /// Its end, at the earliest and at the latest: around a clock that was set back they differ.
    end: (Instant, Instant),
    /// False where the row has the claim's reading, and the request left later or not at all.
    sure: bool,
}

/// Takes what the scan by delivery finds at each endpoint, and puts it in order of time.
pub(super) struct Paced(pub(super) Sorter);

impl Paced {
    pub(super) fn start(&mut self, context: &Context, row: &AttemptRecord) -> io::Result<()> {
        let at = context.elapsed().start(row);
        let key = Key::default()
            .text(&row.endpoint_id)
            .instant(at.as_unix_ms())
            .byte(START)
            .number(row.seq.get());
        let mut out = Writer::default();
        out.byte(START);
        out.text(&row.endpoint_id);
        out.instant(at);
        out.text(&row.attempt_id);
        out.number(row.seq.get());
        out.text(&row.endpoint_rev);
        let (earliest, latest) = context.end(row);
        out.instant(earliest);
        out.instant(latest);
        out.byte(u8::from(!matches!(
            row.outcome,
            None | Some(Outcome::Interrupted)
        )));
        self.0.push(&key.0, &out.0)
    }

    pub(super) fn late(&mut self, endpoint: &str, late: &Late) -> io::Result<()> {
        let key = Key::default()
            .text(endpoint)
            .instant(late.due.as_unix_ms())
            .byte(LATE)
            .number(0);
        let mut out = Writer::default();
        out.byte(LATE);
        out.text(endpoint);
        out.instant(late.due);
        out.byte(u8::from(late.kind == Kind::Abandoned));
        out.text(&late.name);
        out.text(&late.row);
        out.instant(late.until);
        out.number(late.late_after.as_ms());
        self.0.push(&key.0, &out.0)
    }
}

enum Moment {
    Late(Late),
    Start(Start),
}

fn read(bytes: &[u8]) -> Option<(String, Instant, Moment)> {
    let mut from = Reader(bytes);
    let is_start = from.byte()? == START;
    let (endpoint, at) = (from.text()?, from.instant()?);
    let moment = if is_start {
        Moment::Start(Start {
            attempt_id: from.text()?,
            seq: Seq::new(from.number()?),
            endpoint_rev: from.text()?,
            end: (from.instant()?, from.instant()?),
            sure: from.byte()? == 1,
        })
    } else {
        Moment::Late(Late {
            due: at,
            kind: if from.byte()? == 1 {
                Kind::Abandoned
            } else {
                Kind::Overdue
            },
            name: from.text()?,
            row: from.text()?,
            until: from.instant()?,
            late_after: Duration::from_ms(from.number()?),
        })
    };
    Some((endpoint, at, moment))
}

/// Judges every endpoint.
pub(super) fn scan(mut all: Sorted, context: &Context, findings: &mut Findings) -> io::Result<()> {
    let mut sweep: Option<Sweep<'_>> = None;
    while let Some((_, bytes)) = all.next()? {
        let (endpoint, at, moment) = read(&bytes).ok_or(io::ErrorKind::InvalidData)?;
        if sweep.as_ref().is_none_or(|sweep| sweep.endpoint != endpoint) {
            if let Some(mut done) = sweep.take() {
                done.advance(Instant::MAX, findings);
            }
            sweep = Some(Sweep::new(endpoint, context));
        }
        if let Some(sweep) = &mut sweep {
            sweep.advance(at, findings);
            match moment {
                Moment::Late(late) => sweep.waiting.push(Reverse(Waiting {
                    excused_before: sweep.blocked,
                    late,
                })),
                Moment::Start(start) => sweep.start(at, &start, findings),
            }
        }
    }
    if let Some(mut done) = sweep {
        done.advance(Instant::MAX, findings);
    }
    Ok(())
}

/// A late one between its due time and the moment that it is judged by.
struct Waiting {
    late: Late,
    excused_before: Duration,
}

impl Waiting {
    const fn order(&self) -> Instant {
        self.late.until
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

struct Sweep<'a> {
    endpoint: String,
    context: &'a Context,
    now: Instant,
    /// Not active, or no node up; those that are over are dropped.
    closed: VecDeque<Span>,
    /// Latest and earliest ends of attempts in flight, the first to end first.
    in_flight: BinaryHeap<Reverse<(Instant, Instant)>>,
    /// The latest starts, at most as many as a rate looks back.
    starts: VecDeque<Instant>,
    /// The latest start whose moment is sure, and its row.
    sure: VecDeque<(Instant, String)>,
    /// The contract of the latest start.
    clauses: Option<Arc<Contract>>,
    /// How long nothing might start since the sweep began.
    blocked: Duration,
    waiting: BinaryHeap<Reverse<Waiting>>,
}

impl<'a> Sweep<'a> {
    fn new(endpoint: String, context: &'a Context) -> Self {
        Self {
            closed: context.closed(&endpoint).into(),
            endpoint,
            context,
            now: Instant::from_unix_ms(i64::MIN),
            in_flight: BinaryHeap::new(),
            starts: VecDeque::new(),
            sure: VecDeque::new(),
            clauses: None,
            blocked: Duration::ZERO,
            waiting: BinaryHeap::new(),
        }
    }

    /// Goes on to `to`, judging on the way those whose moment has come.
    fn advance(&mut self, to: Instant, findings: &mut Findings) {
        while let Some(Reverse(next)) = self.waiting.peek()
            && next.order() <= to
        {
            let until = next.order();
            self.pass(until);
            if let Some(Reverse(waiting)) = self.waiting.pop() {
                self.judge(&waiting, findings);
            }
        }
        self.pass(to);
    }

    fn judge(&self, waiting: &Waiting, findings: &mut Findings) {
        let late = &waiting.late;
        let excused = self.blocked.saturating_sub(waiting.excused_before);
        let by = late.until.since(late.due).saturating_sub(excused);
        if by <= late.late_after {
            return;
        }
        let what = match late.kind {
            Kind::Abandoned => "was due at",
            _ => "started late: due at",
        };
        let text = format!(
            "{} {what} {}, nothing by {}: {by} without excuse ({excused} excused, {} allowed)",
            late.name, late.due, late.until, late.late_after
        );
        findings.add(Finding::new(late.kind, text, vec![late.row.clone()]));
    }

    /// Lets time pass, adding up how much of it nothing might start.
    fn pass(&mut self, to: Instant) {
        while self.now < to {
            let until = self.next_change(to);
            if self.is_blocked() {
                self.blocked = self.blocked + until.since(self.now);
            }
            self.now = until;
            while self
                .in_flight
                .peek()
                .is_some_and(|Reverse((end, _))| *end <= self.now)
            {
                self.in_flight.pop();
            }
            while self.closed.front().is_some_and(|(_, end)| *end <= self.now) {
                self.closed.pop_front();
            }
        }
    }

    /// The next moment at which something may become possible or impossible, at most `to`.
    fn next_change(&self, to: Instant) -> Instant {
        let mut next = to;
        let mut consider = |at: Instant| {
            if at > self.now && at < next {
                next = at;
            }
        };
        if let Some((from, end)) = self.closed.front() {
            consider(*from);
            consider(*end);
        }
        if let Some(Reverse((end, _))) = self.in_flight.peek() {
            consider(*end);
        }
        consider(self.paced_until());
        next
    }

    fn is_blocked(&self) -> bool {
        let closed = self.closed.front().is_some_and(|(from, _)| *from <= self.now);
        let limit = self
            .clauses
            .as_ref()
            .map_or(u32::MAX, |contract| contract.endpoint.in_flight);
        closed || self.in_flight.len() >= size(limit) || self.now < self.paced_until()
    }

    /// Until when gap and rate keep the next one waiting.
    fn paced_until(&self) -> Instant {
        let beginning = Instant::from_unix_ms(i64::MIN);
        let (Some(contract), Some(last)) = (&self.clauses, self.starts.back()) else {
            return beginning;
        };
        let clauses = &contract.endpoint;
        let rate = clauses.rate.and_then(|rate| {
            let oldest = self.starts.len().checked_sub(size(rate.starts))?;
            self.starts.get(oldest).map(|oldest| *oldest + rate.window)
        });
        (*last + clauses.min_gap).max(rate.unwrap_or(beginning))
    }

    fn start(&mut self, at: Instant, start: &Start, findings: &mut Findings) {
        self.state(start, findings);
        let contract = self.context.contract(&start.endpoint_rev);
        if let Some(contract) = &contract {
            if start.sure {
                self.pace(at, start, &contract.endpoint, findings);
            }
            self.window(at, start, &contract.endpoint, findings);
        }
        let (earliest, latest) = start.end;
        self.in_flight.push(Reverse((latest, earliest)));
        let back = contract
            .as_ref()
            .and_then(|contract| contract.endpoint.rate)
            .map_or(1, |rate| rate.starts);
        self.starts.push_back(at);
        if start.sure {
            self.sure.push_back((at, start.attempt_id.clone()));
        }
        while self.starts.len() > size(back) {
            self.starts.pop_front();
        }
        while self.sure.len() > size(back) {
            self.sure.pop_front();
        }
        self.clauses = contract.or(self.clauses.take());
    }

    fn breach(&self, kind: Kind, start: &Start, text: &str, more: &[&str], findings: &mut Findings) {
        let text = format!("{} at {}: {text}", start.attempt_id, self.endpoint);
        let rows = std::iter::once(start.attempt_id.as_str()).chain(more.iter().copied());
        findings.add(Finding::new(kind, text, rows.map(str::to_owned).collect()));
    }

    /// I4, by commit order, with an allow-list.
    fn state(&self, start: &Start, findings: &mut Findings) {
        let state = self.context.state_at(&self.endpoint, start.seq);
        if state != Some(EndpointState::Active) {
            let state = state.map_or("in no state that a record tells", EndpointState::word);
            let text = format!("claimed at seq {}, when the endpoint was {state}", start.seq);
            self.breach(Kind::ToInactiveEndpoint, start, &text, &[], findings);
        }
    }

    fn pace(&self, at: Instant, start: &Start, clauses: &EndpointClauses, findings: &mut Findings) {
        if let Some((before, row)) = self.sure.back()
            && at.since(*before) < clauses.min_gap
        {
            let text = format!(
                "{} after the start before, min_gap is {}",
                at.since(*before),
                clauses.min_gap
            );
            self.breach(Kind::MinGap, start, &text, &[row], findings);
        }
        let Some(rate) = clauses.rate else { return };
        let oldest = self
            .sure
            .len()
            .checked_sub(size(rate.starts))
            .and_then(|oldest| self.sure.get(oldest));
        if let Some((oldest, row)) = oldest
            && at.since(*oldest) < rate.window
        {
            let starts = u64::from(rate.starts) + 1;
            let text = format!(
                "{starts} starts within {}, the rate is {} in {}",
                at.since(*oldest),
                rate.starts,
                rate.window
            );
            self.breach(Kind::Rate, start, &text, &[row], findings);
        }
    }

    fn window(&self, at: Instant, start: &Start, clauses: &EndpointClauses, findings: &mut Findings) {
        if self.in_flight.len() < size(clauses.in_flight) {
            return;
        }
        let still = self
            .in_flight
            .iter()
            .filter(|Reverse((_, end))| *end > at + ROUNDING)
            .count()
            + 1;
        if still > size(clauses.in_flight) {
            let text = format!("{still} in flight, the limit is {}", clauses.in_flight);
            self.breach(Kind::InFlight, start, &text, &[], findings);
        }
    }
}

fn size(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
