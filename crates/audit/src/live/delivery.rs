//! The scan by delivery: numbering, waits, draws, limits, ends and their evidence.

use super::endpoint::Pace;
use super::{Delivery, DeliveryId, Facts, Finding, Kind};
use crate::waits::{self, DrawKey};
use contract::ledger::{AttemptRecord, DeadReason, DeliveryEvent, DeliveryEventKind, EndpointState, Outcome};
use contract::model::{Anchor, Jitter, RetryAfter, StatusSet};
use contract::{Contract, Duration, Instant, RetryNo};

/// Starts are rounded down and ends up, so two that touch may seem to overlap by this much.
const ROUNDING: Duration = Duration::from_ms(1);

struct Judge<'a, 'f> {
    id: DeliveryId<'a>,
    delivery: &'f Delivery<'a>,
    facts: &'f Facts<'a>,
    pace: &'f Pace<'a>,
    findings: &'f mut Vec<Finding>,
}

pub(super) fn judge<'a>(
    id: DeliveryId<'a>,
    delivery: &Delivery<'a>,
    facts: &Facts<'a>,
    pace: &Pace<'a>,
    findings: &mut Vec<Finding>,
) {
    let mut judge = Judge {
        id,
        delivery,
        facts,
        pace,
        findings,
    };
    judge.events();
    for index in 0..delivery.attempts.len() {
        judge.attempt(index);
    }
    judge.end();
}

fn holds(set: &StatusSet, status: Option<u16>) -> bool {
    status.is_some_and(|status| set.ranges().iter().any(|(lo, hi)| (*lo..=*hi).contains(&status)))
}

/// What the receiver asked for, from the raw header.
fn asked(attempt: &AttemptRecord) -> Option<Duration> {
    waits::parse_retry_after(attempt.retry_after.as_deref()?, attempt.ended_at?)
}

/// The wait after Retry-After, before slack.
fn with_retry_after(rule: RetryAfter, law: Duration, drawn: Duration, asked: Option<Duration>) -> Duration {
    match (rule, asked) {
        (RetryAfter::Ignore, _) | (_, None) => drawn,
        (RetryAfter::Floor { max }, Some(asked)) => drawn.max(asked.min(max)),
        (RetryAfter::Replace { max }, Some(asked)) => asked.min(max),
        (RetryAfter::Bounded { max, times }, Some(asked)) => {
            let most = Duration::from_ms(law.as_ms().saturating_mul(u64::from(times)));
            asked.min(max).max(law).min(most)
        }
    }
}

impl<'a> Judge<'a, '_> {
    fn breach(&mut self, kind: Kind, text: &str, row: &str) {
        let (message, endpoint, no) = self.id;
        self.findings.push(Finding::new(
            kind,
            format!("{message} → {endpoint} #{no}: {text}"),
            vec![row.to_owned()],
        ));
    }

    fn contract(&mut self, rev: &str, row: &str) -> Option<Contract> {
        let known = self.facts.contracts.get(rev).cloned();
        if known.is_none() {
            self.breach(
                Kind::UnknownContract,
                &format!("no contract has the revision {rev}"),
                row,
            );
        }
        known
    }

    fn opened(&self) -> Option<&'a DeliveryEvent> {
        self.delivery
            .events
            .iter()
            .copied()
            .find(|event| event.event == DeliveryEventKind::Opened)
    }

    fn closed(&self) -> Option<&'a DeliveryEvent> {
        self.delivery
            .events
            .iter()
            .copied()
            .find(|event| event.event != DeliveryEventKind::Opened)
    }

    fn events(&mut self) {
        if self.opened().is_none() {
            self.breach(
                Kind::StateWithoutEvidence,
                "attempts of a delivery that was never opened",
                self.id.0,
            );
        }
        if self.delivery.events.len() > 2 {
            self.breach(Kind::StateWithoutEvidence, "more than one final event", self.id.0);
        }
    }

    fn attempt(&mut self, index: usize) {
        let attempt = self.delivery.attempts[index];
        let row = attempt.attempt_id.as_str();
        if !self.facts.contracts.contains_key(attempt.endpoint_rev.as_str()) {
            self.breach(
                Kind::UnknownContract,
                &format!("no contract has the revision {}", attempt.endpoint_rev),
                row,
            );
        }
        self.numbering(index, attempt);
        let Some(contract) = self.contract(&attempt.retry_rev, row) else {
            return;
        };
        if attempt.attempt_no.get() > contract.retry.max_attempts {
            let text = format!(
                "attempt {} of at most {}",
                attempt.attempt_no, contract.retry.max_attempts
            );
            self.breach(Kind::TooManyAttempts, &text, row);
        }
        self.outcome(attempt, &contract);
        if let Some(closed) = self.closed().filter(|event| event.seq < attempt.seq) {
            let kind = match closed.event {
                DeliveryEventKind::Succeeded => Kind::AfterSuccess,
                _ => Kind::StateWithoutEvidence,
            };
            self.breach(
                kind,
                &format!(
                    "attempt {} after the delivery was {}",
                    attempt.attempt_no, closed.event
                ),
                row,
            );
        }
        self.age(attempt, &contract);
        if attempt.started_at < attempt.due_at {
            let text = format!(
                "started {} before it was due",
                attempt.due_at.since(attempt.started_at)
            );
            self.breach(Kind::TooEarly, &text, row);
        }
        if index > 0 {
            self.wait(self.delivery.attempts[index - 1], attempt, &contract);
        } else if let Some(opened) = self.opened() {
            if attempt.started_at < opened.at {
                let text = format!("started before it was opened at {}", opened.at);
                self.breach(Kind::TooEarly, &text, row);
            } else if attempt.due_at > opened.at {
                let text = format!(
                    "a first attempt due {} after it was opened",
                    attempt.due_at.since(opened.at)
                );
                self.breach(Kind::WaitTooLong, &text, row);
            }
        }
        self.lateness(attempt, &contract);
    }

    fn numbering(&mut self, index: usize, attempt: &AttemptRecord) {
        let due = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        let no = attempt.attempt_no.get();
        let same = index > 0 && self.delivery.attempts[index - 1].attempt_no == attempt.attempt_no;
        if same {
            self.breach(
                Kind::DuplicateAttempt,
                &format!("attempt {no} stands twice"),
                &attempt.attempt_id,
            );
        } else if no != due
            && index
                .checked_sub(1)
                .is_none_or(|at| self.delivery.attempts[at].attempt_no.get() + 1 != no)
        {
            self.breach(
                Kind::NumberingGap,
                &format!("attempt {no} where {due} was due"),
                &attempt.attempt_id,
            );
        }
    }

    fn outcome(&mut self, attempt: &AttemptRecord, contract: &Contract) {
        let in_set = holds(&contract.outcome.success, attempt.status);
        let wrong = match attempt.outcome {
            Some(Outcome::Succeeded) => !in_set,
            Some(Outcome::Failed) => in_set && attempt.error.is_none(),
            Some(Outcome::TimedOut | Outcome::Refused | Outcome::Interrupted) | None => false,
        };
        if wrong {
            let status = attempt
                .status
                .map_or_else(|| "no status".to_owned(), |status| status.to_string());
            let outcome = attempt.outcome.map_or("", Outcome::word);
            self.breach(
                Kind::OutcomeNotInContract,
                &format!("{status} recorded as {outcome}"),
                &attempt.attempt_id,
            );
        }
    }

    fn age(&mut self, attempt: &AttemptRecord, contract: &Contract) {
        let (Some(age), Some(opened)) = (contract.retry.max_age, self.opened()) else {
            return;
        };
        if attempt.started_at > opened.at + age {
            let text = format!(
                "started {} after it was opened, max_age is {age}",
                attempt.started_at.since(opened.at)
            );
            self.breach(Kind::AfterMaxAge, &text, &attempt.attempt_id);
        }
    }

    fn wait(&mut self, before: &AttemptRecord, attempt: &AttemptRecord, contract: &Contract) {
        let row = attempt.attempt_id.as_str();
        let Some(ended) = before.ended_at else {
            self.breach(
                Kind::Overlap,
                &format!("{} had not ended", before.attempt_id),
                row,
            );
            return;
        };
        if attempt.started_at + ROUNDING < ended {
            self.breach(
                Kind::Overlap,
                &format!(
                    "started {} before {} ended",
                    ended.since(attempt.started_at),
                    before.attempt_id
                ),
                row,
            );
        }
        if before.outcome == Some(Outcome::Succeeded) {
            self.breach(
                Kind::AfterSuccess,
                &format!("{} had succeeded", before.attempt_id),
                row,
            );
        }
        let retry_no = RetryNo::new(attempt.attempt_no.get().saturating_sub(1));
        let Some(law) = waits::law(contract, retry_no) else {
            self.breach(Kind::TooManyAttempts, "the schedule had stopped", row);
            return;
        };
        let drawn = self.draw(attempt, before, contract, law, retry_no);
        let asked = asked(before);
        let span = with_retry_after(contract.retry.retry_after, law, drawn, asked) + contract.retry.slack;
        let anchor = match contract.retry.anchor {
            _ if before.outcome == Some(Outcome::Interrupted) => ended,
            Anchor::End => ended,
            Anchor::Start => before.started_at,
            Anchor::First => self.delivery.attempts[0].started_at,
        };
        let due = anchor + span;
        if attempt.started_at < due {
            let no_header = anchor + drawn + contract.retry.slack;
            let kind = if attempt.started_at >= no_header {
                Kind::RetryAfterIgnored
            } else {
                Kind::TooEarly
            };
            let text = format!(
                "attempt {} started {} early: wait {span}",
                attempt.attempt_no,
                due.since(attempt.started_at)
            );
            self.breach(kind, &text, row);
        } else if attempt.due_at > due.max(ended) {
            let text = format!(
                "recorded as due {} later than the contract's {span}",
                attempt.due_at.since(due)
            );
            self.breach(Kind::WaitTooLong, &text, row);
        }
    }

    /// The wait of the record where it is the very draw; else the draw, and a breach.
    fn draw(
        &mut self,
        attempt: &AttemptRecord,
        before: &AttemptRecord,
        contract: &Contract,
        law: Duration,
        n: RetryNo,
    ) -> Duration {
        let key = DrawKey {
            message_id: self.id.0,
            endpoint_id: self.id.1,
            delivery_no: self.id.2,
            retry: n,
        };
        let previous = match contract.retry.jitter {
            Jitter::Decorrelated => before.wait_ms,
            _ => None,
        };
        let drawn = waits::draw(contract, &key, previous).unwrap_or(law);
        if attempt.wait_ms != Some(drawn) {
            let found = attempt
                .wait_ms
                .map_or_else(|| "none".to_owned(), |wait| wait.to_string());
            self.breach(
                Kind::WrongDraw,
                &format!("wait {found}, the draw is {drawn}"),
                &attempt.attempt_id,
            );
        }
        drawn
    }

    /// Overdue against the effective due time: an interval that a hold, downtime or the endpoint's own work covers excuses.
    fn lateness(&mut self, attempt: &AttemptRecord, contract: &Contract) {
        let late = attempt.started_at.since(attempt.due_at);
        let excused = self.excused(attempt.due_at, attempt.started_at);
        if late.saturating_sub(excused) > contract.retry.late_after
            && !self.pace.busy(
                self.id.1,
                attempt.due_at,
                attempt.started_at - ROUNDING,
                &contract.endpoint,
            )
        {
            let text = format!("started {late} after it was due, {excused} of it excused");
            self.breach(Kind::Overdue, &text, &attempt.attempt_id);
        }
    }

    /// How much of [from, to] was held or down, the two joined.
    fn excused(&self, from: Instant, to: Instant) -> Duration {
        let mut spans = self.facts.down.clone();
        let events = self.facts.states.get(self.id.1).map_or(&[][..], Vec::as_slice);
        for (index, event) in events.iter().enumerate() {
            if event.state != EndpointState::Active {
                let until = events.get(index + 1).map_or(Instant::MAX, |next| next.at);
                spans.push((event.at, until));
            }
        }
        spans.sort_unstable();
        let (mut at, mut sum) = (from, Duration::ZERO);
        for (start, end) in spans {
            let (start, end) = (start.max(at), end.min(to));
            if end > start {
                sum = sum + end.since(start);
                at = end;
            }
        }
        sum
    }

    fn end(&mut self) {
        let last = self.delivery.attempts.last().copied();
        let Some(closed) = self.closed() else {
            self.still_open(last);
            return;
        };
        match closed.event {
            DeliveryEventKind::Succeeded => {
                if last.is_none_or(|last| last.outcome != Some(Outcome::Succeeded)) {
                    self.breach(
                        Kind::StateWithoutEvidence,
                        "succeeded without an attempt that did",
                        self.id.0,
                    );
                }
            }
            DeliveryEventKind::Dead => self.dead(closed, last),
            DeliveryEventKind::Opened | DeliveryEventKind::Cancelled | DeliveryEventKind::Superseded => {}
        }
    }

    fn dead(&mut self, closed: &DeliveryEvent, last: Option<&AttemptRecord>) {
        let Some(contract) = self.contract(&closed.retry_rev, self.id.0) else {
            return;
        };
        let retry = &contract.retry;
        let made = last.map_or(0, |last| last.attempt_no.get());
        let reason = closed.reason.as_deref().unwrap_or("");
        let evidence = match DeadReason::from_word(reason) {
            Some(DeadReason::MaxAttempts) => made >= retry.max_attempts,
            Some(DeadReason::Terminal) => {
                last.is_some_and(|last| holds(&contract.outcome.terminal, last.status))
            }
            Some(DeadReason::ScheduleEnd) => waits::law(&contract, RetryNo::new(made)).is_none(),
            Some(DeadReason::MaxAge) => self.too_old(closed, &contract, last),
            Some(DeadReason::EndpointDisabled) => self.was(closed, EndpointState::Disabled),
            Some(DeadReason::EndpointDeleted) => self.was(closed, EndpointState::Deleted),
            None => {
                self.breach(
                    Kind::StateWithoutEvidence,
                    &format!("dead for `{reason}`, which is no reason"),
                    self.id.0,
                );
                return;
            }
        };
        if !evidence {
            let text = format!(
                "dead for {reason} after {made} of {} attempts, and nothing shows it",
                retry.max_attempts
            );
            self.breach(Kind::GaveUpEarly, &text, self.id.0);
        }
    }

    fn was(&self, closed: &DeliveryEvent, state: EndpointState) -> bool {
        let events = self.facts.states.get(self.id.1).map_or(&[][..], Vec::as_slice);
        events
            .iter()
            .rev()
            .find(|event| event.seq < closed.seq)
            .is_some_and(|event| event.state == state)
    }

    fn too_old(&self, closed: &DeliveryEvent, contract: &Contract, last: Option<&AttemptRecord>) -> bool {
        let (Some(age), Some(opened)) = (contract.retry.max_age, self.opened()) else {
            return false;
        };
        let limit = opened.at + age;
        let latest = last.map(|last| {
            let n = RetryNo::new(last.attempt_no.get());
            let (_, hi) = waits::interval(contract, n).unwrap_or_default();
            let law = waits::law(contract, n).unwrap_or_default();
            let wait = with_retry_after(contract.retry.retry_after, law, hi, asked(last));
            last.ended_at.unwrap_or(closed.at) + wait + contract.retry.slack
        });
        closed.at > limit || latest.is_some_and(|latest| latest > limit)
    }

    fn still_open(&mut self, last: Option<&AttemptRecord>) {
        let Some(opened) = self.opened() else { return };
        let (since, rev) = match last {
            Some(last) if last.outcome.is_none() => return,
            Some(last) if last.outcome == Some(Outcome::Succeeded) => {
                self.breach(
                    Kind::StateWithoutEvidence,
                    "an attempt succeeded and the delivery did not",
                    &last.attempt_id,
                );
                return;
            }
            Some(last) => (last, last.retry_rev.as_str()),
            None => return self.waits_since(opened.at, &opened.retry_rev, Duration::ZERO),
        };
        let Some(contract) = self.facts.contracts.get(rev) else {
            return;
        };
        let n = RetryNo::new(since.attempt_no.get());
        let Some((_, hi)) = waits::interval(contract, n).filter(|_| n.get() < contract.retry.max_attempts)
        else {
            self.breach(
                Kind::Abandoned,
                "no attempt is left and no event ended it",
                &since.attempt_id,
            );
            return;
        };
        let law = waits::law(contract, n).unwrap_or_default();
        let wait = with_retry_after(contract.retry.retry_after, law, hi, asked(since)) + contract.retry.slack;
        self.waits_since(since.ended_at.unwrap_or(opened.at), rev, wait);
    }

    fn waits_since(&mut self, anchor: Instant, rev: &str, wait: Duration) {
        let Some(contract) = self.facts.contracts.get(rev) else {
            return;
        };
        let due = anchor + wait;
        let late = self
            .facts
            .as_of
            .since(due)
            .saturating_sub(self.excused(due, self.facts.as_of));
        if late > contract.retry.late_after
            && !self
                .pace
                .busy(self.id.1, due, self.facts.as_of, &contract.endpoint)
        {
            self.breach(
                Kind::Abandoned,
                &format!("due at {due} and not tried, {late} unexcused"),
                self.id.0,
            );
        }
    }
}
