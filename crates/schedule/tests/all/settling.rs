//! What follows an attempt (spec/contract.md, Meaning).

use crate::support::{at, ms, secs, worked};
use contract::ledger::{DeadReason, Outcome};
use contract::{AttemptNo, BootInstant, Contract, DeliveryNo, Duration, Instant};
use schedule::{Answer, Attempted, Decision, Elapsed, classify, settle};

const HOUR: i64 = 3_600_000;

/// Attempt `n`, failed with 503, from 1 000 000 to 1 010 000; the delivery was opened at 0.
fn failed(n: u32) -> Attempted<'static> {
    Attempted {
        message_id: "msg_1",
        endpoint_id: "ep_1",
        delivery_no: DeliveryNo::FIRST,
        attempt_no: AttemptNo::new(n),
        opened_at: at(0),
        first_started_at: at(500),
        started_at: at(1_000_000),
        ended_at: at(1_010_000),
        outcome: Outcome::Failed,
        status: Some(503),
        retry_after: None,
        previous_wait: None,
    }
}

fn decide(attempted: &Attempted<'_>, contract: &Contract) -> Decision {
    settle(attempted, contract, contract)
}

fn due(attempted: &Attempted<'_>, contract: &Contract) -> Instant {
    match decide(attempted, contract) {
        Decision::Retry { due_at, .. } => due_at,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_status_is_success_terminal_or_failure() {
    let sets = worked(&[("\"200-299\"", "\"200-204\", \"302\"")]).outcome;
    for (status, want) in [
        (Some(199), Answer::Failure),
        (Some(200), Answer::Success),
        (Some(204), Answer::Success),
        (Some(205), Answer::Failure),
        (Some(302), Answer::Success),
        (Some(410), Answer::Terminal),
        (Some(411), Answer::Failure),
        (None, Answer::Failure),
    ] {
        assert_eq!(classify(&sets, status), want, "{status:?}");
    }
}

#[test]
fn a_success_ends_the_delivery() {
    let attempted = Attempted {
        outcome: Outcome::Succeeded,
        status: Some(204),
        ..failed(8)
    };
    assert_eq!(decide(&attempted, &worked(&[])), Decision::Succeeded);
}

#[test]
fn attempt_three_of_the_worked_contract_is_followed_after_eight_minutes() {
    let want = Decision::Retry {
        due_at: at(1_010_000 + 480_000),
        wait: secs(480),
        elapsed: Elapsed::FromEnd(secs(480)),
    };
    assert_eq!(decide(&failed(3), &worked(&[])), want);
}

#[test]
fn a_terminal_status_is_not_retried_and_is_read_by_the_attempts_own_contract() {
    let gone = Attempted {
        status: Some(410),
        ..failed(1)
    };
    let (own, lenient) = (worked(&[]), worked(&[("terminal = [\"410\"]", "terminal = []")]));
    assert_eq!(
        settle(&gone, &own, &lenient),
        Decision::Dead(DeadReason::Terminal)
    );
    assert!(matches!(settle(&gone, &lenient, &own), Decision::Retry { .. }));
}

#[test]
fn the_attempt_that_reaches_the_limit_is_the_last_whatever_became_of_it() {
    let contract = worked(&[]);
    for outcome in [
        Outcome::Failed,
        Outcome::TimedOut,
        Outcome::Refused,
        Outcome::Interrupted,
    ] {
        let last = Attempted { outcome, ..failed(8) };
        assert_eq!(
            decide(&last, &contract),
            Decision::Dead(DeadReason::MaxAttempts),
            "{outcome}"
        );
        let one_left = Attempted { outcome, ..failed(7) };
        assert!(
            matches!(decide(&one_left, &contract), Decision::Retry { .. }),
            "{outcome}"
        );
    }
}

#[test]
fn where_the_schedule_stops_the_delivery_is_dead() {
    let law = "law = \"schedule\"\nwaits = [\"5s\"]\nthen = \"stop\"\n";
    let contract = worked(&[("law = \"exponential\"\nbase = \"30s\"\nfactor = \"4\"\n", law)]);
    assert_eq!(due(&failed(1), &contract), at(1_015_000));
    assert_eq!(
        decide(&failed(2), &contract),
        Decision::Dead(DeadReason::ScheduleEnd)
    );
}

#[test]
fn a_retry_that_would_start_past_max_age_is_not_made() {
    // Due 1 010 000 + 30 000 after the opening at 0.
    let just = worked(&[("\"3d\"", "\"1040s\"")]);
    let short = worked(&[("\"3d\"", "\"1039999ms\"")]);
    assert_eq!(due(&failed(1), &just), at(1_040_000));
    assert_eq!(decide(&failed(1), &short), Decision::Dead(DeadReason::MaxAge));
}

#[test]
fn each_anchor_measures_from_its_own_moment_on_both_clocks() {
    let (started, ended) = (BootInstant::from_ms(70_000), BootInstant::from_ms(80_000));
    for (anchor, due_at, due_boot) in [
        ("end", 1_010_000 + 30_000, 110_000),
        ("start", 1_000_000 + 30_000, 100_000),
        // The first attempt started 999.5 s before this one: due long ago by the wall clock, and at once by the other.
        ("first", 500 + 30_000, 70_000),
    ] {
        let contract = worked(&[("anchor = \"end\"", &format!("anchor = \"{anchor}\""))]);
        let Decision::Retry {
            due_at: wall,
            elapsed,
            ..
        } = decide(&failed(1), &contract)
        else {
            panic!("{anchor}");
        };
        assert_eq!(
            (wall, elapsed.due_boot(started, ended)),
            (at(due_at), BootInstant::from_ms(due_boot)),
            "{anchor}"
        );
    }
}

#[test]
fn under_anchor_first_the_rest_of_a_wait_counts_from_this_start() {
    let contract = worked(&[
        ("anchor = \"end\"", "anchor = \"first\""),
        ("\"30s\"\nfactor", "\"2000s\"\nfactor"),
    ]);
    let want = Elapsed::FromStart(ms(2_000_000 - 999_500));
    assert!(matches!(decide(&failed(1), &contract), Decision::Retry { elapsed, .. } if elapsed == want));
}

#[test]
fn an_interrupted_attempt_anchors_at_its_recovery_whatever_the_anchor() {
    for anchor in ["end", "start", "first"] {
        let contract = worked(&[("anchor = \"end\"", &format!("anchor = \"{anchor}\""))]);
        let interrupted = Attempted {
            outcome: Outcome::Interrupted,
            status: None,
            ended_at: at(HOUR),
            ..failed(1)
        };
        let want = Decision::Retry {
            due_at: at(HOUR + 30_000),
            wait: secs(30),
            elapsed: Elapsed::FromEnd(secs(30)),
        };
        assert_eq!(decide(&interrupted, &contract), want, "{anchor}");
    }
}

#[test]
fn slack_comes_on_top_and_is_no_part_of_the_drawn_wait() {
    let contract = worked(&[("slack = \"0s\"", "slack = \"7s\"")]);
    let want = Decision::Retry {
        due_at: at(1_010_000 + 37_000),
        wait: secs(30),
        elapsed: Elapsed::FromEnd(secs(37)),
    };
    assert_eq!(decide(&failed(1), &contract), want);
}

#[test]
fn retry_after_lifts_the_wait_from_the_end_and_slack_still_comes_on_top() {
    let contract = worked(&[("slack = \"0s\"", "slack = \"7s\"")]);
    let asked = Attempted {
        retry_after: Some("120"),
        ..failed(1)
    };
    let want = Decision::Retry {
        due_at: at(1_010_000 + 127_000),
        wait: secs(30),
        elapsed: Elapsed::FromEnd(secs(127)),
    };
    assert_eq!(decide(&asked, &contract), want);
    let too_long = Attempted {
        retry_after: Some("999999999"),
        ..failed(1)
    };
    assert_eq!(due(&too_long, &contract), at(1_010_000 + 24 * HOUR + 7_000));
}

#[test]
fn the_next_attempt_goes_by_the_contract_in_force() {
    let (own, next) = (
        worked(&[]),
        worked(&[
            ("base = \"30s\"", "base = \"1m\""),
            ("max_attempts = 8", "max_attempts = 4"),
        ]),
    );
    let Decision::Retry { wait, .. } = settle(&failed(1), &own, &next) else {
        panic!()
    };
    assert_eq!(wait, secs(60));
    assert_eq!(
        settle(&failed(4), &own, &next),
        Decision::Dead(DeadReason::MaxAttempts)
    );
}

#[test]
fn times_at_the_end_of_the_calendar_saturate() {
    let contract = worked(&[("\"3d\"", "\"none\"")]);
    let late = Attempted {
        ended_at: Instant::MAX,
        ..failed(1)
    };
    assert_eq!(due(&late, &contract), Instant::MAX);
    assert_eq!(
        Elapsed::FromEnd(Duration::MAX)
            .due_boot(BootInstant::default(), BootInstant::from_ms(5))
            .as_ms(),
        u64::MAX
    );
}
