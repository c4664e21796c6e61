//! May it start? (spec/engine.md, Clock and States of an endpoint.)

use crate::support::{at, secs, worked};
use contract::BootInstant;
use contract::ledger::{DeadReason, EndpointState};
use schedule::{Admission, BlockReason, Candidate, DeferReason, Moment, Pace, Until, admit, due};

const DUE: Candidate = Candidate {
    endpoint_state: EndpointState::Active,
    due_at: at(1000),
    due_boot: Some(BootInstant::from_ms(500)),
    opened_at: at(0),
    attempts: 1,
    in_flight: 0,
    in_flight_limit: 8,
};

fn now(wall: i64, boot: u64) -> Moment {
    Moment {
        wall: at(wall),
        boot: BootInstant::from_ms(boot),
    }
}

fn ask(candidate: Candidate, moment: Moment) -> Admission {
    let contract = worked(&[]);
    admit(
        &candidate,
        &contract.retry,
        &Pace::new(&contract.endpoint, None),
        moment,
    )
}

fn not_due() -> Admission {
    let until = Until {
        wall: at(1000),
        boot: Some(BootInstant::from_ms(500)),
    };
    Admission::Defer {
        until,
        reason: DeferReason::NotDue,
    }
}

#[test]
fn an_attempt_starts_when_both_clocks_allow_it() {
    assert_eq!(ask(DUE, now(1000, 500)), Admission::Deliver);
    assert_eq!(ask(DUE, now(999, 500)), not_due());
    // The wall clock was set forward by a day: nothing is released early (I1).
    assert_eq!(ask(DUE, now(86_401_000, 499)), not_due());
    assert!(!due(&DUE, now(86_401_000, 499)) && due(&DUE, now(1000, 500)));
}

#[test]
fn after_a_reboot_the_wall_clock_alone_remains() {
    let rebooted = Candidate {
        due_boot: None,
        ..DUE
    };
    assert_eq!(ask(rebooted, now(1000, 0)), Admission::Deliver);
}

#[test]
fn only_active_receives() {
    for (state, want) in [
        (EndpointState::Active, Admission::Deliver),
        (EndpointState::Draining, Admission::Block(BlockReason::Held)),
        (
            EndpointState::Disabled,
            Admission::Dead(DeadReason::EndpointDisabled),
        ),
        (
            EndpointState::Deleted,
            Admission::Dead(DeadReason::EndpointDeleted),
        ),
    ] {
        assert_eq!(
            ask(
                Candidate {
                    endpoint_state: state,
                    ..DUE
                },
                now(1000, 500)
            ),
            want,
            "{state}"
        );
    }
}

#[test]
fn no_attempt_beyond_the_limit() {
    assert_eq!(
        ask(Candidate { attempts: 7, ..DUE }, now(1000, 500)),
        Admission::Deliver
    );
    assert_eq!(
        ask(Candidate { attempts: 8, ..DUE }, now(1000, 500)),
        Admission::Dead(DeadReason::MaxAttempts)
    );
}

#[test]
fn age_runs_on_while_a_delivery_is_held() {
    let three_days = 3 * 86_400_000;
    let held = Candidate {
        endpoint_state: EndpointState::Draining,
        ..DUE
    };
    assert_eq!(ask(DUE, now(three_days, 500)), Admission::Deliver);
    assert_eq!(
        ask(DUE, now(three_days + 1, 500)),
        Admission::Dead(DeadReason::MaxAge)
    );
    assert_eq!(
        ask(held, now(three_days + 1, 500)),
        Admission::Dead(DeadReason::MaxAge)
    );
}

#[test]
fn a_full_in_flight_window_blocks() {
    assert_eq!(
        ask(Candidate { in_flight: 7, ..DUE }, now(1000, 500)),
        Admission::Deliver
    );
    let full = Candidate { in_flight: 8, ..DUE };
    assert_eq!(ask(full, now(1000, 500)), Admission::Block(BlockReason::InFlight));
}

#[test]
fn pacing_defers_until_the_gap_has_passed() {
    let contract = worked(&[("min_gap = \"0s\"", "min_gap = \"10s\"")]);
    let mut pace = Pace::new(&contract.endpoint, None);
    pace.record(now(500, 100));
    let until = Until {
        wall: at(10_500),
        boot: Some(BootInstant::from_ms(10_100)),
    };
    let want = Admission::Defer {
        until,
        reason: DeferReason::Pacing,
    };
    assert_eq!(admit(&DUE, &contract.retry, &pace, now(1000, 600)), want);
    assert_eq!(
        admit(&DUE, &contract.retry, &pace, now(10_500, 10_100)),
        Admission::Deliver
    );
}

#[test]
fn an_endpoint_is_disabled_by_a_listed_status_and_by_failing_too_long() {
    let clauses = worked(&[("\"5d\"", "\"1h\"")]).endpoint;
    assert!(schedule::outcome::disables(&clauses, Some(410)));
    assert!(
        !schedule::outcome::disables(&clauses, Some(404)) && !schedule::outcome::disables(&clauses, None)
    );
    let since = at(1000);
    assert!(!schedule::outcome::failed_too_long(
        &clauses,
        since,
        since + secs(3599)
    ));
    assert!(schedule::outcome::failed_too_long(
        &clauses,
        since,
        since + secs(3600)
    ));
    let never = worked(&[("\"5d\"", "\"never\"")]).endpoint;
    assert!(!schedule::outcome::failed_too_long(&never, since, at(i64::MAX)));
}
