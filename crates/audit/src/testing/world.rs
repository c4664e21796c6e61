//! A sender in virtual time that keeps its contracts, and the ledger that it writes. One loop over moments; records
//! come out in commit order. Waits are those of `waits`; when an attempt may start is decided here once more.

use super::{Dice, contracts};
use crate::judge::Ledger;
use crate::waits::{self, DrawKey};
use contract::ledger::{
    AttemptRecord, ContractRecord, DeadReason, DeliveryEvent, DeliveryEventKind, EndpointEvent,
    EndpointState, MessageRecord, NodeEvent, NodeEventKind, Outcome, Trigger,
};
use contract::model::{Anchor, Contract, StatusSet};
use contract::{AttemptNo, DeliveryNo, Duration, Instant, RetryNo, Seq};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::UNIX_EPOCH;

/// When it begins, by the wall clock. Moments within it are milliseconds since then, and are never set back.
const BEGIN: i64 = 1_700_000_000_000;
/// How long it is watched. Some deliveries are still on their way at the end.
const HORIZON: i64 = 180_000;
const NODE: &str = "node-1";

/// Something that happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Step(i64),
    /// Until when.
    Crash(i64),
    Recover,
    State(usize, EndpointState),
    End(usize),
    Message,
    Redrive(usize),
    Cancel(usize),
    /// The delivery's due time; the number tells a time that no longer counts.
    Due(usize, u64),
}

struct Endpoint {
    id: String,
    contract: usize,
    state: EndpointState,
    starts: Vec<i64>,
    in_flight: BTreeSet<usize>,
}

struct Delivery {
    message: String,
    endpoint: usize,
    no: DeliveryNo,
    contract: usize,
    opened: i64,
    closed: bool,
    trigger: Trigger,
    /// Places of its attempts among all of them.
    attempts: Vec<usize>,
    first_start: i64,
    /// Due by elapsed time and by the wall clock.
    due: (i64, Instant),
    wait: Option<Duration>,
    turn: u64,
}

struct World {
    dice: Dice,
    ledger: Ledger,
    contracts: Vec<(String, Contract)>,
    endpoints: Vec<Endpoint>,
    deliveries: Vec<Delivery>,
    /// Of each attempt: its delivery, and its start and end by elapsed time.
    attempts: Vec<(usize, i64, i64)>,
    queue: BinaryHeap<Reverse<(i64, What)>>,
    seq: u64,
    messages: usize,
    /// How far the wall clock was stepped so far.
    stepped: i64,
    /// No node is up from then to then.
    crashed_at: i64,
    down_until: i64,
}

pub(super) fn play(seed: u64) -> Ledger {
    let contracts: Vec<(String, Contract)> = contracts::all()
        .into_iter()
        .map(|contract| (contract.rev(), contract))
        .collect();
    let mut world = World {
        dice: Dice::new(seed),
        ledger: Ledger::default(),
        contracts,
        endpoints: Vec::new(),
        deliveries: Vec::new(),
        attempts: Vec::new(),
        queue: BinaryHeap::new(),
        seq: 0,
        messages: 0,
        stepped: 0,
        crashed_at: 0,
        down_until: 0,
    };
    world.set_up();
    world.run();
    world.ledger
}

fn holds(set: &StatusSet, status: u16) -> bool {
    set.ranges()
        .iter()
        .any(|(low, high)| (*low..=*high).contains(&status))
}

impl World {
    fn wall(&self, at: i64) -> Instant {
        Instant::from_unix_ms(BEGIN + at + self.stepped)
    }

    fn next_seq(&mut self) -> Seq {
        // Some room between any two, for records that are put there by hand.
        self.seq += 10;
        Seq::new(self.seq)
    }

    fn plan(&mut self, at: i64, what: What) {
        if at <= HORIZON {
            self.queue.push(Reverse((at, what)));
        }
    }

    fn set_up(&mut self) {
        for (rev, contract) in &self.contracts {
            self.ledger.contracts.push(ContractRecord {
                rev: rev.clone(),
                canonical: contract.canonical(),
            });
        }
        self.node(0, 0, NodeEventKind::Up, 0);
        let count = self.contracts.len() as u64;
        for n in 0..6 {
            let contract = usize::try_from(self.dice.below(count)).unwrap_or(0);
            self.endpoints.push(Endpoint {
                id: format!("ep-{n}"),
                contract,
                state: EndpointState::Disabled,
                starts: Vec::new(),
                in_flight: BTreeSet::new(),
            });
            self.state(0, n, EndpointState::Active);
        }
        for _ in 0..30 {
            let at = self.dice.between(0, HORIZON * 2 / 3);
            self.plan(at, What::Message);
        }
        let crash = self.dice.between(HORIZON / 4, HORIZON / 2);
        let recovery = crash + self.dice.between(200, 8_000);
        self.plan(crash, What::Crash(recovery));
        self.plan(recovery, What::Recover);
        let hold = self.dice.between(5_000, HORIZON / 2);
        self.plan(hold, What::State(0, EndpointState::Draining));
        let over = hold + self.dice.between(100, 40_000);
        self.plan(over, What::State(0, EndpointState::Active));
        let gone = self.dice.between(HORIZON / 3, HORIZON);
        self.plan(gone, What::State(1, EndpointState::Disabled));
        let deleted = self.dice.between(HORIZON / 3, HORIZON);
        self.plan(deleted, What::State(2, EndpointState::Deleted));
        // A clock that steps hides some breaches: some ledgers have steps, and some have none.
        let forward = self.dice.between(600, 90_000);
        let back = -self.dice.between(600, 20_000);
        for size in [forward, back] {
            let at = self.dice.between(1_000, HORIZON);
            if self.dice.chance(50) {
                self.plan(at, What::Step(size));
            }
        }
    }

    fn run(&mut self) {
        while let Some(Reverse((at, what))) = self.queue.pop() {
            let down = at < self.down_until;
            match what {
                // What a node does waits until one is up.
                What::Message | What::Redrive(_) | What::Cancel(_) | What::State(..) | What::Due(..)
                    if down =>
                {
                    let up = self.down_until;
                    self.plan(up, what);
                }
                What::End(_) if down => {}
                What::Step(_) if down => {}
                What::Step(size) => {
                    self.stepped += size;
                    self.node(at, at, NodeEventKind::Step, size);
                    // What waits for the wall clock may have waited long enough.
                    (0..self.deliveries.len()).for_each(|delivery| self.wake(at, delivery));
                }
                What::Crash(until) => (self.crashed_at, self.down_until) = (at, until),
                What::Recover => self.recover(at),
                What::State(endpoint, state) => self.state(at, endpoint, state),
                What::Message => self.message(at),
                What::Redrive(delivery) => self.redrive(at, delivery),
                What::Cancel(delivery) => self.cancel(at, delivery),
                What::Due(delivery, turn) => self.due(at, delivery, turn),
                What::End(attempt) => self.settle(at, attempt),
            }
        }
    }

    fn node(&mut self, at: i64, written: i64, event: NodeEventKind, size_ms: i64) {
        let seq = self.next_seq();
        self.ledger.node_events.push(NodeEvent {
            seq,
            node: NODE.to_owned(),
            at: self.wall(at),
            boot_id: "boot-1".to_owned(),
            mono_ms: written.unsigned_abs(),
            event,
            size_ms,
        });
    }

    /// A crash: nothing is written until the recovery, which ends what was in flight.
    fn recover(&mut self, at: i64) {
        let crashed = self.crashed_at;
        self.node(crashed, at, NodeEventKind::Down, 0);
        self.node(at, at, NodeEventKind::Up, 0);
        let all: Vec<usize> = self
            .endpoints
            .iter()
            .flat_map(|one| one.in_flight.iter().copied())
            .collect();
        for attempt in all {
            let row = &mut self.ledger.attempts[attempt];
            row.status = None;
            row.error = None;
            row.retry_after = None;
            row.outcome = Some(Outcome::Interrupted);
            self.attempts[attempt].2 = at;
            self.settle(at, attempt);
        }
    }

    fn state(&mut self, at: i64, endpoint: usize, state: EndpointState) {
        if self.endpoints[endpoint].state == EndpointState::Deleted {
            return;
        }
        self.endpoints[endpoint].state = state;
        let event = EndpointEvent {
            seq: self.next_seq(),
            endpoint_id: self.endpoints[endpoint].id.clone(),
            at: self.wall(at),
            state,
            why: self.dice.chance(50).then(|| "a test\tsays so".to_owned()),
            by: "testing".to_owned(),
        };
        self.ledger.endpoint_events.push(event);
        for delivery in 0..self.deliveries.len() {
            let one = &self.deliveries[delivery];
            let idle = self.idle(delivery);
            if one.endpoint != endpoint || one.closed || !idle {
                continue;
            }
            match dead_at(state) {
                Some(reason) => self.close(at, delivery, DeliveryEventKind::Dead, Some(reason)),
                None => self.wake(at, delivery),
            }
        }
    }

    fn message(&mut self, at: i64) {
        self.messages += 1;
        let message = format!("msg-{}", self.messages);
        let wanted: Vec<usize> = (0..self.endpoints.len())
            .filter(|n| self.endpoints[*n].state != EndpointState::Deleted && self.dice_wants(*n))
            .collect();
        let record = MessageRecord {
            seq: self.next_seq(),
            message_id: message.clone(),
            at: self.wall(at),
            deliveries: u32::try_from(wanted.len()).unwrap_or(0),
        };
        self.ledger.messages.push(record);
        let contract = usize::try_from(self.dice.below(self.contracts.len() as u64)).unwrap_or(0);
        for endpoint in wanted {
            self.open(
                at,
                &message,
                endpoint,
                contract,
                DeliveryNo::FIRST,
                Trigger::Scheduled,
            );
        }
    }

    fn dice_wants(&self, endpoint: usize) -> bool {
        // Without a throw of its own, so that `filter` need not borrow the dice: every third message skips it.
        !(self.messages + endpoint).is_multiple_of(3)
    }

    fn open(
        &mut self,
        at: i64,
        message: &str,
        endpoint: usize,
        contract: usize,
        no: DeliveryNo,
        trigger: Trigger,
    ) {
        let delivery = self.deliveries.len();
        self.deliveries.push(Delivery {
            message: message.to_owned(),
            endpoint,
            no,
            contract,
            opened: self.wall(at).as_unix_ms(),
            closed: false,
            trigger,
            attempts: Vec::new(),
            first_start: 0,
            due: (at, self.wall(at)),
            wait: None,
            turn: 0,
        });
        self.event(at, delivery, DeliveryEventKind::Opened, None);
        match dead_at(self.endpoints[endpoint].state) {
            Some(reason) => self.close(at, delivery, DeliveryEventKind::Dead, Some(reason)),
            None => self.wake(at, delivery),
        }
        if self.dice.chance(3) {
            let later = at + self.dice.between(0, 20_000);
            self.plan(later, What::Cancel(delivery));
        }
        if self.dice.chance(8) {
            let later = at + self.dice.between(0, 60_000);
            self.plan(later, What::Redrive(delivery));
        }
    }

    fn event(&mut self, at: i64, delivery: usize, event: DeliveryEventKind, reason: Option<&str>) {
        let seq = self.next_seq();
        let one = &self.deliveries[delivery];
        self.ledger.delivery_events.push(DeliveryEvent {
            seq,
            message_id: one.message.clone(),
            endpoint_id: self.endpoints[one.endpoint].id.clone(),
            delivery_no: one.no,
            at: self.wall(at),
            event,
            reason: reason.map(str::to_owned),
            retry_rev: self.contracts[one.contract].0.clone(),
        });
    }

    fn close(&mut self, at: i64, delivery: usize, event: DeliveryEventKind, reason: Option<DeadReason>) {
        self.deliveries[delivery].closed = true;
        self.event(at, delivery, event, reason.map(DeadReason::word));
    }

    fn redrive(&mut self, at: i64, delivery: usize) {
        let one = &self.deliveries[delivery];
        let (message, endpoint, contract, no) = (one.message.clone(), one.endpoint, one.contract, one.no);
        let later =
            |other: &Delivery| other.message == message && other.endpoint == endpoint && other.no > no;
        if self.deliveries.iter().any(later) || self.endpoints[endpoint].state == EndpointState::Deleted {
            return;
        }
        if !self.deliveries[delivery].closed {
            self.close(at, delivery, DeliveryEventKind::Superseded, None);
        }
        self.open(at, &message, endpoint, contract, no.next(), Trigger::Manual);
    }

    fn cancel(&mut self, at: i64, delivery: usize) {
        let one = &self.deliveries[delivery];
        let pending = self.idle(delivery);
        if pending && !one.closed {
            self.close(at, delivery, DeliveryEventKind::Cancelled, None);
        }
    }

    /// Looks at the delivery again at its due time, or now if that is over.
    fn wake(&mut self, at: i64, delivery: usize) {
        let one = &mut self.deliveries[delivery];
        one.turn += 1;
        let (turn, due) = (one.turn, one.due.0.max(at));
        self.plan(due, What::Due(delivery, turn));
    }

    fn due(&mut self, at: i64, delivery: usize, turn: u64) {
        let one = &self.deliveries[delivery];
        if one.closed || one.turn != turn || !self.idle(delivery) {
            return;
        }
        let max_age = self.contracts[one.contract].1.retry.max_age;
        let expired = max_age.is_some_and(|age| self.wall(at) > Instant::from_unix_ms(one.opened) + age);
        if expired {
            self.close(at, delivery, DeliveryEventKind::Dead, Some(DeadReason::MaxAge));
            return;
        }
        // Held: whoever opens the endpoint again wakes it.
        if self.endpoints[one.endpoint].state != EndpointState::Active {
            return;
        }
        let wall_wait = i64::try_from(one.due.1.since(self.wall(at)).as_ms()).unwrap_or(i64::MAX);
        let may = self
            .may_start(one.endpoint, at)
            .max(one.due.0)
            .max(at + wall_wait);
        if may == i64::MAX {
            return;
        }
        if may > at {
            self.plan(may, What::Due(delivery, turn));
            return;
        }
        self.start(at, delivery);
    }

    /// No attempt of it is in flight.
    fn idle(&self, delivery: usize) -> bool {
        let last = self.deliveries[delivery].attempts.last();
        last.is_none_or(|last| self.ledger.attempts[*last].outcome.is_some())
    }

    /// From when the endpoint's limits let somebody start; never, while the window is full: an end wakes all.
    fn may_start(&self, endpoint: usize, at: i64) -> i64 {
        let one = &self.endpoints[endpoint];
        let clauses = &self.contracts[one.contract].1.endpoint;
        let ms = |wait: Duration| i64::try_from(wait.as_ms()).unwrap_or(i64::MAX);
        let mut may = at;
        if let Some(last) = one.starts.last() {
            may = may.max(last + ms(clauses.min_gap));
        }
        if let Some(rate) = clauses.rate {
            let back = one
                .starts
                .len()
                .checked_sub(usize::try_from(rate.starts).unwrap_or(0));
            if let Some(oldest) = back.and_then(|back| one.starts.get(back)) {
                may = may.max(oldest + ms(rate.window));
            }
        }
        if one.in_flight.len() >= usize::try_from(clauses.in_flight).unwrap_or(0) {
            may = i64::MAX;
        }
        may
    }

    fn start(&mut self, at: i64, delivery: usize) {
        let attempt = self.attempts.len();
        let seq = self.next_seq();
        let took = self.dice.between(5, 4_000);
        let started_at = self.wall(at);
        let one = &mut self.deliveries[delivery];
        if one.attempts.is_empty() {
            one.first_start = at;
        }
        one.attempts.push(attempt);
        let endpoint = &mut self.endpoints[one.endpoint];
        endpoint.starts.push(at);
        endpoint.in_flight.insert(attempt);
        let first = one.attempts.len() == 1;
        self.ledger.attempts.push(AttemptRecord {
            attempt_id: format!("atmpt-{}", attempt + 1),
            seq,
            message_id: one.message.clone(),
            endpoint_id: endpoint.id.clone(),
            delivery_no: one.no,
            attempt_no: AttemptNo::new(u32::try_from(one.attempts.len()).unwrap_or(u32::MAX)),
            retry_rev: self.contracts[one.contract].0.clone(),
            endpoint_rev: self.contracts[endpoint.contract].0.clone(),
            due_at: one.due.1,
            started_at,
            ended_at: None,
            outcome: None,
            status: None,
            error: None,
            retry_after: None,
            wait_ms: one.wait,
            node: NODE.to_owned(),
            trigger: if first { one.trigger } else { Trigger::Scheduled },
        });
        self.attempts.push((delivery, at, at + took));
        self.plan(at + took, What::End(attempt));
    }

    fn settle(&mut self, at: i64, attempt: usize) {
        let (delivery, ..) = self.attempts[attempt];
        let endpoint = self.deliveries[delivery].endpoint;
        // Ended by a recovery already.
        if !self.endpoints[endpoint].in_flight.remove(&attempt) {
            return;
        }
        self.ledger.attempts[attempt].ended_at = Some(self.wall(at));
        if self.ledger.attempts[attempt].outcome.is_none() {
            self.answer(at, attempt);
        }
        let waiting: Vec<usize> = (0..self.deliveries.len())
            .filter(|n| {
                self.deliveries[*n].endpoint == endpoint && !self.deliveries[*n].closed && *n != delivery
            })
            .filter(|n| self.idle(*n))
            .collect();
        for other in waiting {
            self.wake(at, other);
        }
        self.follow(at, delivery, attempt);
    }

    /// What the receiver answers.
    fn answer(&mut self, at: i64, attempt: usize) {
        let status = self.dice.one_of(&[
            Some(200),
            Some(204),
            Some(500),
            Some(500),
            Some(502),
            Some(503),
            Some(429),
            Some(503),
            Some(404),
            None,
            None,
        ]);
        let contract = &self.contracts[self.deliveries[self.attempts[attempt].0].contract].1;
        let succeeded = status.is_some_and(|status| holds(&contract.outcome.success, status));
        let broken = self
            .dice
            .one_of(&[Outcome::TimedOut, Outcome::Failed, Outcome::Refused]);
        let later = self.dice.between(0, 60);
        let date = UNIX_EPOCH + std::time::Duration::from_millis(self.wall(at).as_unix_ms().unsigned_abs());
        let date = httpdate::fmt_http_date(date + std::time::Duration::from_secs(later.unsigned_abs()));
        let seconds = later.to_string();
        let header = self.dice.below(6);
        let row = &mut self.ledger.attempts[attempt];
        row.status = status;
        row.outcome = Some(match status {
            Some(_) if succeeded => Outcome::Succeeded,
            Some(_) => Outcome::Failed,
            None => broken,
        });
        row.error = status.is_none().then(|| "-".to_owned());
        if row.outcome == Some(Outcome::Failed) && status.is_some() {
            row.retry_after = match header {
                0 => Some(seconds),
                1 => Some(date),
                2 => Some("soon\\".to_owned()),
                3 => Some("99999999999999999999".to_owned()),
                _ => None,
            };
        }
    }

    /// What follows an attempt for its delivery.
    fn follow(&mut self, at: i64, delivery: usize, attempt: usize) {
        let one = &self.deliveries[delivery];
        if one.closed {
            return;
        }
        let (contract, made) = (&self.contracts[one.contract].1, one.attempts.len());
        let row = &self.ledger.attempts[attempt];
        let terminal = row.outcome == Some(Outcome::Failed)
            && row
                .status
                .is_some_and(|status| holds(&contract.outcome.terminal, status));
        if row.outcome == Some(Outcome::Succeeded) {
            self.close(at, delivery, DeliveryEventKind::Succeeded, None);
            return;
        }
        let max = usize::try_from(contract.retry.max_attempts).unwrap_or(usize::MAX);
        let next = self.next(delivery, attempt);
        let dead = match next {
            _ if terminal => Some(DeadReason::Terminal),
            _ if made >= max => Some(DeadReason::MaxAttempts),
            None => Some(DeadReason::ScheduleEnd),
            Some((due, _)) => {
                let limit = contract
                    .retry
                    .max_age
                    .map(|age| Instant::from_unix_ms(one.opened) + age);
                let old = limit.is_some_and(|limit| due.1 > limit);
                dead_at(self.endpoints[one.endpoint].state).or(old.then_some(DeadReason::MaxAge))
            }
        };
        match (dead, next) {
            (Some(reason), _) => self.close(at, delivery, DeliveryEventKind::Dead, Some(reason)),
            (None, Some((due, wait))) => {
                let one = &mut self.deliveries[delivery];
                one.due = due;
                one.wait = Some(wait);
                self.wake(at, delivery);
            }
            (None, None) => {}
        }
    }

    /// The next due time by both clocks, and the drawn wait.
    fn next(&self, delivery: usize, attempt: usize) -> Option<((i64, Instant), Duration)> {
        let one = &self.deliveries[delivery];
        let contract = &self.contracts[one.contract].1;
        let row = &self.ledger.attempts[attempt];
        let retry = RetryNo::new(row.attempt_no.get());
        let key = DrawKey {
            message_id: &one.message,
            endpoint_id: &self.endpoints[one.endpoint].id,
            delivery_no: one.no,
            retry,
        };
        let wait = waits::draw(contract, &key, row.wait_ms)?;
        let law = waits::law(contract, retry)?;
        let ended = row.ended_at?;
        let asked = row
            .retry_after
            .as_deref()
            .and_then(|header| waits::parse_retry_after(header, ended));
        let whole = waits::combine(contract.retry.retry_after, law, wait, asked) + contract.retry.slack;
        let (_, start, end) = self.attempts[attempt];
        let first = self.ledger.attempts[*one.attempts.first()?].started_at;
        let (elapsed, wall) = match contract.retry.anchor {
            _ if row.outcome == Some(Outcome::Interrupted) => (end, ended),
            Anchor::End => (end, ended),
            Anchor::Start => (start, row.started_at),
            Anchor::First => (one.first_start, first),
        };
        let whole_ms = i64::try_from(whole.as_ms()).unwrap_or(i64::MAX);
        Some(((elapsed.saturating_add(whole_ms), wall + whole), wait))
    }
}

/// Why a delivery to an endpoint in that state is dead, if it is.
const fn dead_at(state: EndpointState) -> Option<DeadReason> {
    match state {
        EndpointState::Active | EndpointState::Draining => None,
        EndpointState::Disabled => Some(DeadReason::EndpointDisabled),
        EndpointState::Deleted => Some(DeadReason::EndpointDeleted),
    }
}
