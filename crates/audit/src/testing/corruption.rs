//! Ways to corrupt a clean ledger, each with the kind of breach that an audit must name. Where in the ledger is thrown.

use super::Dice;
use crate::judge::{Kind, Ledger};
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, DeliveryEventKind, EndpointEvent, EndpointState,
    NodeEventKind, Outcome,
};
use contract::model::{Anchor, RetryAfter};
use contract::{AttemptNo, Contract, DeliveryNo, Duration, Instant, Seq};
use std::collections::HashMap;

/// Way to corrupt a ledger. `apply` is false, and changes nothing, where the ledger has no place for it.
#[derive(Clone, Copy)]
pub struct Corruption {
    /// What an audit must name it.
    pub kind: Kind,
    /// What is done.
    pub what: &'static str,
    /// Does it.
    pub apply: fn(&mut Ledger, &mut Dice) -> bool,
}

macro_rules! corruptions {
    ($($kind:ident $what:literal => $apply:expr),+ $(,)?) => {
        &[$(Corruption { kind: Kind::$kind, what: $what, apply: $apply }),+]
    };
}

/// Every kind that rows alone can show, most of them in several ways.
#[must_use]
pub const fn corruptions() -> &'static [Corruption] {
    ALL
}

const ALL: &[Corruption] = corruptions! {
    TooEarly "a retry a millisecond early" => |all, dice| {
        let Some(place) = retry(all, dice, |_, before, row| before.retry_after.is_none() && row.due_at > before.started_at) else { return false };
        all.attempts[place].started_at = all.attempts[place].due_at - MS;
        true
    },
    TooEarly "a first attempt before its delivery was opened" => |all, dice| {
        let Some(place) = attempt(all, dice, |row| row.attempt_no == AttemptNo::FIRST) else { return false };
        let Some(opened) = opened(all, &all.attempts[place]) else { return false };
        all.attempts[place].started_at = opened - MS;
        true
    },
    TooManyAttempts "one more after the last" => |all, dice| {
        let Some(dead) = dead(all, dice, "max_attempts") else { return false };
        let Some(mut row) = attempts_of(all, &dead).last().map(|place| all.attempts[*place].clone()) else { return false };
        row.attempt_id.push_str("-more");
        row.attempt_no = row.attempt_no.next();
        row.seq = Seq::new(dead.seq.get() + 1);
        all.attempts.push(row);
        true
    },
    TooManyAttempts "one after an answer that is not retried" => |all, dice| {
        let Some(place) = retry(all, dice, |_, before, _| before.outcome == Some(Outcome::Failed)) else { return false };
        let before = before(all, place);
        all.attempts[before].status = Some(410);
        true
    },
    AfterSuccess "the attempt before had succeeded" => |all, dice| {
        let Some(place) = retry(all, dice, |_, _, _| true) else { return false };
        let before = before(all, place);
        all.attempts[before].outcome = Some(Outcome::Succeeded);
        true
    },
    ToInactiveEndpoint "claimed while it drained" => |all, dice| {
        let Some(place) = attempt(all, dice, |_| true) else { return false };
        let row = all.attempts[place].clone();
        all.endpoint_events.push(EndpointEvent {
            seq: Seq::new(row.seq.get() - 1),
            endpoint_id: row.endpoint_id,
            at: row.started_at,
            state: dice.one_of(&[EndpointState::Draining, EndpointState::Disabled, EndpointState::Deleted]),
            why: None,
            by: "corruption".to_owned(),
        });
        true
    },
    ToInactiveEndpoint "an endpoint of which nothing is known" => |all, dice| {
        let Some(place) = attempt(all, dice, |_| true) else { return false };
        let endpoint = all.attempts[place].endpoint_id.clone();
        all.endpoint_events.retain(|event| event.endpoint_id != endpoint);
        true
    },
    Overlap "the next before the last had ended" => |all, dice| {
        let Some(place) = retry(all, dice, |_, _, _| true) else { return false };
        let before = before(all, place);
        all.attempts[before].ended_at = Some(all.attempts[place].started_at + Duration::from_ms(2));
        unstepped(all)
    },
    Overlap "the last never ended" => |all, dice| {
        let Some(place) = retry(all, dice, |_, _, _| true) else { return false };
        let before = before(all, place);
        all.attempts[before].ended_at = None;
        all.attempts[before].outcome = None;
        true
    },
    DuplicateAttempt "a row twice" => |all, dice| {
        let Some(place) = attempt(all, dice, |_| true) else { return false };
        let mut twin = all.attempts[place].clone();
        twin.seq = Seq::new(twin.seq.get() + 1);
        all.attempts.push(twin);
        true
    },
    DuplicateAttempt "a number twice" => |all, dice| {
        let Some(place) = retry(all, dice, |_, _, _| true) else { return false };
        all.attempts[place].attempt_no = all.attempts[before(all, place)].attempt_no;
        true
    },
    DuplicateAttempt "an id twice" => |all, dice| {
        let Some(place) = attempt(all, dice, |_| true) else { return false };
        let Some(other) = attempt(all, dice, |_| true).filter(|other| *other != place) else { return false };
        all.attempts[place].attempt_id = all.attempts[other].attempt_id.clone();
        true
    },
    MinGap "two starts too close" => |all, dice| {
        let Some(starts) = paced(all, dice, 1, |contract| !contract.endpoint.min_gap.is_zero()) else { return false };
        all.attempts[starts[1]].started_at = all.attempts[starts[0]].started_at;
        unstepped(all)
    },
    Rate "one more in the window" => |all, dice| {
        let back = 1 + usize::try_from(dice.below(3)).unwrap_or(0);
        let rate = |contract: &Contract| contract.endpoint.rate.is_some_and(|rate| usize::try_from(rate.starts) == Ok(back));
        let Some(starts) = paced(all, dice, back, rate) else { return false };
        let (first, before) = (all.attempts[starts[0]].started_at, all.attempts[starts[back - 1]].started_at);
        let window = contract(all, &all.attempts[starts[0]].endpoint_rev).and_then(|contract| contract.endpoint.rate);
        all.attempts[starts[back]].started_at = before;
        window.is_some_and(|rate| before.since(first) < rate.window) && unstepped(all)
    },
    InFlight "one more at once" => |all, dice| {
        let back = 1 + usize::try_from(dice.below(4)).unwrap_or(0);
        let limit = |contract: &Contract| usize::try_from(contract.endpoint.in_flight) == Ok(back);
        let Some(starts) = paced(all, dice, back, limit) else { return false };
        let after = all.attempts[starts[back]].started_at + Duration::from_ms(2);
        starts[..back].iter().for_each(|place| all.attempts[*place].ended_at = Some(after));
        unstepped(all)
    },
    RetryAfterIgnored "the receiver had asked for more" => |all, dice| {
        let floor = |contract: &Contract, before: &AttemptRecord, row: &AttemptRecord| {
            matches!(contract.retry.retry_after, RetryAfter::Floor { max } if before.ended_at.is_some_and(|end| row.started_at < end + max))
                && contract.retry.anchor == Anchor::End
                && before.outcome == Some(Outcome::Failed)
                && before.retry_after.is_none()
        };
        let Some(place) = retry(all, dice, floor) else { return false };
        let before = before(all, place);
        all.attempts[before].retry_after = Some("86400".to_owned());
        true
    },
    AfterMaxAge "tried when too old" => |all, dice| {
        let Some(place) = attempt(all, dice, |_| true) else { return false };
        let row = &all.attempts[place];
        let age = contract(all, &row.retry_rev).and_then(|contract| contract.retry.max_age);
        let Some((age, opened)) = age.zip(opened(all, row)) else { return false };
        all.attempts[place].started_at = opened + age + MS;
        true
    },
    Overdue "an hour late" => |all, dice| {
        let Some(place) = attempt(all, dice, |row| row.ended_at.is_some()) else { return false };
        if !always_active(all, &all.attempts[place].endpoint_id) { return false }
        let hour = Duration::from_secs(3600);
        let row = &mut all.attempts[place];
        row.started_at = row.started_at + hour;
        row.ended_at = row.ended_at.map(|end| end + hour);
        true
    },
    WaitTooLong "due a millisecond later than the contract has it" => |all, dice| {
        let Some(place) = attempt(all, dice, |_| true) else { return false };
        all.attempts[place].due_at = all.attempts[place].due_at + MS;
        true
    },
    GaveUpEarly "dead with an attempt left" => |all, dice| {
        let Some(dead) = dead(all, dice, "max_attempts") else { return false };
        let ageless = contract(all, &dead.retry_rev).is_some_and(|contract| contract.retry.max_age.is_none());
        let Some(last) = attempts_of(all, &dead).last().copied() else { return false };
        all.attempts.remove(last);
        ageless && always_active(all, &dead.endpoint_id)
    },
    GaveUpEarly "dead before it was tried" => |all, dice| {
        let Some(place) = event(all, dice, |event| event.event == DeliveryEventKind::Succeeded) else { return false };
        let event = all.delivery_events[place].clone();
        all.attempts.retain(|row| !of(row, &event));
        all.delivery_events[place].event = DeliveryEventKind::Dead;
        all.delivery_events[place].reason = Some("max_attempts".to_owned());
        let age = contract(all, &event.retry_rev).and_then(|contract| contract.retry.max_age);
        age.is_none() && always_active(all, &event.endpoint_id)
    },
    Abandoned "no event ends it" => |all, dice| {
        let ended = |event: &DeliveryEvent| matches!(event.reason.as_deref(), Some("max_attempts" | "terminal" | "schedule_end")) || event.event == DeliveryEventKind::Succeeded;
        let Some(place) = event(all, dice, ended) else { return false };
        all.delivery_events.remove(place);
        true
    },
    Abandoned "never tried" => |all, dice| {
        let early = all.messages.iter().map(|message| message.at).min().unwrap_or_default() + Duration::from_secs(20);
        let Some(place) = event(all, dice, |event| event.event == DeliveryEventKind::Succeeded && event.at < early) else { return false };
        let event = all.delivery_events.remove(place);
        let endpoint = all.attempts.iter().find(|row| of(row, &event)).map(|row| row.endpoint_rev.clone()).unwrap_or_default();
        all.attempts.retain(|row| !of(row, &event));
        // Where the window is always full there is an excuse.
        let wide = contract(all, &endpoint).is_some_and(|contract| contract.endpoint.in_flight == 8 && contract.endpoint.rate.is_none());
        wide && always_active(all, &event.endpoint_id)
    },
    Lost "a delivery is gone" => |all, dice| {
        let Some(place) = event(all, dice, |event| event.event == DeliveryEventKind::Opened && event.delivery_no == DeliveryNo::FIRST) else { return false };
        let gone = all.delivery_events[place].clone();
        let mine = |message: &str, endpoint: &str| message == gone.message_id && endpoint == gone.endpoint_id;
        all.delivery_events.retain(|event| !mine(&event.message_id, &event.endpoint_id));
        all.attempts.retain(|row| !mine(&row.message_id, &row.endpoint_id));
        true
    },
    NumberingGap "an attempt is gone" => |all, dice| {
        let Some(place) = retry(all, dice, |_, _, _| true) else { return false };
        let before = before(all, place);
        all.attempts.remove(before);
        true
    },
    NumberingGap "a number is passed over" => |all, dice| {
        let Some(place) = attempt(all, dice, |_| true) else { return false };
        all.attempts[place].attempt_no = all.attempts[place].attempt_no.next();
        true
    },
    NumberingGap "a delivery's number is passed over" => |all, dice| {
        let Some(place) = event(all, dice, |_| true) else { return false };
        let event = all.delivery_events[place].clone();
        let next = event.delivery_no.next().next();
        for row in all.attempts.iter_mut().filter(|row| of(row, &event)) {
            row.delivery_no = next;
        }
        let same = |other: &DeliveryEvent| other.message_id == event.message_id && other.endpoint_id == event.endpoint_id && other.delivery_no == event.delivery_no;
        for other in all.delivery_events.iter_mut().filter(|other| same(other)) {
            other.delivery_no = next;
        }
        true
    },
    WrongDraw "a wait a millisecond off" => |all, dice| {
        let Some(place) = retry(all, dice, |_, _, _| true) else { return false };
        let wait = all.attempts[place].wait_ms.unwrap_or_default();
        all.attempts[place].wait_ms = Some(if wait.is_zero() || dice.chance(50) { wait + MS } else { wait.saturating_sub(MS) });
        true
    },
    WrongDraw "no wait before a retry" => |all, dice| {
        let Some(place) = retry(all, dice, |_, _, _| true) else { return false };
        all.attempts[place].wait_ms = None;
        true
    },
    WrongDraw "a wait before a first attempt" => |all, dice| {
        let Some(place) = attempt(all, dice, |row| row.attempt_no == AttemptNo::FIRST) else { return false };
        all.attempts[place].wait_ms = Some(MS);
        true
    },
    UnknownContract "a row names another" => |all, dice| {
        let Some(place) = attempt(all, dice, |_| true) else { return false };
        let row = &mut all.attempts[place];
        let rev = if dice.chance(50) { &mut row.retry_rev } else { &mut row.endpoint_rev };
        *rev = "nobody".to_owned();
        true
    },
    UnknownContract "an event names another" => |all, dice| {
        let Some(place) = event(all, dice, |_| true) else { return false };
        all.delivery_events[place].retry_rev = String::new();
        true
    },
    UnknownContract "the contract is gone" => |all, dice| {
        let Some(place) = attempt(all, dice, |_| true) else { return false };
        let rev = all.attempts[place].retry_rev.clone();
        all.contracts.retain(|contract| contract.rev != rev);
        true
    },
    UnknownContract "the contract was changed" => |all, dice| {
        let place = usize::try_from(dice.below(all.contracts.len() as u64)).unwrap_or(0);
        let contract = &mut all.contracts[place];
        contract.canonical = contract.canonical.replace("\"max_attempts\":", "\"max_attempts\":1");
        true
    },
    OutcomeNotInContract "a success that is none" => |all, dice| {
        let Some(place) = attempt(all, dice, |row| row.outcome == Some(Outcome::Succeeded)) else { return false };
        all.attempts[place].status = dice.one_of(&[Some(500), Some(302), None]);
        true
    },
    OutcomeNotInContract "a failure that is none" => |all, dice| {
        let Some(place) = attempt(all, dice, |row| row.outcome == Some(Outcome::Failed) && row.error.is_none()) else { return false };
        all.attempts[place].status = Some(202);
        true
    },
    OutcomeNotInContract "an interrupted attempt with an answer" => |all, dice| {
        let Some(place) = attempt(all, dice, |row| matches!(row.outcome, Some(Outcome::Interrupted | Outcome::Refused))) else { return false };
        all.attempts[place].status = Some(500);
        true
    },
    StateWithoutEvidence "succeeded, and no attempt did" => |all, dice| {
        let Some(place) = attempt(all, dice, |row| row.outcome == Some(Outcome::Succeeded)) else { return false };
        let row = all.attempts[place].clone();
        all.attempts[place].outcome = Some(Outcome::TimedOut);
        all.delivery_events.iter().any(|event| of(&row, event) && event.event == DeliveryEventKind::Succeeded)
    },
    StateWithoutEvidence "never opened" => |all, dice| {
        let Some(place) = event(all, dice, |event| event.event == DeliveryEventKind::Opened) else { return false };
        let gone = all.delivery_events.remove(place);
        let same = |other: &DeliveryEvent| other.message_id == gone.message_id && other.endpoint_id == gone.endpoint_id && other.delivery_no == gone.delivery_no;
        all.delivery_events.iter().any(same) || all.attempts.iter().any(|row| of(row, &gone))
    },
    StateWithoutEvidence "two ends" => |all, dice| {
        let Some(place) = event(all, dice, |event| event.event != DeliveryEventKind::Opened) else { return false };
        let mut twin = all.delivery_events[place].clone();
        twin.seq = Seq::new(twin.seq.get() + 1);
        all.delivery_events.push(twin);
        true
    },
    StateWithoutEvidence "dead for another reason" => |all, dice| {
        let Some(place) = event(all, dice, |event| event.reason.as_deref() == Some("max_attempts")) else { return false };
        all.delivery_events[place].reason = dice.one_of(&[Some("terminal"), Some("tired"), None]).map(str::to_owned);
        true
    },
    StateWithoutEvidence "deliveries of no message" => |all, dice| {
        let Some(place) = event(all, dice, |_| true) else { return false };
        let message = all.delivery_events[place].message_id.clone();
        all.messages.retain(|record| record.message_id != message);
        true
    },
};

const MS: Duration = Duration::from_ms(1);

fn contract(all: &Ledger, rev: &str) -> Option<Contract> {
    let record = all.contracts.iter().find(|record| record.rev == rev)?;
    Contract::from_canonical(&record.canonical).ok()
}

fn of(row: &AttemptRecord, event: &DeliveryEvent) -> bool {
    row.message_id == event.message_id
        && row.endpoint_id == event.endpoint_id
        && row.delivery_no == event.delivery_no
}

fn opened(all: &Ledger, row: &AttemptRecord) -> Option<Instant> {
    let opened = |event: &&DeliveryEvent| event.event == DeliveryEventKind::Opened && of(row, event);
    all.delivery_events.iter().find(opened).map(|event| event.at)
}

/// Places of a delivery's attempts, in order.
fn attempts_of(all: &Ledger, event: &DeliveryEvent) -> Vec<usize> {
    (0..all.attempts.len())
        .filter(|place| of(&all.attempts[*place], event))
        .collect()
}

/// One of these places, thrown.
fn thrown(places: &[usize], dice: &mut Dice) -> Option<usize> {
    (!places.is_empty()).then(|| dice.one_of(places))
}

fn attempt(all: &Ledger, dice: &mut Dice, which: impl Fn(&AttemptRecord) -> bool) -> Option<usize> {
    let places: Vec<usize> = (0..all.attempts.len())
        .filter(|place| which(&all.attempts[*place]))
        .collect();
    thrown(&places, dice)
}

fn event(all: &Ledger, dice: &mut Dice, which: impl Fn(&DeliveryEvent) -> bool) -> Option<usize> {
    let places: Vec<usize> = (0..all.delivery_events.len())
        .filter(|place| which(&all.delivery_events[*place]))
        .collect();
    thrown(&places, dice)
}

fn dead(all: &Ledger, dice: &mut Dice, reason: &str) -> Option<DeliveryEvent> {
    event(all, dice, |event| event.reason.as_deref() == Some(reason))
        .map(|place| all.delivery_events[place].clone())
}

/// The attempt before one that has one.
fn before(all: &Ledger, place: usize) -> usize {
    let row = &all.attempts[place];
    let same = |other: &AttemptRecord| {
        other.message_id == row.message_id
            && other.endpoint_id == row.endpoint_id
            && other.delivery_no == row.delivery_no
    };
    (0..place)
        .rev()
        .find(|place| same(&all.attempts[*place]))
        .unwrap_or(place)
}

/// A second or later attempt, given its contract and the attempt before it.
fn retry(
    all: &Ledger,
    dice: &mut Dice,
    which: impl Fn(&Contract, &AttemptRecord, &AttemptRecord) -> bool,
) -> Option<usize> {
    let contracts = contracts(all);
    let places: Vec<usize> = (0..all.attempts.len())
        .filter(|place| {
            let row = &all.attempts[*place];
            let earlier = &all.attempts[before(all, *place)];
            let contract = contracts.get(row.retry_rev.as_str());
            row.attempt_no > AttemptNo::FIRST
                && contract.is_some_and(|contract| which(contract, earlier, row))
        })
        .collect();
    thrown(&places, dice)
}

fn contracts(all: &Ledger) -> HashMap<&str, Contract> {
    let read = |record: &ContractRecord| Contract::from_canonical(&record.canonical).ok();
    all.contracts
        .iter()
        .filter_map(|record| Some((record.rev.as_str(), read(record)?)))
        .collect()
}

/// Consecutive starts at one endpoint whose contract is of that kind: `back` of them and one more, in order, all settled.
fn paced(
    all: &Ledger,
    dice: &mut Dice,
    back: usize,
    which: impl Fn(&Contract) -> bool,
) -> Option<Vec<usize>> {
    let contracts = contracts(all);
    let first = attempt(all, dice, |row| {
        contracts.get(row.endpoint_rev.as_str()).is_some_and(&which)
    })?;
    let endpoint = &all.attempts[first].endpoint_id;
    let starts: Vec<usize> = (first..all.attempts.len())
        .filter(|place| all.attempts[*place].endpoint_id == *endpoint)
        .take(back + 1)
        .collect();
    let settled = |place: &usize| !matches!(all.attempts[*place].outcome, None | Some(Outcome::Interrupted));
    (starts.len() == back + 1 && starts.iter().all(settled)).then_some(starts)
}

/// Where the clock never stepped, the order of starts by the wall clock is the order in which they were made.
fn unstepped(all: &Ledger) -> bool {
    !all.node_events
        .iter()
        .any(|event| event.event == NodeEventKind::Step)
}

fn always_active(all: &Ledger, endpoint: &str) -> bool {
    all.endpoint_events
        .iter()
        .filter(|event| event.endpoint_id == endpoint)
        .all(|event| event.state == EndpointState::Active)
}
