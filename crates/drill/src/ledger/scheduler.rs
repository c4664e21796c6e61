//! A small scheduler that plays the scenario and writes a native ledger, with at most one fault in it.
//!
//! It is written for the drill alone and knows only what the scenario needs: one law, one kind of jitter, one rule for
//! Retry-After. Without a fault its ledger must be clean, which the drill checks before it believes anything else.

use super::faults::LedgerFault;
use super::records::Records;
use super::scenario::{Answer, BEGIN, CRASH, HOUR, PLOTS, Plot, SECOND, STATES, Which, contract_text};
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, DeliveryEventKind, EndpointEvent, EndpointState,
    MessageRecord, NodeEvent, NodeEventKind, Outcome, Trigger,
};
use contract::{AttemptNo, DeliveryNo, Duration, Instant, Seq};
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const MAX_ATTEMPTS: u32 = 10;
const MAX_AGE: i64 = 5 * HOUR;
const CAP: i64 = HOUR;

/// Plays the scenario.
pub(super) fn play(fault: Option<LedgerFault>) -> Result<Records, contract::ContractError> {
    let mut contracts = Vec::new();
    let mut revs = Vec::new();
    for which in Which::ALL {
        let parsed = contract::parse(&contract_text(which), "drill.toml")?;
        revs.push((which, parsed.rev()));
        contracts.push(ContractRecord {
            rev: parsed.rev(),
            canonical: parsed.canonical(),
        });
    }
    let mut player = Player {
        fault,
        revs,
        log: Vec::new(),
        starts: BTreeMap::new(),
        failures: 0,
        failures_of: BTreeMap::new(),
    };
    player.frame();
    player.run();
    Ok(player.finish(contracts))
}

/// A record and the moment of its commit.
struct Entry {
    at: i64,
    /// Orders records of one moment: what was settled comes before what is claimed.
    rank: u8,
    record: Record,
}

enum Record {
    Attempt(AttemptRecord),
    Delivery(DeliveryEvent),
    Message(MessageRecord),
    Endpoint(EndpointEvent),
    Node(NodeEvent),
}

/// A delivery on its way.
#[derive(Clone)]
struct Going {
    plot: usize,
    attempt: u32,
    due: i64,
    wait: Option<i64>,
    first_start: i64,
    last_drawn: i64,
}

struct Player {
    fault: Option<LedgerFault>,
    revs: Vec<(Which, String)>,
    log: Vec<Entry>,
    /// Starts and ends of each endpoint.
    starts: BTreeMap<&'static str, Vec<(i64, i64)>>,
    /// Failures since the process began, for the faults that count those.
    failures: u32,
    failures_of: BTreeMap<&'static str, u32>,
}

impl Player {
    fn has(&self, fault: LedgerFault) -> bool {
        self.fault == Some(fault)
    }

    fn rev(&self, which: Which) -> String {
        self.revs
            .iter()
            .find(|(known, _)| *known == which)
            .map_or_else(String::new, |(_, rev)| rev.clone())
    }

    fn write(&mut self, at: i64, rank: u8, record: Record) {
        self.log.push(Entry { at, rank, record });
    }

    /// What is in the ledger whatever the scheduler does.
    fn frame(&mut self) {
        for (at, event) in [
            (BEGIN - SECOND, NodeEventKind::Up),
            (CRASH.0, NodeEventKind::Down),
            (CRASH.1, NodeEventKind::Up),
        ] {
            let record = NodeEvent {
                seq: Seq::new(0),
                node: "node-1".into(),
                at: Instant::from_unix_ms(at),
                boot_id: "boot-1".into(),
                mono_ms: (at - BEGIN + 10 * SECOND).unsigned_abs(),
                event,
                size_ms: 0,
            };
            self.write(at, 0, Record::Node(record));
        }
        for (endpoint, after, state) in STATES {
            let record = EndpointEvent {
                seq: Seq::new(0),
                endpoint_id: (*endpoint).into(),
                at: Instant::from_unix_ms(BEGIN + after),
                state: EndpointState::from_word(state).unwrap_or(EndpointState::Active),
                why: None,
                by: "drill".into(),
            };
            self.write(BEGIN + after, 1, Record::Endpoint(record));
        }
        let mut deliveries: BTreeMap<&str, (i64, u32)> = BTreeMap::new();
        for plot in PLOTS {
            deliveries.entry(plot.message).or_insert((plot.opened, 0)).1 += 1;
        }
        for (message, (opened, count)) in deliveries {
            let record = MessageRecord {
                seq: Seq::new(0),
                message_id: message.into(),
                at: Instant::from_unix_ms(BEGIN + opened),
                deliveries: count,
            };
            self.write(BEGIN + opened, 2, Record::Message(record));
        }
        for plot in PLOTS {
            self.event(plot, BEGIN + plot.opened, 3, DeliveryEventKind::Opened, None);
        }
    }

    fn event(&mut self, plot: &Plot, at: i64, rank: u8, event: DeliveryEventKind, reason: Option<&str>) {
        let record = DeliveryEvent {
            seq: Seq::new(0),
            message_id: plot.message.into(),
            endpoint_id: plot.endpoint.into(),
            delivery_no: DeliveryNo::FIRST,
            at: Instant::from_unix_ms(at),
            event,
            reason: reason.map(str::to_owned),
            retry_rev: self.rev(plot.contract),
        };
        self.write(at, rank, Record::Delivery(record));
    }

    /// The loop: what is due first goes first, if it may.
    fn run(&mut self) {
        let mut going: Vec<Going> = Vec::new();
        let mut queue = BinaryHeap::new();
        for (n, plot) in PLOTS.iter().enumerate() {
            let inherited = if self.has(LedgerFault::InitialDelay) {
                45 * SECOND
            } else {
                0
            };
            let due = BEGIN + plot.opened + inherited;
            going.push(Going {
                plot: n,
                attempt: 1,
                due,
                wait: None,
                first_start: due,
                last_drawn: 0,
            });
            queue.push(Reverse((due, n)));
        }
        while let Some(Reverse((at, n))) = queue.pop() {
            let Some(one) = going.get_mut(n) else { continue };
            let plot = &PLOTS[one.plot];
            let may = self.admit(plot, one, at);
            if may > at {
                if may > BEGIN + plot.opened + MAX_AGE && !self.has(LedgerFault::MaxAgeOvershot) {
                    let expiry = BEGIN + plot.opened + MAX_AGE + 1;
                    self.event(plot, expiry, 0, DeliveryEventKind::Dead, Some("max_age"));
                } else {
                    queue.push(Reverse((may, n)));
                }
                continue;
            }
            if let Some(next) = self.attempt(plot, one, at) {
                queue.push(Reverse((next, n)));
            }
        }
    }

    /// The moment from which an attempt may start: now, or the end of what stands in its way.
    fn admit(&self, plot: &Plot, one: &Going, at: i64) -> i64 {
        if (CRASH.0..CRASH.1).contains(&at) {
            return CRASH.1;
        }
        if !self.has(LedgerFault::DrainingAdmitted) {
            let changes = STATES.iter().filter(|(endpoint, ..)| *endpoint == plot.endpoint);
            let last = changes.clone().rfind(|(_, after, _)| BEGIN + after <= at);
            if last.is_some_and(|(.., state)| *state != "active") {
                let next = changes
                    .clone()
                    .find(|(_, after, state)| BEGIN + after > at && *state == "active");
                return next.map_or(i64::MAX, |(_, after, _)| BEGIN + after);
            }
        }
        if plot.endpoint != "ep-paced" {
            return at;
        }
        let none = Vec::new();
        let starts = self.starts.get(plot.endpoint).unwrap_or(&none);
        let mut may = at.max(one.due);
        if let Some((start, end)) = starts.last() {
            if !self.has(LedgerFault::MinGapIgnored) {
                may = may.max(start + 2 * SECOND);
            }
            if !self.has(LedgerFault::InFlightIgnored) && !self.has(LedgerFault::MinGapIgnored) {
                may = may.max(*end);
            }
        }
        if starts.len() >= 3 && !self.has(LedgerFault::RateIgnored) {
            may = may.max(starts[starts.len() - 3].0 + 20 * SECOND);
        }
        may
    }

    /// One attempt: writes its row and what follows from its answer; gives the moment of the next one.
    fn attempt(&mut self, plot: &Plot, one: &mut Going, at: i64) -> Option<i64> {
        let answer = answer_to(plot, one.attempt);
        let crashed = at < CRASH.0 && at + answer.took > CRASH.0;
        let end = if crashed { CRASH.1 } else { at + answer.took };
        let outcome = self.outcome(answer, crashed);
        if one.attempt == 1 {
            one.first_start = at;
        }
        self.starts.entry(plot.endpoint).or_default().push((at, end));
        let row = self.row(plot, one, (at, end), answer, outcome);
        if self.has(LedgerFault::DoubleScheduling) && one.attempt == 2 && plot.message == "msg-both" {
            let mut twin = row.clone();
            twin.attempt_id.push_str("-twin");
            self.write(at, 4, Record::Attempt(twin));
        }
        self.write(at, 4, Record::Attempt(row));
        if outcome == Outcome::Succeeded {
            self.event(plot, end, 0, DeliveryEventKind::Succeeded, None);
            if !self.has(LedgerFault::NotResetAfterSuccess) {
                self.failures_of.insert(plot.endpoint, 0);
            }
            return None;
        }
        self.failures += 1;
        *self.failures_of.entry(plot.endpoint).or_insert(0) += 1;
        if let Some(reason) = self.gives_up(one, answer, outcome) {
            self.event(plot, end, 0, DeliveryEventKind::Dead, Some(reason));
            return None;
        }
        Some(self.next(plot, one, (at, end), answer, outcome))
    }

    fn outcome(&self, answer: Answer, crashed: bool) -> Outcome {
        match answer.status {
            _ if crashed => Outcome::Interrupted,
            None => Outcome::TimedOut,
            Some(204) if self.has(LedgerFault::SuccessRetried) => Outcome::Failed,
            Some(200..=299) => Outcome::Succeeded,
            Some(_) => Outcome::Failed,
        }
    }

    fn row(
        &self,
        plot: &Plot,
        one: &Going,
        (at, end): (i64, i64),
        answer: Answer,
        outcome: Outcome,
    ) -> AttemptRecord {
        let answered = outcome != Outcome::Interrupted;
        let endpoint = if plot.endpoint == "ep-paced" {
            Which::Paced
        } else {
            Which::Reference
        };
        AttemptRecord {
            attempt_id: format!("atmpt-{}-{}-{}", plot.message, plot.endpoint, one.attempt),
            seq: Seq::new(0),
            message_id: plot.message.into(),
            endpoint_id: plot.endpoint.into(),
            delivery_no: DeliveryNo::FIRST,
            attempt_no: AttemptNo::new(one.attempt),
            retry_rev: self.rev(plot.contract),
            endpoint_rev: self.rev(endpoint),
            due_at: Instant::from_unix_ms(one.due),
            started_at: Instant::from_unix_ms(at),
            ended_at: Some(Instant::from_unix_ms(end)),
            outcome: Some(outcome),
            status: answer.status.filter(|_| answered),
            error: answer.status.is_none().then(|| "no answer in time".to_owned()),
            retry_after: answer.retry_after.filter(|_| answered).map(str::to_owned),
            wait_ms: one.wait.map(|ms| Duration::from_ms(ms.unsigned_abs())),
            node: "node-1".into(),
            trigger: Trigger::Scheduled,
        }
    }

    fn gives_up(&self, one: &Going, answer: Answer, outcome: Outcome) -> Option<&'static str> {
        let limit = if self.has(LedgerFault::OneAttemptTooMany) {
            MAX_ATTEMPTS + 1
        } else {
            MAX_ATTEMPTS
        };
        let early = self.has(LedgerFault::GivesUpEarly) && one.attempt >= 6;
        let terminal = answer.status == Some(410)
            || (self.has(LedgerFault::RetryableTerminal) && answer.status == Some(429));
        if outcome == Outcome::Failed && terminal {
            Some("terminal")
        } else if one.attempt >= limit || early {
            Some("max_attempts")
        } else {
            None
        }
    }

    /// Draws the wait after attempt n and says when the next is due.
    fn next(
        &self,
        plot: &Plot,
        one: &mut Going,
        (at, end): (i64, i64),
        answer: Answer,
        outcome: Outcome,
    ) -> i64 {
        let n = one.attempt;
        let wait = self.draw(plot, n, self.law(plot, one, n));
        one.last_drawn = wait;
        let asked = self.asked(answer, end).filter(|_| outcome == Outcome::Failed);
        let whole = match asked {
            Some(asked) if self.has(LedgerFault::RetryAfterSmaller) => wait.min(asked),
            Some(asked) => wait.max(asked),
            None => wait,
        };
        let anchor = if self.has(LedgerFault::FromStart) && outcome != Outcome::Interrupted {
            at
        } else if self.has(LedgerFault::FromFirstAttempt) && outcome != Outcome::Interrupted {
            one.first_start
        } else if self.has(LedgerFault::Overlap) && outcome == Outcome::TimedOut {
            at - wait + SECOND
        } else {
            end
        };
        let at_once = self.has(LedgerFault::InterruptedAtOnce) && outcome == Outcome::Interrupted;
        one.due = if at_once { end } else { (anchor + whole).max(at) };
        one.wait = Some(wait);
        one.attempt += 1;
        one.due
    }

    fn asked(&self, answer: Answer, end: i64) -> Option<i64> {
        let text = answer
            .retry_after
            .filter(|_| !self.has(LedgerFault::RetryAfterIgnored))?;
        match text.parse::<i64>() {
            Ok(seconds) => Some(seconds * SECOND),
            Err(_) if self.has(LedgerFault::RetryAfterDateMisread) => None,
            // The scenario's one date.
            Err(_) => Some(BEGIN + 1_200 * SECOND - end).filter(|ms| *ms > 0),
        }
    }

    /// The law's wait after attempt n of this delivery, in milliseconds.
    fn law(&self, plot: &Plot, one: &Going, n: u32) -> i64 {
        use LedgerFault as F;
        let base = match plot.contract {
            Which::Half if self.has(F::SubUnitTruncated) => 0,
            Which::Half => 500,
            _ => 30 * SECOND,
        };
        let of = |n: u32| base.saturating_mul(1_i64.checked_shl(n.saturating_sub(1)).unwrap_or(i64::MAX));
        let n64 = i64::from(n);
        let wait = match self.fault {
            Some(F::Linear) => base * n64,
            Some(F::Power) => base * n64 * n64,
            Some(F::ExponentTooHigh) => of(n + 1),
            Some(F::ExponentTooLow) if n == 1 => 0,
            Some(F::ExponentTooLow) => of(n - 1),
            Some(F::Mersenne) => of(n + 1) - base,
            Some(F::BaseAsRatio) => SECOND.saturating_mul((base / SECOND).max(1).saturating_pow(n)),
            Some(F::ConstantAdded) => base + SECOND * (1 << n),
            Some(F::UnitError) => of(n) / 1_000,
            Some(F::CapAsFloor) => of(n).max(CAP),
            Some(F::NotResetAfterSuccess) => {
                of(self.failures_of.get(plot.endpoint).copied().unwrap_or(n).min(40))
            }
            Some(F::ResetTooOften) => base,
            Some(F::SharedBetweenDeliveries) => of(self.failures.min(40)),
            Some(F::HoldsAdvanceTheCounter) if plot.endpoint == "ep-charlie" && n > 1 => of(n + 1),
            Some(F::CountsDown) => of(MAX_ATTEMPTS - n.min(MAX_ATTEMPTS - 1)),
            Some(F::AdvancedTwice) => of(2 * n - 1),
            Some(F::TimeZone) => of(n) + HOUR,
            Some(F::DelayDropped) => 0,
            Some(F::Compounding) => one.last_drawn.max(base).saturating_mul(1 << (n - 1)),
            Some(F::NestedRetries) if !n.is_multiple_of(3) => SECOND,
            _ => of(n),
        };
        match self.fault {
            Some(F::CapMissing | F::CapAsFloor | F::TimeZone) => wait,
            _ => wait.min(CAP),
        }
    }

    /// The draw within ±20 % for the jittered contract, the law's wait for the others.
    fn draw(&self, plot: &Plot, n: u32, law: i64) -> i64 {
        if plot.contract != Which::Jittered {
            return law;
        }
        let (low, high) = (law - law / 5, law + law / 5);
        if self.has(LedgerFault::JitterUndercuts) {
            return low / 2;
        }
        let message = if self.has(LedgerFault::JitterSameSeed) {
            "seed"
        } else {
            plot.message
        };
        let mut hasher = Sha256::new();
        let number = u64::from(n).to_be_bytes();
        let one = 1_u64.to_be_bytes();
        let fields: [&[u8]; 5] = [
            b"duehook-jitter-v1",
            message.as_bytes(),
            plot.endpoint.as_bytes(),
            &one,
            &number,
        ];
        for field in fields {
            hasher.update(u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes());
            hasher.update(field);
        }
        let u = hasher
            .finalize()
            .iter()
            .take(8)
            .fold(0_u64, |u, byte| (u << 8) | u64::from(*byte));
        let span = u128::from((high - low + 1).unsigned_abs());
        low + i64::try_from((u128::from(u) * span) >> 64).unwrap_or(0)
    }

    /// Puts everything in commit order and numbers it.
    fn finish(mut self, contracts: Vec<ContractRecord>) -> Records {
        self.log.sort_by_key(|entry| (entry.at, entry.rank));
        let mut records = Records {
            contracts,
            ..Records::default()
        };
        for (n, entry) in (1_u64..).zip(self.log) {
            let seq = Seq::new(n);
            match entry.record {
                Record::Attempt(row) => records.attempts.push(AttemptRecord { seq, ..row }),
                Record::Delivery(row) => records.deliveries.push(DeliveryEvent { seq, ..row }),
                Record::Message(row) => records.messages.push(MessageRecord { seq, ..row }),
                Record::Endpoint(row) => records.endpoints.push(EndpointEvent { seq, ..row }),
                Record::Node(row) => records.nodes.push(NodeEvent { seq, ..row }),
            }
        }
        records
    }
}

fn answer_to(plot: &Plot, attempt: u32) -> Answer {
    let at = usize::try_from(attempt).unwrap_or(usize::MAX).saturating_sub(1);
    plot.answers
        .get(at)
        .or(plot.answers.last())
        .copied()
        .unwrap_or(Answer {
            status: Some(200),
            took: 1,
            retry_after: None,
        })
}
