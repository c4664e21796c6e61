//! Laws (spec/contract.md, Meaning): worked numbers, saturation, rounding.

use crate::support::{law_wait, waits, with_law, worked};
use proptest::prelude::*;

const S: u64 = 1000;
const M: u64 = 60 * S;
const H: u64 = 60 * M;
const TEN_YEARS: u64 = 3650 * 24 * H;

fn all(waits: &[u64]) -> Vec<Option<u64>> {
    waits.iter().copied().map(Some).collect()
}

#[test]
fn the_worked_contract_waits_21_hours_and_22_minutes_in_all() {
    let got = waits(&worked(&[]), 7);
    assert_eq!(
        got,
        all(&[
            30 * S,
            2 * M,
            8 * M,
            32 * M,
            2 * H + 8 * M,
            8 * H + 32 * M,
            10 * H
        ])
    );
    assert_eq!(got.into_iter().flatten().sum::<u64>(), 21 * H + 22 * M + 30 * S);
}

#[test]
fn each_law_gives_its_worked_waits() {
    let cases: &[(&str, &[u64])] = &[
        ("law = \"fixed\"\nbase = \"5s\"", &[5 * S, 5 * S, 5 * S]),
        (
            "law = \"linear\"\nbase = \"5s\"\nstep = \"2s\"",
            &[5 * S, 7 * S, 9 * S, 11 * S],
        ),
        (
            "law = \"polynomial\"\nbase = \"1s\"\npower = 2",
            &[S, 4 * S, 9 * S, 16 * S],
        ),
        (
            "law = \"polynomial\"\nbase = \"1ms\"\npower = 8",
            &[1, 256, 6561, 65536],
        ),
        (
            "law = \"exponential\"\nbase = \"1s\"\nfactor = \"1.5\"",
            &[S, 1500, 2250, 3375, 5062, 7593],
        ),
        (
            "law = \"exponential\"\nbase = \"7s\"\nfactor = \"1\"",
            &[7 * S, 7 * S, 7 * S],
        ),
        (
            "law = \"schedule\"\nwaits = [\"5s\", \"5m\", \"0s\"]\nthen = \"repeat\"",
            &[5 * S, 5 * M, 0, 0, 0],
        ),
    ];
    for (law, want) in cases {
        let contract = with_law(&format!("{law}\ncap = \"none\"\nfloor = \"0s\""));
        let count = u32::try_from(want.len()).unwrap();
        assert_eq!(waits(&contract, count), all(want), "{law}");
    }
}

#[test]
fn microseconds_are_kept_between_the_steps_of_an_exponential_law() {
    // 1 ms · 1.5^n: floored to the millisecond only when it is read; rounding each step would stay at 1 ms for ever.
    let contract =
        with_law("law = \"exponential\"\nbase = \"1ms\"\nfactor = \"1.5\"\ncap = \"none\"\nfloor = \"0s\"");
    assert_eq!(waits(&contract, 7), all(&[1, 1, 2, 3, 5, 7, 11]));
}

#[test]
fn past_its_end_a_schedule_stops_when_it_says_so() {
    let contract = with_law(
        "law = \"schedule\"\nwaits = [\"5s\", \"5m\"]\nthen = \"stop\"\ncap = \"none\"\nfloor = \"0s\"",
    );
    assert_eq!(waits(&contract, 4), [Some(5 * S), Some(5 * M), None, None]);
}

#[test]
fn segments_follow_each_other_and_count_from_one_within() {
    let contract = with_law(
        "law = \"segments\"\ncap = \"none\"\nfloor = \"0s\"\n\
         [[retry.backoff.segment]]\nlaw = \"fixed\"\nbase = \"1s\"\ncount = 2\n\
         [[retry.backoff.segment]]\nlaw = \"schedule\"\nwaits = [\"7s\", \"8s\"]\n\
         [[retry.backoff.segment]]\nlaw = \"exponential\"\nbase = \"10s\"\nfactor = \"2\"",
    );
    assert_eq!(
        waits(&contract, 7),
        all(&[S, S, 7 * S, 8 * S, 10 * S, 20 * S, 40 * S])
    );
}

#[test]
fn the_floor_comes_after_the_law_and_the_cap_after_the_floor() {
    let contract = with_law("law = \"linear\"\nbase = \"1s\"\nstep = \"1s\"\ncap = \"4s\"\nfloor = \"3s\"");
    assert_eq!(
        waits(&contract, 6),
        all(&[3 * S, 3 * S, 3 * S, 4 * S, 4 * S, 4 * S])
    );
}

#[test]
fn without_a_cap_every_law_saturates_at_ten_years_and_never_wraps() {
    for law in [
        "law = \"exponential\"\nbase = \"1ms\"\nfactor = \"100\"",
        "law = \"exponential\"\nbase = \"3650d\"\nfactor = \"100\"",
        "law = \"polynomial\"\nbase = \"3650d\"\npower = 8",
        "law = \"linear\"\nbase = \"3650d\"\nstep = \"3650d\"",
    ] {
        let contract = with_law(&format!("{law}\ncap = \"none\"\nfloor = \"0s\""));
        for n in [100, 9_999, u32::MAX] {
            assert_eq!(
                law_wait(&contract, n).map(contract::Duration::as_ms),
                Some(TEN_YEARS),
                "{law} {n}"
            );
        }
    }
}

#[test]
fn a_factor_close_to_one_is_cheap_even_at_the_last_retry() {
    let contract = with_law(
        "law = \"exponential\"\nbase = \"1s\"\nfactor = \"1.000001\"\ncap = \"none\"\nfloor = \"0s\"",
    );
    assert_eq!(
        law_wait(&contract, 9_999).map(contract::Duration::as_ms),
        Some(1_009)
    );
}

proptest! {
    #[test]
    fn an_exponential_law_never_falls_and_never_passes_its_cap(
        base in 1_u64..100_000, factor in 1_000_000_u64..5_000_000, cap in 1_u64..100_000_000, n in 1_u32..200
    ) {
        let cap = cap.max(base);
        let contract = with_law(&format!(
            "law = \"exponential\"\nbase = \"{base}ms\"\nfactor = \"{}.{:06}\"\ncap = \"{cap}ms\"\nfloor = \"0s\"",
            factor / 1_000_000, factor % 1_000_000
        ));
        let (this, next) = (law_wait(&contract, n).unwrap(), law_wait(&contract, n + 1).unwrap());
        prop_assert!(this <= next && next.as_ms() <= cap && this.as_ms() >= base);
    }
}
