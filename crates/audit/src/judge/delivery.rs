//! The scan by delivery: each attempt against the contract and the attempts before it. How a delivery ends stands in
//! `ending`.

use super::context::Context;
use super::due::{self, DeliveryId, From, Next};
use super::endpoint::{Late, Paced};
use super::finding::{Finding, Findings, Kind};
use super::receiver::Seen;
use contract::ledger::{AttemptRecord, DeliveryEvent, DeliveryEventKind, Outcome};
use contract::model::{Anchor, Contract, StatusSet};
use contract::{Duration, Instant};
use std::io;
use std::sync::Arc;

/// A step of the wall clock up to this size is not in the ledger, and one that is may hold as much of slow drift.
const UNRECORDED_STEP: Duration = Duration::from_ms(500);
/// Starts are rounded down and ends up: two that touch can seem to overlap by so much.
const ROUNDING: Duration = Duration::from_ms(1);

/// All records of one delivery, each by `seq`.
pub(super) struct Delivery {
    pub(super) id: DeliveryId,
    pub(super) events: Vec<DeliveryEvent>,
    pub(super) attempts: Vec<AttemptRecord>,
    pub(super) seen: Vec<Seen>,
}

/// Judges one delivery.
pub(super) struct DeliveryScan<'a> {
    pub(super) one: &'a Delivery,
    pub(super) context: &'a Context,
    pub(super) as_of: Instant,
    pub(super) findings: &'a mut Findings,
    pub(super) paced: &'a mut Paced,
}

/// One attempt, and what the contract said of it.
struct Judged<'a> {
    row: &'a AttemptRecord,
    contract: Arc<Contract>,
    /// How many were made before it: its place by counting, whatever it calls itself (I5).
    before: &'a [AttemptRecord],
    next: Option<Next>,
}

impl DeliveryScan<'_> {
    pub(super) fn judge(&mut self) -> io::Result<()> {
        for place in 0..self.one.attempts.len() {
            self.attempt(place)?;
        }
        self.seen();
        self.ending()
    }

    pub(super) fn breach(&mut self, kind: Kind, text: &str, rows: &[&str]) {
        let text = format!("{}: {text}", self.one.id);
        let rows = rows.iter().map(|row| (*row).to_owned()).collect();
        self.findings.add(Finding::new(kind, text, rows));
    }

    fn attempt_breach(&mut self, kind: Kind, row: &AttemptRecord, text: &str) {
        self.breach(
            kind,
            &format!("attempt {}: {text}", row.attempt_no),
            &[&row.attempt_id],
        );
    }

    pub(super) fn opened(&self) -> Option<&DeliveryEvent> {
        self.one
            .events
            .iter()
            .find(|event| event.event == DeliveryEventKind::Opened)
    }

    pub(super) fn closed(&self) -> Option<&DeliveryEvent> {
        self.one
            .events
            .iter()
            .find(|event| event.event != DeliveryEventKind::Opened)
    }

    /// The contract of that revision; where there is none, a finding.
    pub(super) fn contract(&mut self, rev: &str, row: &str) -> Option<Arc<Contract>> {
        let known = self.context.contract(rev);
        if known.is_none() {
            let text = format!("no contract of the ledger has the revision {rev}");
            self.breach(Kind::UnknownContract, &text, &[row]);
        }
        known
    }

    fn attempt(&mut self, place: usize) -> io::Result<()> {
        let one = self.one;
        let (before, Some(row)) = (&one.attempts[..place], one.attempts.get(place)) else {
            return Ok(());
        };
        self.numbering(before, row);
        self.order(before, row);
        if row.endpoint_rev != row.retry_rev {
            self.contract(&row.endpoint_rev, &row.attempt_id);
        }
        self.paced.start(self.context, row)?;
        let Some(contract) = self.contract(&row.retry_rev, &row.attempt_id) else {
            return Ok(());
        };
        let next = due::next(&contract, &one.id, before);
        let judged = Judged {
            row,
            contract,
            before,
            next,
        };
        self.outcome(&judged);
        self.limits(&judged);
        self.wait(&judged);
        self.start(&judged)
    }

    fn numbering(&mut self, before: &[AttemptRecord], row: &AttemptRecord) {
        let last = before.last().map_or(0, |last| last.attempt_no.get());
        let due = last.saturating_add(1);
        if !before.is_empty() && row.attempt_no.get() == last {
            self.attempt_breach(Kind::DuplicateAttempt, row, "the number stands twice");
        } else if row.attempt_no.get() != due {
            self.attempt_breach(Kind::NumberingGap, row, &format!("expected number {due}"));
        }
        if row.ended_at.is_some() != row.outcome.is_some() {
            self.attempt_breach(
                Kind::StateWithoutEvidence,
                row,
                "an end without an outcome, or the other way round",
            );
        }
    }

    /// What may not follow what.
    fn order(&mut self, before: &[AttemptRecord], row: &AttemptRecord) {
        if let Some(success) = before.iter().find(|one| one.outcome == Some(Outcome::Succeeded)) {
            let text = format!("attempt {} had succeeded", success.attempt_no);
            self.attempt_breach(Kind::AfterSuccess, row, &text);
        } else if let Some(closed) = self.closed().filter(|closed| closed.seq < row.seq) {
            let text = format!(
                "claimed at seq {}, {} at seq {}",
                row.seq, closed.event, closed.seq
            );
            let kind = match closed.event {
                DeliveryEventKind::Succeeded => Kind::AfterSuccess,
                _ => Kind::StateWithoutEvidence,
            };
            self.attempt_breach(kind, row, &text);
        }
        let start = self.context.elapsed().start(row);
        // A wait that runs from the end is exact to the millisecond; others can touch within one.
        let from_end = |contract: Arc<Contract>| contract.retry.anchor == Anchor::End;
        let exact = self.context.contract(&row.retry_rev).is_some_and(from_end);
        let room = if exact { Duration::ZERO } else { ROUNDING };
        let crossed = before.iter().find_map(|one| match one.ended_at {
            None => Some(format!("attempt {} has not ended", one.attempt_no)),
            Some(end) if start + room < self.context.end(one).0 => Some(format!(
                "started at {}, before attempt {} ended at {end}",
                row.started_at, one.attempt_no
            )),
            Some(_) => None,
        });
        if let Some(text) = crossed {
            self.attempt_breach(Kind::Overlap, row, &text);
        }
    }

    fn outcome(&mut self, judged: &Judged<'_>) {
        let row = judged.row;
        let success = row
            .status
            .is_some_and(|status| holds(&judged.contract.outcome.success, status));
        let right = match row.outcome {
            Some(Outcome::Succeeded) => success,
            // A connection can break behind a good status; then there is an error to say so.
            Some(Outcome::Failed) => !success || row.error.is_some(),
            // Nothing was answered, or nothing whole.
            Some(Outcome::TimedOut) => true,
            Some(Outcome::Refused | Outcome::Interrupted) | None => row.status.is_none(),
        };
        if !right {
            let status = row
                .status
                .map_or_else(|| "no status".to_owned(), |status| status.to_string());
            let outcome = row.outcome.map_or("in flight", Outcome::word);
            self.attempt_breach(
                Kind::OutcomeNotInContract,
                row,
                &format!("{status} is recorded as {outcome}"),
            );
        }
    }

    fn limits(&mut self, judged: &Judged<'_>) {
        let (row, retry) = (judged.row, &judged.contract.retry);
        let place = judged.before.len() + 1;
        if u32::try_from(place).is_ok_and(|place| place > retry.max_attempts) {
            let text = format!("the {place}th of at most {}", retry.max_attempts);
            self.attempt_breach(Kind::TooManyAttempts, row, &text);
        }
        if let Some(last) = judged.before.last() {
            if let Some(status) = self.terminal(last) {
                let text = format!(
                    "attempt {} was answered {status}, which is not retried",
                    last.attempt_no
                );
                self.attempt_breach(Kind::TooManyAttempts, row, &text);
            } else if judged.next.is_none() && last.ended_at.is_some() {
                self.attempt_breach(Kind::TooManyAttempts, row, "the schedule had stopped");
            }
        }
        if let (Some(age), Some(opened)) = (retry.max_age, self.opened().map(|opened| opened.at))
            && row.started_at > opened + age
        {
            let text = format!(
                "started {} after it was opened, max_age is {age}",
                row.started_at.since(opened)
            );
            self.attempt_breach(Kind::AfterMaxAge, row, &text);
        }
    }

    /// The status of an answer that is not retried, by the contract of its own row.
    pub(super) fn terminal(&self, row: &AttemptRecord) -> Option<u16> {
        let contract = self.context.contract(&row.retry_rev)?;
        let status = row.status.filter(|_| row.outcome == Some(Outcome::Failed))?;
        holds(&contract.outcome.terminal, status).then_some(status)
    }

    fn wait(&mut self, judged: &Judged<'_>) {
        let row = judged.row;
        let found = row
            .wait_ms
            .map_or_else(|| "none".to_owned(), |wait| wait.to_string());
        match &judged.next {
            _ if judged.before.is_empty() && row.wait_ms.is_some() => {
                let text = format!("a wait of {found} led to a first attempt");
                self.attempt_breach(Kind::WrongDraw, row, &text);
            }
            Some(next) if row.wait_ms != Some(next.wait) => {
                let text = format!("the contract draws a wait of {}, recorded is {found}", next.wait);
                self.attempt_breach(Kind::WrongDraw, row, &text);
            }
            _ => {}
        }
    }

    /// Too early, too late, and a due time that is too late.
    fn start(&mut self, judged: &Judged<'_>) -> io::Result<()> {
        let row = judged.row;
        let due = match judged.next {
            Some(next) => {
                self.early(judged.before, row, &next);
                next.latest
            }
            None if judged.before.is_empty() => match self.opened().map(|opened| opened.at) {
                Some(opened) => {
                    if row.started_at < opened {
                        let text = format!("started at {}, opened at {opened}", row.started_at);
                        self.attempt_breach(Kind::TooEarly, row, &text);
                    }
                    opened
                }
                None => return Ok(()),
            },
            None => return Ok(()),
        };
        if row.due_at > due {
            let text = format!(
                "due at {due} by the contract, {} later by the row",
                row.due_at.since(due)
            );
            self.attempt_breach(Kind::WaitTooLong, row, &text);
        }
        let clock = self.context.elapsed();
        let ready = match (&judged.next, self.opened()) {
            (Some(next), _) => self.ready(next, judged.before, &row.node, clock.start(row)),
            (None, Some(opened)) => clock.reached(
                &row.node,
                clock.of_no_node(opened.seq, due),
                due,
                clock.start(row),
            ),
            (None, None) => due,
        };
        let late = Late {
            kind: Kind::Overdue,
            name: format!("{}: attempt {}", self.one.id, row.attempt_no),
            row: row.attempt_id.clone(),
            due: ready,
            until: clock.start(row),
            late_after: judged.contract.retry.late_after,
        };
        self.expected(&late)
    }

    /// On the axis of elapsed time: from when nothing of the delivery itself keeps the next attempt on that node, until
    /// a moment. Both clocks allow it, and the attempt before is over: a wait from a start can end sooner.
    pub(super) fn ready(&self, next: &Next, before: &[AttemptRecord], node: &str, until: Instant) -> Instant {
        let (wait, clock) = (next.latest.since(next.anchor), self.context.elapsed());
        let (Some(first), Some(last)) = (before.first(), before.last()) else {
            return next.latest;
        };
        let end = self.context.end(last).1;
        let anchor = match next.from {
            From::End => end,
            From::Start => clock.start(last),
            From::FirstStart => clock.start(first),
        };
        clock.reached(node, (anchor + wait).max(end), next.latest, until)
    }

    /// Late beyond measure, unless the scan by endpoint finds an excuse.
    pub(super) fn expected(&mut self, late: &Late) -> io::Result<()> {
        if late.until.since(late.due) > late.late_after {
            self.paced.late(&self.one.id.endpoint, late)?;
        }
        Ok(())
    }

    fn early(&mut self, before: &[AttemptRecord], row: &AttemptRecord, next: &Next) {
        let start = row.started_at;
        let wait = next.earliest.since(next.anchor);
        if start < next.earliest {
            let (kind, why) = if start < next.by_law.min(next.earliest) {
                (Kind::TooEarly, "")
            } else {
                (Kind::RetryAfterIgnored, ", as Retry-After asked")
            };
            let text = format!(
                "started at {start}, due at {}{why}: {} too early",
                next.earliest,
                next.earliest.since(start)
            );
            self.attempt_breach(kind, row, &text);
        } else if start < row.due_at {
            let text = format!("started at {start}, before its own due time {}", row.due_at);
            self.attempt_breach(Kind::TooEarly, row, &text);
        } else if let Some(elapsed) = self
            .elapsed(before, row, next)
            .filter(|it| *it + UNRECORDED_STEP < wait)
        {
            let text =
                format!("by elapsed time only {elapsed} of a wait of {wait}: the wall clock was set forward");
            self.attempt_breach(Kind::TooEarly, row, &text);
        }
    }

    /// How much time passed at most between the anchor and the start, where both were read by one node's clock.
    fn elapsed(&self, before: &[AttemptRecord], row: &AttemptRecord, next: &Next) -> Option<Duration> {
        let clock = self.context.elapsed();
        let (first, last) = (before.first()?, before.last()?);
        let (anchor, node) = match next.from {
            From::End => (self.context.end(last).0, &last.node),
            From::Start => (clock.start(last), &last.node),
            From::FirstStart => (clock.start(first), &first.node),
        };
        (*node == row.node).then(|| clock.start(row).since(anchor))
    }

    /// What the receiver saw, by its own clock: the next request no sooner than its answer and the wait.
    fn seen(&mut self) {
        let one = self.one;
        for (place, pair) in one.attempts.windows(2).enumerate() {
            let [before, row] = pair else { continue };
            let find = |id: &str| one.seen.iter().find(|seen| seen.attempt_id == id);
            let (Some(first), Some(second)) = (find(&before.attempt_id), find(&row.attempt_id)) else {
                continue;
            };
            let Some(contract) = self.context.contract(&row.retry_rev) else {
                continue;
            };
            let Some(next) = due::next(&contract, &one.id, &one.attempts[..=place]) else {
                continue;
            };
            // Only a wait that runs from the end can be measured from where the receiver stands.
            if next.from != From::End {
                continue;
            }
            let wait = next.earliest.since(next.anchor);
            let due_us = first
                .answered_us
                .unwrap_or(first.arrival_us)
                .saturating_add_unsigned(wait.as_ms().saturating_mul(1000));
            if second.arrival_us < due_us {
                let early = due_us.abs_diff(second.arrival_us);
                let text =
                    format!("came to the receiver {early} µs early, by its own clock (its wait is {wait})");
                let lines = [first.line, second.line].map(|line| format!("line {line}"));
                self.breach(
                    Kind::TooEarly,
                    &format!("attempt {}: {text}", row.attempt_no),
                    &[&row.attempt_id, &lines[0], &lines[1]],
                );
            }
        }
    }
}

pub(super) fn holds(set: &StatusSet, status: u16) -> bool {
    set.ranges()
        .iter()
        .any(|(low, high)| (*low..=*high).contains(&status))
}
