//! A clean ledger has no finding; each corruption is named for what it is.

use super::*;
use contract::ledger::{DeliveryEventKind, EndpointState, NodeEventKind, Outcome, Trigger};
use contract::{AttemptNo, Duration, Seq};

const AS_OF: Instant = Instant::from_unix_ms(10_000_000);

fn contract() -> Contract {
    let text = contract::preset("default").unwrap().text;
    contract::parse(text, "default").unwrap()
}

fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(ms)
}

fn attempt(seq: u64, no: u32, start: i64, end: i64, status: u16, wait_ms: Option<u64>) -> AttemptRecord {
    let rev = contract().rev();
    AttemptRecord {
        attempt_id: format!("a-{no}"),
        seq: Seq::new(seq),
        message_id: "m".into(),
        endpoint_id: "e".into(),
        delivery_no: DeliveryNo::FIRST,
        attempt_no: AttemptNo::new(no),
        retry_rev: rev.clone(),
        endpoint_rev: rev,
        due_at: at(start),
        started_at: at(start),
        ended_at: Some(at(end)),
        outcome: Some(if status == 200 {
            Outcome::Succeeded
        } else {
            Outcome::Failed
        }),
        status: Some(status),
        error: None,
        retry_after: None,
        wait_ms: wait_ms.map(Duration::from_ms),
        node: "n".into(),
        trigger: Trigger::Scheduled,
    }
}

fn event(seq: u64, ms: i64, event: DeliveryEventKind, reason: Option<&str>) -> DeliveryEvent {
    DeliveryEvent {
        seq: Seq::new(seq),
        message_id: "m".into(),
        endpoint_id: "e".into(),
        delivery_no: DeliveryNo::FIRST,
        at: at(ms),
        event,
        reason: reason.map(str::to_owned),
        retry_rev: contract().rev(),
    }
}

/// 503 after 1 s, 30 s from the end, 500 after 1 s, 2 min from the end, 200.
fn clean() -> Ledger {
    let contract = contract();
    Ledger {
        contracts: vec![ContractRecord {
            rev: contract.rev(),
            canonical: contract.canonical(),
        }],
        messages: vec![MessageRecord {
            seq: Seq::new(3),
            message_id: "m".into(),
            at: at(1_000),
            deliveries: 1,
        }],
        endpoint_events: vec![EndpointEvent {
            seq: Seq::new(2),
            endpoint_id: "e".into(),
            at: at(500),
            state: EndpointState::Active,
            why: None,
            by: "t".into(),
        }],
        node_events: vec![NodeEvent {
            seq: Seq::new(1),
            node: "n".into(),
            at: at(0),
            boot_id: "b".into(),
            mono_ms: 0,
            event: NodeEventKind::Up,
            size_ms: 0,
        }],
        delivery_events: vec![
            event(4, 1_000, DeliveryEventKind::Opened, None),
            event(9, 154_000, DeliveryEventKind::Succeeded, None),
        ],
        attempts: vec![
            attempt(5, 1, 1_000, 2_000, 503, None),
            attempt(6, 2, 32_000, 33_000, 500, Some(30_000)),
            attempt(7, 3, 153_000, 154_000, 200, Some(120_000)),
        ],
    }
}

fn kinds(ledger: &Ledger) -> Vec<&'static str> {
    audit(ledger, AS_OF).counts.into_keys().collect()
}

#[test]
fn a_clean_ledger_has_no_finding() {
    let audit = audit(&clean(), AS_OF);
    assert!(audit.ok, "{:?}", audit.findings);
    assert_eq!((audit.attempts, audit.deliveries, audit.messages), (3, 1, 1));
}

type Corruption = fn(&mut Ledger);

const CORRUPTIONS: &[(&str, Corruption)] = &[
    ("too_early", |l| l.attempts[1].started_at = at(31_999)),
    ("too_early", |l| l.attempts[2].started_at = at(152_999)),
    ("too_many_attempts", |l| {
        l.delivery_events.truncate(1);
        l.attempts[2].attempt_no = AttemptNo::new(9);
    }),
    ("after_success", |l| {
        l.attempts[1] = AttemptRecord {
            status: Some(200),
            outcome: Some(Outcome::Succeeded),
            ..l.attempts[1].clone()
        }
    }),
    ("after_success", |l| l.attempts[2].seq = Seq::new(10)),
    ("to_inactive_endpoint", |l| {
        l.endpoint_events[0].state = EndpointState::Draining
    }),
    ("to_inactive_endpoint", |l| l.endpoint_events[0].seq = Seq::new(6)),
    ("overlap", |l| l.attempts[0].ended_at = Some(at(40_000))),
    ("overlap", |l| l.attempts[0].ended_at = None),
    ("duplicate_attempt", |l| {
        l.attempts[2].attempt_no = AttemptNo::new(2)
    }),
    ("duplicate_attempt", |l| l.attempts[2].attempt_id = "a-1".into()),
    ("retry_after_ignored", |l| {
        l.attempts[0].retry_after = Some("60".into())
    }),
    ("wait_too_long", |l| {
        l.attempts[1].due_at = at(40_000);
        l.attempts[1].started_at = at(40_000);
        l.attempts[1].ended_at = Some(at(41_000));
        l.attempts[2].due_at = at(161_000);
        l.attempts[2].started_at = at(161_000);
        l.attempts[2].ended_at = Some(at(162_000));
    }),
    ("overdue", |l| {
        l.attempts[2].started_at = at(153_000 + 30_001);
        l.attempts[2].ended_at = Some(at(184_000));
    }),
    ("gave_up_early", |l| {
        l.attempts.truncate(2);
        l.delivery_events[1] = event(9, 33_000, DeliveryEventKind::Dead, Some("max_attempts"));
    }),
    ("gave_up_early", |l| {
        l.attempts.truncate(2);
        l.delivery_events[1] = event(9, 33_000, DeliveryEventKind::Dead, Some("terminal"));
    }),
    ("abandoned", |l| {
        l.attempts.truncate(2);
        l.delivery_events.truncate(1);
    }),
    ("abandoned", |l| {
        l.attempts.clear();
        l.delivery_events.truncate(1);
    }),
    ("lost", |l| l.messages[0].deliveries = 2),
    ("numbering_gap", |l| {
        l.attempts.remove(1);
    }),
    ("wrong_draw", |l| {
        l.attempts[1].wait_ms = Some(Duration::from_ms(29_999))
    }),
    ("unknown_contract", |l| l.contracts.clear()),
    ("unknown_contract", |l| l.attempts[0].endpoint_rev = "0".into()),
    ("outcome_not_in_contract", |l| l.attempts[2].status = Some(302)),
    ("outcome_not_in_contract", |l| l.attempts[0].status = Some(204)),
    ("state_without_evidence", |l| {
        l.attempts[2] = AttemptRecord {
            status: Some(500),
            outcome: Some(Outcome::Failed),
            ..l.attempts[2].clone()
        }
    }),
    ("state_without_evidence", |l| {
        l.delivery_events.remove(0);
    }),
    ("after_max_age", |l| {
        l.delivery_events[0].at = at(152_000 - 259_200_000);
    }),
];

#[test]
fn each_corruption_is_named_for_what_it_is() {
    for (place, (kind, corrupt)) in CORRUPTIONS.iter().enumerate() {
        let mut ledger = clean();
        corrupt(&mut ledger);
        let found = kinds(&ledger);
        assert!(
            found.contains(kind),
            "corruption {place}: {kind} not in {found:?}"
        );
    }
}

/// One endpoint, three first attempts of three messages, under limits that allow them.
fn paced(edit: impl Fn(&mut Contract)) -> Ledger {
    let mut limited = contract();
    edit(&mut limited);
    let mut ledger = clean();
    ledger.contracts.push(ContractRecord {
        rev: limited.rev(),
        canonical: limited.canonical(),
    });
    for attempt in &mut ledger.attempts {
        attempt.endpoint_rev = limited.rev();
    }
    ledger
}

#[test]
fn min_gap_rate_and_in_flight_are_judged_at_the_edge() {
    let gap = |ms| paced(move |contract| contract.endpoint.min_gap = Duration::from_ms(ms));
    assert!(kinds(&gap(31_000)).is_empty());
    assert_eq!(kinds(&gap(31_001)), ["min_gap"]);
    let rate = |ms| {
        paced(move |contract| {
            contract.endpoint.rate = Some(contract::model::Rate {
                starts: 2,
                window: Duration::from_ms(ms),
            });
        })
    };
    assert!(kinds(&rate(152_000)).is_empty());
    assert_eq!(kinds(&rate(152_001)), ["rate"]);
    let mut crowded = paced(|contract| contract.endpoint.in_flight = 1);
    assert!(kinds(&crowded).is_empty());
    crowded.attempts[0].ended_at = Some(at(40_000));
    assert!(kinds(&crowded).contains(&"in_flight"));
}

#[test]
fn a_hold_excuses_exactly_the_interval_it_covers() {
    let mut ledger = clean();
    let state = |seq, ms, state| EndpointEvent {
        seq: Seq::new(seq),
        at: at(ms),
        state,
        ..ledger.endpoint_events[0].clone()
    };
    let (drain, back) = (
        state(20, 153_000, EndpointState::Draining),
        state(21, 200_000, EndpointState::Active),
    );
    ledger.endpoint_events.extend([drain, back]);
    ledger.attempts[2].seq = Seq::new(22);
    ledger.delivery_events[1].seq = Seq::new(23);
    ledger.attempts[2].started_at = at(230_000);
    ledger.attempts[2].ended_at = Some(at(231_000));
    assert!(kinds(&ledger).is_empty());
    ledger.attempts[2].started_at = at(230_001);
    assert_eq!(kinds(&ledger), ["overdue"]);
}
