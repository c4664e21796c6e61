//! Pace: at most N starts in any window, whatever lies between claim and send, on both clocks.

use crate::support::{at, ms, worked};
use contract::model::{EndpointClauses, Rate};
use contract::{BootInstant, Duration};
use proptest::prelude::*;
use schedule::{Moment, Pace};

fn clauses(min_gap: u64, rate: Option<(u32, u64)>) -> EndpointClauses {
    EndpointClauses {
        min_gap: ms(min_gap),
        rate: rate.map(|(starts, window)| Rate {
            starts,
            window: ms(window),
        }),
        ..worked(&[]).endpoint
    }
}

fn pace(min_gap: u64, rate: Option<(u32, u64)>) -> Pace {
    Pace::new(&clauses(min_gap, rate), None)
}

/// Both clocks in step, an hour apart.
fn moment(ms: u64) -> Moment {
    Moment {
        wall: at(i64::try_from(ms).unwrap() + 3_600_000),
        boot: BootInstant::from_ms(ms),
    }
}

fn start(pace: &mut Pace, ms: u64) {
    pace.reserve();
    pace.start(moment(ms));
}

#[test]
fn without_limits_everything_may_start() {
    let mut pace = pace(0, None);
    (0..100).for_each(|_| start(&mut pace, 5));
    assert_eq!(pace.next_allowed(moment(5)), None);
}

#[test]
fn min_gap_counts_from_the_last_start() {
    let mut pace = pace(100, None);
    start(&mut pace, 1000);
    assert_eq!(pace.next_allowed(moment(1099)), Some(moment(1100)));
    assert_eq!(pace.next_allowed(moment(1100)), None);
}

#[test]
fn rate_is_an_exact_sliding_window_and_not_a_bucket_that_refills() {
    let mut pace = pace(0, Some((3, 1000)));
    for t in [0, 900, 950] {
        assert_eq!(pace.next_allowed(moment(t)), None);
        start(&mut pace, t);
    }
    assert_eq!(pace.next_allowed(moment(999)), Some(moment(1000)));
    start(&mut pace, 1000);
    // A fixed window from 1000 on would let three more through now: six within 100 ms.
    assert_eq!(pace.next_allowed(moment(1001)), Some(moment(1900)));
}

#[test]
fn the_strictest_limit_decides_and_the_endpoints_own_throttle_is_one_of_them() {
    let mut pace = Pace::new(&clauses(10, Some((100, 1000))), Some(2));
    start(&mut pace, 0);
    assert_eq!(pace.next_allowed(moment(5)), Some(moment(10)));
    start(&mut pace, 10);
    assert_eq!(pace.next_allowed(moment(20)), Some(moment(1000)));
}

#[test]
fn a_reservation_counts_as_starting_now_until_it_starts_or_is_cancelled() {
    let mut pace = pace(100, None);
    pace.reserve();
    assert_eq!(pace.reserved(), 1);
    assert_eq!(pace.next_allowed(moment(5000)), Some(moment(5100)));
    pace.cancel();
    assert_eq!(pace.next_allowed(moment(5000)), None);
    pace.reserve();
    pace.start(moment(5040));
    assert_eq!(
        (pace.reserved(), pace.next_allowed(moment(5100))),
        (0, Some(moment(5140)))
    );
}

#[test]
fn a_wall_clock_set_forward_releases_nothing_early() {
    let mut pace = pace(1000, None);
    start(&mut pace, 0);
    let forward = Moment {
        wall: at(1_000_000_000),
        boot: BootInstant::from_ms(10),
    };
    let next = pace.next_allowed(forward).unwrap();
    assert_eq!(
        next,
        Moment {
            wall: forward.wall,
            boot: BootInstant::from_ms(1000)
        }
    );
}

#[test]
fn a_wall_clock_set_back_by_days_does_not_stop_an_endpoint_for_days() {
    let mut pace = pace(1000, None);
    start(&mut pace, 0);
    let back = |boot| Moment {
        wall: at(-1_000_000_000 + i64::try_from(boot).unwrap()),
        boot: BootInstant::from_ms(boot),
    };
    assert!(pace.next_allowed(back(999)).is_some());
    assert_eq!(pace.next_allowed(back(1000)), None);
    pace.reserve();
    pace.start(back(1000));
    assert!(pace.next_allowed(back(1999)).is_some());
    assert_eq!(pace.next_allowed(back(2000)), None);
}

#[test]
fn a_wall_clock_set_back_by_a_little_keeps_the_gap_in_the_ledger_too() {
    let mut pace = pace(1000, None);
    start(&mut pace, 0); // the wall says 3 600 000
    let now = Moment {
        wall: at(3_600_100),
        boot: BootInstant::from_ms(1100),
    };
    assert_eq!(
        pace.next_allowed(now),
        Some(Moment {
            wall: at(3_601_000),
            boot: BootInstant::from_ms(1100)
        })
    );
}

#[test]
fn after_a_step_back_starts_in_the_same_window_count_and_those_a_window_ahead_do_not() {
    let mut pace = pace(0, Some((2, 1000)));
    let moment = |wall, boot| Moment {
        wall: at(wall),
        boot: BootInstant::from_ms(boot),
    };
    pace.record(moment(6500, 0));
    pace.record(moment(5000, 2000));
    // Set back once more: by the boot-time clock both are long gone, by the wall clock one started 500 ms ago, and the
    // other will have started in exactly one window. A reservation leaves room for one.
    pace.reserve();
    let now = moment(5500, 9000);
    assert_eq!(pace.next_allowed(now), Some(moment(6000, 9000)));
    assert!(pace.next_allowed(moment(5501, 9001)).is_some());
}

#[test]
fn a_start_exactly_a_window_ahead_is_in_no_window_with_this_one() {
    let mut pace = pace(1000, None);
    pace.record(Moment {
        wall: at(5000),
        boot: BootInstant::from_ms(0),
    });
    let boot = BootInstant::from_ms(2000);
    assert_eq!(pace.next_allowed(Moment { wall: at(4000), boot }), None);
    let later = Moment { wall: at(4001), boot };
    assert_eq!(pace.next_allowed(later), Some(Moment { wall: at(6000), boot }));
}

#[test]
fn a_throttle_of_zero_is_none() {
    let mut pace = Pace::new(&clauses(0, None), Some(0));
    start(&mut pace, 0);
    assert_eq!(pace.next_allowed(moment(0)), None);
}

#[test]
fn after_a_restart_every_window_is_taken_as_full() {
    let mut pace = pace(0, Some((3, 1000)));
    pace.assume_full(moment(5000));
    assert_eq!(pace.next_allowed(moment(5000)), Some(moment(6000)));
    assert_eq!(pace.next_allowed(moment(6000)), None);
}

#[test]
fn changed_clauses_apply_to_the_starts_that_were_made() {
    let mut pace = pace(100, None);
    start(&mut pace, 0);
    pace.set_clauses(&clauses(5000, None), None);
    assert_eq!(pace.next_allowed(moment(200)), Some(moment(5000)));
}

/// Most starts in any half-open window of this length.
fn most_in_a_window(starts: &[u64], window: Duration) -> usize {
    starts
        .iter()
        .map(|from| {
            starts
                .iter()
                .filter(|at| *from <= **at && **at < from + window.as_ms())
                .count()
        })
        .max()
        .unwrap_or(0)
}

proptest! {
    /// Random claims, each sent some time later: no window ever holds too many starts, and no two are closer than the
    /// gap, though between claim and send anything may happen.
    #[test]
    fn no_window_holds_too_many_whatever_lies_between_claim_and_send(
        steps in proptest::collection::vec((0_u64..60, 0_u8..4), 1..300), n in 1_u32..5, window in 1_u64..200, gap in 0_u64..80
    ) {
        let mut pace = pace(gap, Some((n, window)));
        let (mut now, mut starts) = (0, Vec::new());
        for (step, what) in steps {
            now += step;
            match what {
                0 | 1 if pace.next_allowed(moment(now)).is_none() => pace.reserve(),
                2 if pace.reserved() > 0 => { pace.start(moment(now)); starts.push(now); }
                3 if pace.reserved() > 0 => pace.cancel(),
                _ => {}
            }
        }
        prop_assert!(most_in_a_window(&starts, ms(window)) <= usize::try_from(n).unwrap());
        prop_assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= gap));
    }

    /// What it says it will allow, it allows then, when nothing happens in between.
    #[test]
    fn the_moment_it_names_is_the_moment_it_keeps(
        starts in proptest::collection::vec(0_u64..50, 1..20), n in 1_u32..5, window in 1_u64..200
    ) {
        let mut pace = pace(0, Some((n, window)));
        let mut now = 0;
        for step in starts {
            now += step;
            if let Some(next) = pace.next_allowed(moment(now)) {
                prop_assert!(next.boot.as_ms() > now);
                prop_assert!(pace.next_allowed(moment(next.boot.as_ms() - 1)).is_some());
                now = next.boot.as_ms();
            }
            prop_assert_eq!(pace.next_allowed(moment(now)), None);
            pace.reserve();
            pace.start(moment(now));
        }
    }
}
