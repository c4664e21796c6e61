//! The draw (spec/contract.md, Jitter): its interval, its known answers, and that it lies flat over its interval.

use crate::support::{ms, worked};
use contract::model::Retry;
use contract::{DeliveryNo, Duration, RetryNo};
use proptest::prelude::*;
use schedule::jitter::{DrawKey, bounds, draw, interval};

fn retry(jitter: &str) -> Retry {
    worked(&[("kind = \"none\"", jitter)]).retry
}

const KINDS: &[&str] = &[
    "kind = \"full\"",
    "kind = \"equal\"",
    "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"up\"",
    "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"down\"",
    "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"both\"",
];

fn key(message_id: &str, n: u32) -> DrawKey<'_> {
    DrawKey {
        message_id,
        endpoint_id: "ep_1",
        delivery_no: DeliveryNo::FIRST,
        retry_no: RetryNo::new(n),
    }
}

#[test]
fn each_kind_draws_from_its_interval() {
    let d = ms(1001);
    let want = [(0, 1001), (500, 1001), (1001, 1201), (801, 1001), (801, 1201)];
    for (kind, (lo, hi)) in KINDS.iter().zip(want) {
        assert_eq!(interval(&retry(kind), d, None), (ms(lo), ms(hi)), "{kind}");
    }
    assert_eq!(interval(&retry("kind = \"none\""), d, None), (d, d));
}

#[test]
fn decorrelated_jitter_begins_at_base_and_goes_to_three_times_the_last_draw_under_the_cap() {
    let retry = retry("kind = \"decorrelated\"");
    let base = ms(30_000);
    assert_eq!(interval(&retry, base, None), (base, base));
    assert_eq!(
        interval(&retry, ms(120_000), Some(ms(40_000))),
        (base, ms(120_000))
    );
    assert_eq!(
        interval(&retry, ms(120_000), Some(ms(30_000_000))),
        (base, ms(36_000_000))
    );
    assert_eq!(
        interval(&retry, ms(120_000), Some(Duration::MAX)),
        (base, ms(36_000_000))
    );
    // Another contract drew so little before: the interval is never empty.
    assert_eq!(interval(&retry, ms(120_000), Some(ms(1))), (base, base));
}

#[test]
fn the_cap_comes_once_more_after_jitter_only_where_the_contract_says_so() {
    let d = ms(36_000_000);
    let up = "kind = \"proportional\"\nratio = \"50%\"\ndirection = \"up\"";
    assert_eq!(bounds(&retry(up), d, None), (d, ms(54_000_000)));
    let capped = format!("{up}\ncap_after_jitter = true");
    assert_eq!(bounds(&retry(&capped), d, None), (d, d));
    assert_eq!(draw(&retry(&capped), d, &key("msg_1", 1), None), d);
}

#[test]
fn the_draw_is_the_known_answer() {
    // Computed apart, with Python's hashlib:
    // h = sha256(b"".join(len(f).to_bytes(4) + f for f in (b"duehook-jitter-v1", b"msg_1", b"ep_1", (1).to_bytes(8), n.to_bytes(8))))
    // wait = int.from_bytes(h.digest()[:8]) * 1_000_001 >> 64
    let full = retry("kind = \"full\"");
    for (message, n, want) in [KNOWN_1, KNOWN_2, KNOWN_3] {
        assert_eq!(
            draw(&full, ms(1_000_000), &key(message, n), None),
            ms(want),
            "{message} {n}"
        );
    }
}

const KNOWN_1: (&str, u32, u64) = ("msg_1", 1, 212_147);
const KNOWN_2: (&str, u32, u64) = ("msg_1", 2, 507_297);
const KNOWN_3: (&str, u32, u64) = ("msg_2", 1, 594_480);

#[test]
fn a_draw_depends_on_each_of_its_fields_and_on_nothing_else() {
    let full = retry("kind = \"full\"");
    let d = ms(1_000_000_000);
    let one = DrawKey {
        message_id: "ab",
        endpoint_id: "c",
        delivery_no: DeliveryNo::new(1),
        retry_no: RetryNo::new(2),
    };
    let drawn = draw(&full, d, &one, None);
    assert_eq!(draw(&full, d, &one, None), drawn);
    for other in [
        DrawKey {
            message_id: "a",
            endpoint_id: "bc",
            ..one
        },
        DrawKey {
            endpoint_id: "d",
            ..one
        },
        DrawKey {
            delivery_no: DeliveryNo::new(2),
            ..one
        },
        DrawKey {
            retry_no: RetryNo::new(1),
            ..one
        },
    ] {
        assert_ne!(draw(&full, d, &other, None), drawn, "{other:?}");
    }
}

/// How many of 20 000 draws fall into each fifth of the interval [lo, hi].
fn fifths(draws: impl Iterator<Item = u64>, lo: u64, hi: u64) -> [u32; 5] {
    let mut counts = [0; 5];
    for wait in draws {
        assert!((lo..=hi).contains(&wait), "{wait} outside [{lo}, {hi}]");
        counts[usize::try_from((wait - lo) * 5 / (hi - lo + 1)).unwrap()] += 1;
    }
    counts
}

/// Pearson's χ² against a flat distribution; with 4 degrees of freedom 18.5 is passed by chance once in a thousand.
/// The draws are fixed by their keys, so that this never is a matter of luck.
fn chi_squared(counts: [u32; 5]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / 5.0;
    counts
        .iter()
        .map(|count| (f64::from(*count) - expected).powi(2) / expected)
        .sum()
}

fn messages() -> impl Iterator<Item = String> {
    (0..20_000).map(|n| format!("msg_{n}"))
}

#[test]
fn draws_lie_flat_over_their_interval() {
    let d = ms(100_000);
    for kind in KINDS {
        let retry = retry(kind);
        let (lo, hi) = interval(&retry, d, None);
        let draws = messages().map(|message| draw(&retry, d, &key(&message, 3), None).as_ms());
        let counts = fifths(draws, lo.as_ms(), hi.as_ms());
        assert!(chi_squared(counts) < 18.5, "{kind}: {counts:?}");
    }
    let decorrelated = retry("kind = \"decorrelated\"");
    let previous = Some(ms(60_000));
    let draws = messages().map(|message| draw(&decorrelated, d, &key(&message, 3), previous).as_ms());
    let counts = fifths(draws, 30_000, 180_000);
    assert!(chi_squared(counts) < 18.5, "{counts:?}");
}

#[test]
fn the_measure_of_flatness_notices_two_humps_and_a_bias() {
    // A known bug of a public job queue: sign and size from one number, d ± r·u with the sign from u's upper half. All
    // within range, yet nothing in [d, d + r/2). A test of the range alone would pass it.
    let (d, r) = (100_000_u64, 20_000_u64);
    let u = messages().zip(0_u64..).map(|(_, n)| (n * 7_919) % 20_000);
    let humped = u.map(|u| {
        if u < 10_000 {
            d - u * r / 20_000
        } else {
            d + u * r / 20_000
        }
    });
    assert!(chi_squared(fifths(humped, d - r, d + r)) > 1000.0);
    // Modulo bias, as strong as it gets: the upper half never drawn.
    let biased = (0_u64..20_000).map(|n| n % 10_000);
    assert!(chi_squared(fifths(biased, 0, 19_999)) > 1000.0);
}

#[test]
fn every_value_of_a_small_interval_is_drawn_both_ends_included() {
    let full = retry("kind = \"full\"");
    let drawn: std::collections::BTreeSet<u64> = messages()
        .take(200)
        .map(|message| draw(&full, ms(3), &key(&message, 1), None).as_ms())
        .collect();
    assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

proptest! {
    #[test]
    fn a_draw_lies_within_its_interval(
        kind in proptest::sample::select(KINDS), d in 0_u64..=315_360_000_000, message in "[a-z0-9]{1,40}", n in 1_u32..10_000
    ) {
        let retry = retry(kind);
        let (lo, hi) = interval(&retry, ms(d), None);
        let drawn = draw(&retry, ms(d), &key(&message, n), None);
        prop_assert!(lo <= drawn && drawn <= hi);
    }
}
