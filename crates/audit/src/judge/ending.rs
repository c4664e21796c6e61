//! How a delivery ends: every final state has its evidence, and what is not final has something to come.

use super::delivery::DeliveryScan;
use super::due;
use super::endpoint::Late;
use super::finding::Kind;
use crate::waits;
use contract::ledger::{AttemptRecord, DeadReason, DeliveryEvent, DeliveryEventKind, EndpointState, Outcome};
use contract::model::Contract;
use contract::{Duration, Instant, RetryNo};
use std::io;

/// Why a delivery may be dead, each by the rows.
struct Causes {
    attempts: bool,
    age: bool,
    terminal: bool,
    schedule: bool,
    endpoint: bool,
}

impl DeliveryScan<'_> {
    pub(super) fn ending(&mut self) -> io::Result<()> {
        let one = self.one;
        let of = |kind: DeliveryEventKind| one.events.iter().filter(move |event| event.event == kind).count();
        if of(DeliveryEventKind::Opened) != 1 {
            let times = of(DeliveryEventKind::Opened);
            let row = self.some_row();
            let text = format!("opened {times} times, expected once");
            self.breach(Kind::StateWithoutEvidence, &text, &[&row]);
        }
        let finals: Vec<&DeliveryEvent> = one
            .events
            .iter()
            .filter(|event| event.event != DeliveryEventKind::Opened)
            .collect();
        if let [first, second, ..] = finals[..] {
            let text = format!(
                "{} at seq {}, and {} after that",
                first.event, first.seq, second.event
            );
            let rows = [first.seq, second.seq].map(|seq| format!("seq {seq}"));
            self.breach(Kind::StateWithoutEvidence, &text, &[&rows[0], &rows[1]]);
        }
        for event in &one.events {
            self.contract(&event.retry_rev, &format!("seq {}", event.seq));
        }
        match finals.first() {
            None => self.open(),
            Some(closed) => {
                self.final_event(closed);
                Ok(())
            }
        }
    }

    /// A row to point at where the delivery as a whole is meant.
    fn some_row(&self) -> String {
        let event = self.one.events.first().map(|event| format!("seq {}", event.seq));
        let attempt = self.one.attempts.first().map(|row| row.attempt_id.clone());
        event.or(attempt).unwrap_or_default()
    }

    fn final_event(&mut self, closed: &DeliveryEvent) {
        let one = self.one;
        let succeeded = one
            .attempts
            .iter()
            .find(|row| row.outcome == Some(Outcome::Succeeded));
        let row = format!("seq {}", closed.seq);
        match closed.event {
            DeliveryEventKind::Succeeded if succeeded.is_none() => {
                self.breach(
                    Kind::StateWithoutEvidence,
                    "succeeded, and no attempt did",
                    &[&row],
                );
            }
            DeliveryEventKind::Dead => match succeeded {
                Some(success) => {
                    let text = format!("dead, although attempt {} succeeded", success.attempt_no);
                    self.breach(Kind::StateWithoutEvidence, &text, &[&row, &success.attempt_id]);
                }
                None => self.dead(closed, &row),
            },
            // A person's word, or a later delivery that the scan of a message looks for.
            _ => {}
        }
    }

    fn dead(&mut self, closed: &DeliveryEvent, row: &str) {
        let Some(contract) = self.context.contract(&closed.retry_rev) else {
            return;
        };
        let causes = self.causes(closed, &contract);
        let (made, max) = (self.one.attempts.len(), contract.retry.max_attempts);
        let reason = closed.reason.as_deref().unwrap_or("none");
        let Causes {
            attempts,
            age,
            terminal,
            schedule,
            endpoint,
        } = causes;
        if !(attempts || age || terminal || schedule || endpoint) {
            let text = format!(
                "dead after {made} of {max} attempts, reason {reason}, and nothing had come to an end"
            );
            self.breach(Kind::GaveUpEarly, &text, &[row]);
        }
        let borne_out = match DeadReason::from_word(reason) {
            Some(DeadReason::MaxAttempts) => attempts,
            Some(DeadReason::MaxAge) => age,
            Some(DeadReason::Terminal) => terminal,
            Some(DeadReason::ScheduleEnd) => schedule,
            Some(DeadReason::EndpointDisabled | DeadReason::EndpointDeleted) => endpoint,
            None => false,
        };
        if !borne_out {
            let text = format!("dead for the reason {reason}, which its rows do not bear out");
            self.breach(Kind::StateWithoutEvidence, &text, &[row]);
        }
    }

    fn causes(&self, closed: &DeliveryEvent, contract: &Contract) -> Causes {
        let attempts = &self.one.attempts;
        let made = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        let last = attempts.last();
        let next = due::next(contract, &self.one.id, attempts);
        let limit = self
            .opened()
            .zip(contract.retry.max_age)
            .map(|(opened, age)| opened.at + age);
        let gone = [EndpointState::Disabled, EndpointState::Deleted];
        Causes {
            attempts: made >= contract.retry.max_attempts,
            // Too old already, or a retry would start later than that.
            age: limit.is_some_and(|limit| closed.at > limit || next.is_some_and(|next| next.latest > limit)),
            terminal: last.is_some_and(|last| self.terminal(last).is_some()),
            schedule: made > 0 && waits::law(contract, RetryNo::new(made)).is_none(),
            endpoint: self
                .context
                .was(&self.one.id.endpoint, &gone, closed.seq, closed.at),
        }
    }

    /// Not final: an attempt is in flight, or one is to come.
    fn open(&mut self) -> io::Result<()> {
        let Some(last) = self.one.attempts.last() else {
            return self.never_tried();
        };
        let Some(contract) = self.context.contract(&last.retry_rev) else {
            return Ok(());
        };
        let made = u32::try_from(self.one.attempts.len()).unwrap_or(u32::MAX);
        let stuck = match last.outcome {
            None => return self.in_flight(last, &contract),
            Some(Outcome::Succeeded) => Some("it succeeded".to_owned()),
            Some(_) if made >= contract.retry.max_attempts => Some(format!("it was the last of {made}")),
            Some(_) => self
                .terminal(last)
                .map(|status| format!("its answer {status} is not retried")),
        };
        let next = due::next(&contract, &self.one.id, &self.one.attempts);
        match (stuck, next) {
            (Some(why), _) => {
                let text = format!(
                    "attempt {} ended, {why}, and no event ends the delivery",
                    last.attempt_no
                );
                self.breach(Kind::Abandoned, &text, &[&last.attempt_id]);
                Ok(())
            }
            (None, None) => {
                let text = format!(
                    "the schedule stops after attempt {}, and no event ends the delivery",
                    last.attempt_no
                );
                self.breach(Kind::Abandoned, &text, &[&last.attempt_id]);
                Ok(())
            }
            (None, Some(next)) => {
                let name = format!("{}: attempt {}", self.one.id, last.attempt_no.next());
                let ready = self.ready(&next, &self.one.attempts, &last.node, self.as_of);
                self.awaits(name, last, ready, contract.retry.late_after)
            }
        }
    }

    /// An attempt in flight is no breach, unless its deadline is long past and a node was there to end it.
    fn in_flight(&mut self, last: &AttemptRecord, contract: &Contract) -> io::Result<()> {
        let paced = self.context.contract(&last.endpoint_rev);
        let timeout = paced.map_or(contract.endpoint.timeout, |paced| paced.endpoint.timeout);
        let name = format!("{}: the end of attempt {}", self.one.id, last.attempt_no);
        let start = self.context.elapsed().start(last);
        self.awaits(name, last, start + timeout, contract.retry.late_after)
    }

    fn never_tried(&mut self) -> io::Result<()> {
        let Some((at, seq, rev)) = self
            .opened()
            .map(|opened| (opened.at, opened.seq, opened.retry_rev.clone()))
        else {
            return Ok(());
        };
        let Some(contract) = self.context.contract(&rev) else {
            return Ok(());
        };
        let late = Late {
            kind: Kind::Abandoned,
            name: format!("{}: attempt 1", self.one.id),
            row: format!("seq {seq}"),
            due: self.context.elapsed().of_no_node(seq, at),
            until: self.as_of,
            late_after: contract.retry.late_after,
        };
        self.expected(&late)
    }

    fn awaits(
        &mut self,
        name: String,
        last: &AttemptRecord,
        due: Instant,
        late_after: Duration,
    ) -> io::Result<()> {
        let late = Late {
            kind: Kind::Abandoned,
            name,
            row: last.attempt_id.clone(),
            due,
            until: self.as_of,
            late_after,
        };
        self.expected(&late)
    }
}
