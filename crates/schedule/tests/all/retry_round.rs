//! The retry round (spec/retry-round.md): its worked numbers, and each rule by itself.

use contract::ledger::EndpointState;
use contract::rounds::RetryRoundContract;
use proptest::prelude::*;
use schedule::round::retry::{
    Counts, Endpoint, Figures, Planned, Planner, Powers, Row, Totals, Verdict, capped_wait_s,
};

const CONTRACT: RetryRoundContract = RetryRoundContract {
    backoff_factor: 2,
    admit_slack_s: 5,
    dead_letter_after: 3,
    success_min: 200,
    success_max: 299,
};

const fn endpoint(
    state: EndpointState,
    max_attempts: i64,
    backoff_base_s: i64,
    dispatch_gap_s: i64,
) -> Endpoint {
    Endpoint {
        state,
        max_attempts,
        backoff_base_s,
        dispatch_gap_s,
    }
}

const ALPHA: u32 = 0;
const BRAVO: u32 = 1;
const CHARLIE: u32 = 2;
const DELTA: u32 = 3;

const ENDPOINTS: [Endpoint; 4] = [
    endpoint(EndpointState::Active, 3, 10, 70),
    endpoint(EndpointState::Active, 2, 20, 100),
    endpoint(EndpointState::Active, 2, 40, 120),
    endpoint(EndpointState::Draining, 3, 10, 60),
];

fn row(endpoint: u32, attempt_no: i64, start_ts: i64, finish_ts: i64, status: i64) -> Row {
    let status = (status != 0).then_some(status);
    Row {
        endpoint: Some(endpoint),
        attempt_no,
        start_ts,
        finish_ts,
        status,
    }
}

fn run(
    contract: RetryRoundContract,
    endpoints: &[Endpoint],
    rows: &[Row],
) -> (Vec<Option<Planned>>, Figures) {
    let mut planner = Planner::new(contract, endpoints.iter().copied());
    let planned = rows.iter().map(|row| planner.row(row)).collect();
    (planned, planner.figures())
}

fn earliest(rows: &[Option<Planned>]) -> Vec<i64> {
    rows.iter().flatten().map(|planned| planned.earliest_ts).collect()
}

#[test]
fn the_worked_round_gives_every_worked_number() {
    let rows = [
        row(ALPHA, 1, 1000, 1002, 502),
        row(ALPHA, 1, 1030, 1031, 503),
        row(ALPHA, 2, 1050, 1052, 504),
        row(ALPHA, 1, 1080, 1080, 200),
        row(BRAVO, 1, 2000, 2001, 0),
        row(BRAVO, 2, 2080, 2085, 201),
        row(CHARLIE, 1, 3000, 3005, 500),
        row(CHARLIE, 2, 3050, 3060, 500),
        row(DELTA, 1, 4000, 4001, 500),
        row(ALPHA, 1, 1120, 1121, 502),
    ];
    let (planned, figures) = run(CONTRACT, &ENDPOINTS, &rows);
    let got: Vec<_> = planned
        .iter()
        .map(|row| row.map(|row| (row.earliest_ts, row.scheduled_delta_s)))
        .collect();
    let want = [
        Some((0, 1000)),
        Some((1017, 13)),
        Some((1056, -6)),
        Some((0, 1080)),
        Some((0, 2000)),
        Some((2046, 34)),
        Some((0, 3000)),
        Some((3090, -40)),
        None,
        Some((0, 1120)),
    ];
    assert_eq!(got, want);
    assert!(
        planned
            .iter()
            .flatten()
            .all(|row| (row.verdict == Verdict::TooEarly) == (row.scheduled_delta_s < 0))
    );
    let want = Figures {
        totals: Totals {
            attempts: 9,
            endpoints: 3,
            ok: 7,
            too_early: 2,
            backoff_s: 171,
        },
        counts: Counts {
            attempts: 10,
            succeeded: 1,
            exhausted: 2,
            skipped: 1,
        },
        over_dead_letter: false,
        ok: false,
    };
    assert_eq!(figures, want);
}

#[test]
fn the_gap_is_a_cap_and_the_exponent_is_the_rows_own_number() {
    let endpoint = endpoint(EndpointState::Active, 9, 10, 70);
    let waits = |factor| [1, 2, 3, 4, 5].map(|n| capped_wait_s(&endpoint, &Powers::of(factor), n));
    assert_eq!(waits(2), [10, 20, 40, 70, 70]);
    assert_eq!(waits(1), [10; 5]);
}

#[test]
fn an_attempt_at_its_earliest_second_is_ok_and_one_second_sooner_is_too_early() {
    for (start, verdict) in [(15, Verdict::Ok), (14, Verdict::TooEarly)] {
        let (planned, _) = run(
            CONTRACT,
            &ENDPOINTS,
            &[row(ALPHA, 1, 0, 0, 500), row(ALPHA, 1, start, start, 500)],
        );
        let want = Planned {
            earliest_ts: 15,
            scheduled_delta_s: start - 15,
            verdict,
        };
        assert_eq!(planned[1], Some(want));
    }
}

#[test]
fn the_planner_says_which_endpoints_it_admits() {
    let planner = Planner::new(CONTRACT, ENDPOINTS);
    let admitted: Vec<u32> = (0..9).filter(|place| planner.admits(*place)).collect();
    assert_eq!(admitted, [ALPHA, BRAVO, CHARLIE]);
}

#[test]
fn waits_saturate_and_nothing_wraps() {
    let wide = |base| endpoint(EndpointState::Active, 9, base, i64::MAX);
    for (base, factor, n, want) in [
        (1, 2, 63, 1 << 62),
        (1, 2, 64, i64::MAX),
        (1, 2, i64::MAX, i64::MAX),
        (0, i64::MAX, i64::MAX, 0),
        (i64::MAX, 1, i64::MAX, i64::MAX),
        (3, i64::MAX, 2, i64::MAX),
        (1, 10, 19, 1_000_000_000_000_000_000),
        (1, 10, 20, i64::MAX),
    ] {
        assert_eq!(
            capped_wait_s(&wide(base), &Powers::of(factor), n),
            want,
            "{base} {factor} {n}"
        );
    }
    let contract = RetryRoundContract {
        admit_slack_s: i64::MAX,
        ..CONTRACT
    };
    let rows = [
        row(0, 1, i64::MIN, i64::MAX, 500),
        row(0, 1, i64::MIN, i64::MIN, 500),
        row(0, 1, i64::MAX, i64::MAX, 500),
    ];
    let (planned, figures) = run(contract, &[wide(1)], &rows);
    assert_eq!(
        planned[1].unwrap(),
        Planned {
            earliest_ts: i64::MAX,
            scheduled_delta_s: i64::MIN,
            verdict: Verdict::TooEarly
        }
    );
    // MIN − MAX and MAX − MIN, each cut to 64 bits, and their exact sum.
    assert_eq!(figures.totals.backoff_s, -1);
}

#[test]
fn a_total_that_passes_64_bits_on_the_way_is_exact_at_the_end() {
    let far = i64::MAX - 1;
    let rows = [
        row(0, 1, 0, 0, 500),
        row(0, 1, far, far, 500),
        row(0, 1, far, far, 500),
        row(0, 1, 0, 0, 500),
        row(0, 1, far, far, 500),
        row(0, 1, 7, 7, 500),
    ];
    let (_, figures) = run(CONTRACT, &[endpoint(EndpointState::Active, 99, 1, 1)], &rows);
    assert_eq!(figures.totals.backoff_s, 7);
}

#[test]
fn a_total_that_ends_beyond_64_bits_is_cut_at_either_end() {
    let endpoint = endpoint(EndpointState::Active, 99, 1, 1);
    for (start, finish, want) in [(i64::MAX, 0, i64::MAX), (i64::MIN, 0, i64::MIN)] {
        let rows = [
            row(0, 1, 0, 0, 500),
            row(0, 1, start, finish, 500),
            row(0, 1, start, finish, 500),
        ];
        assert_eq!(run(CONTRACT, &[endpoint], &rows).1.totals.backoff_s, want);
    }
}

#[test]
fn a_limit_of_one_makes_every_row_open_a_delivery() {
    let rows = [row(0, 5, 10, 11, 500), row(0, 6, 12, 13, 500)];
    let (planned, figures) = run(CONTRACT, &[endpoint(EndpointState::Active, 1, 10, 70)], &rows);
    assert_eq!((earliest(&planned), figures.totals.backoff_s), (vec![0, 0], 0));
}

#[test]
fn a_success_in_the_middle_closes_the_delivery_and_the_next_row_counts_one() {
    let rows = [
        row(ALPHA, 1, 0, 0, 500),
        row(ALPHA, 2, 100, 100, 204),
        row(ALPHA, 3, 200, 200, 500),
        row(ALPHA, 1, 300, 300, 500),
    ];
    let (planned, _) = run(CONTRACT, &ENDPOINTS, &rows);
    assert_eq!(earliest(&planned), [0, 25, 0, 215]);
}

#[test]
fn success_is_a_numeric_status_within_the_range_both_ends_included() {
    for (status, succeeded) in [
        (199, 0),
        (200, 1),
        (299, 1),
        (300, 0),
        (0, 0),
        (-200, 0),
        (i64::MAX, 0),
    ] {
        let (_, figures) = run(CONTRACT, &ENDPOINTS, &[row(ALPHA, 1, 0, 0, status)]);
        assert_eq!(figures.counts.succeeded, succeeded, "{status}");
    }
}

#[test]
fn the_final_state_goes_by_the_last_row_alone() {
    let (_, figures) = run(
        CONTRACT,
        &ENDPOINTS,
        &[row(ALPHA, 1, 0, 0, 200), row(ALPHA, 1, 9, 9, 500)],
    );
    assert_eq!(
        figures.counts,
        Counts {
            attempts: 2,
            succeeded: 0,
            exhausted: 1,
            skipped: 3
        }
    );
}

#[test]
fn only_active_is_admissible() {
    use EndpointState as S;
    for (state, planned) in [
        (S::Active, 1),
        (S::Draining, 0),
        (S::Disabled, 0),
        (S::Deleted, 0),
    ] {
        let (_, figures) = run(CONTRACT, &[endpoint(state, 3, 10, 70)], &[row(0, 1, 5, 6, 200)]);
        assert_eq!(
            (
                figures.totals.attempts,
                figures.totals.endpoints,
                figures.counts.skipped
            ),
            (planned, planned, 1 - planned)
        );
    }
}

#[test]
fn a_row_of_an_unknown_endpoint_counts_and_is_not_planned() {
    let unknown = Row {
        endpoint: None,
        ..row(0, 1, 5, 6, 200)
    };
    let (planned, figures) = run(CONTRACT, &ENDPOINTS, &[unknown]);
    assert_eq!(
        (planned[0], figures.totals.attempts, figures.counts.attempts),
        (None, 0, 1)
    );
}

#[test]
fn the_dead_letter_mark_is_one_endpoints_own_and_must_be_passed() {
    let early = |endpoint, n: i64| (0..n).map(move |_| row(endpoint, 1, 5, 5, 500));
    let endpoints = [
        endpoint(EndpointState::Active, 99, 10, 70),
        endpoint(EndpointState::Active, 99, 10, 70),
    ];
    let over = |rows: Vec<Row>| run(CONTRACT, &endpoints, &rows).1.over_dead_letter;
    // The first row opens a delivery and cannot be early: n rows, n − 1 too early.
    assert!(!over(early(0, 4).chain(early(1, 4)).collect()));
    assert!(over(early(0, 5).collect()));
}

#[test]
fn an_empty_ledger_is_ok_and_every_endpoint_is_skipped() {
    let (_, figures) = run(CONTRACT, &ENDPOINTS, &[]);
    assert!(figures.ok && figures.counts.skipped == 4 && figures.totals.endpoints == 3);
}

proptest! {
    /// The wait against arithmetic without bounds, cut to 64 bits at the end.
    #[test]
    fn the_wait_is_the_formula_cut_to_64_bits(
        base in 0_i64..=i64::MAX, gap in 0_i64..=i64::MAX, factor in 1_i64..1000, n in 1_i64..80
    ) {
        let mut exact = u128::try_from(base).unwrap();
        for _ in 1..n {
            exact = (exact * u128::try_from(factor).unwrap()).min(u128::from(u64::MAX));
        }
        let want = i64::try_from(exact).unwrap_or(i64::MAX).min(gap);
        prop_assert_eq!(capped_wait_s(&endpoint(EndpointState::Active, 1, base, gap), &Powers::of(factor), n), want);
    }

    /// Every planned row is ok or too early, and every endpoint in one final state.
    #[test]
    fn the_figures_add_up(rows in proptest::collection::vec((0_u32..5, 1_i64..5, 0_i64..1000, 0_i64..50, 198_i64..204), 0..200)) {
        let rows: Vec<Row> = rows.into_iter().map(|(e, n, start, took, status)| row(e, n, start, start + took, status)).collect();
        let (planned, Figures { totals, counts, .. }) = run(CONTRACT, &ENDPOINTS, &rows);
        let count = u64::try_from(planned.iter().flatten().count()).unwrap();
        prop_assert_eq!(totals.ok + totals.too_early, count);
        prop_assert_eq!((totals.attempts, counts.attempts), (count, u64::try_from(rows.len()).unwrap()));
        prop_assert_eq!(counts.succeeded + counts.exhausted + counts.skipped, 4);
    }
}
