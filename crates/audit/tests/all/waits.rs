//! What a contract says of waits, clause by clause (spec/contract.md, Meaning).

use audit::waits::{self, DrawKey};
use contract::model::{Contract, RetryAfter};
use contract::{DeliveryNo, Duration, Instant, RetryNo};

/// A contract whose `[retry.backoff]` and `[retry.jitter]` are these lines.
pub(crate) fn with(backoff: &str, jitter: &str) -> Contract {
    let text = format!(
        "contract = 1\nname = \"test\"\n[retry]\nmax_attempts = 8\nmax_age = \"3d\"\nanchor = \"end\"\nslack = \"0s\"\n\
         late_after = \"30s\"\n[retry.backoff]\n{backoff}\n[retry.jitter]\n{jitter}\n[retry.retry_after]\nrule = \"ignore\"\n\
         [outcome]\nsuccess = [\"200-299\"]\nterminal = [\"410\"]\n[endpoint]\nmin_gap = \"0s\"\nrate = \"none\"\nin_flight = 8\n\
         timeout = \"15s\"\ndisable_after = \"never\"\ndisable_on = []\n"
    );
    contract::parse(&text, "test").unwrap_or_else(|error| panic!("{}", error.render(100, false)))
}

const NONE: &str = "kind = \"none\"";

fn laws(contract: &Contract, n: std::ops::RangeInclusive<u32>) -> Vec<Option<u64>> {
    n.map(|n| waits::law(contract, RetryNo::new(n)).map(Duration::as_ms))
        .collect()
}

#[test]
fn each_law_gives_its_waits() {
    let minute = 60_000;
    for (backoff, due) in [
        (
            "law = \"fixed\"\nbase = \"5s\"\ncap = \"none\"\nfloor = \"0s\"",
            [5000, 5000, 5000, 5000],
        ),
        (
            "law = \"linear\"\nbase = \"5s\"\nstep = \"2s\"\ncap = \"10s\"\nfloor = \"0s\"",
            [5000, 7000, 9000, 10_000],
        ),
        (
            "law = \"exponential\"\nbase = \"30s\"\nfactor = \"4\"\ncap = \"20m\"\nfloor = \"0s\"",
            [30_000, 2 * minute, 8 * minute, 20 * minute],
        ),
        // ⌊10.5⌋ at each step would give 15 and 22; in microseconds it is 15, 22.5, 33.75.
        (
            "law = \"exponential\"\nbase = \"10ms\"\nfactor = \"1.5\"\ncap = \"none\"\nfloor = \"0s\"",
            [10, 15, 22, 33],
        ),
        (
            "law = \"polynomial\"\nbase = \"1s\"\npower = 4\ncap = \"none\"\nfloor = \"0s\"",
            [1000, 16_000, 81_000, 256_000],
        ),
        (
            "law = \"schedule\"\nwaits = [\"5s\", \"5m\"]\nthen = \"repeat\"\ncap = \"none\"\nfloor = \"0s\"",
            [5000, 300_000, 300_000, 300_000],
        ),
        // The floor lifts, the cap cuts.
        (
            "law = \"linear\"\nbase = \"1s\"\nstep = \"3s\"\ncap = \"6s\"\nfloor = \"2s\"",
            [2000, 4000, 6000, 6000],
        ),
    ] {
        assert_eq!(laws(&with(backoff, NONE), 1..=4), due.map(Some), "{backoff}");
    }
}

#[test]
fn exponential_30s_times_4_capped_at_10h_adds_up_to_21h22m() {
    let contract = changed(&[]);
    let waits = laws(&contract, 1..=7)
        .into_iter()
        .map(|ms| Duration::from_ms(ms.unwrap()));
    let total = waits.clone().fold(Duration::ZERO, |sum, wait| sum + wait);
    let waits: Vec<String> = waits.map(|wait| wait.to_string()).collect();
    assert_eq!(waits, ["30s", "2m", "8m", "32m", "2h8m", "8h32m", "10h"]);
    assert_eq!(total.to_string(), "21h22m30s");
}

#[test]
fn a_schedule_that_stops_gives_no_more_waits_and_there_is_no_retry_0() {
    let contract = with(
        "law = \"schedule\"\nwaits = [\"5s\", \"5m\"]\nthen = \"stop\"\ncap = \"none\"\nfloor = \"0s\"",
        NONE,
    );
    assert_eq!(laws(&contract, 0..=3), [None, Some(5000), Some(300_000), None]);
    assert_eq!(waits::interval(&contract, RetryNo::new(3)), None);
}

#[test]
fn segments_count_from_1_within_each() {
    let contract = with(
        "law = \"segments\"\ncap = \"none\"\nfloor = \"0s\"\n\
         [[retry.backoff.segment]]\nlaw = \"fixed\"\nbase = \"1s\"\ncount = 2\n\
         [[retry.backoff.segment]]\nlaw = \"schedule\"\nwaits = [\"7s\", \"9s\"]\ncount = 2\n\
         [[retry.backoff.segment]]\nlaw = \"exponential\"\nbase = \"10s\"\nfactor = \"2\"\n",
        NONE,
    );
    let due = [1000, 1000, 7000, 9000, 10_000, 20_000, 40_000];
    assert_eq!(laws(&contract, 1..=7), due.map(Some));
}

#[test]
fn laws_saturate_at_ten_years() {
    let ten_years = Some(Duration::TEN_YEARS.as_ms());
    for backoff in [
        "law = \"exponential\"\nbase = \"1d\"\nfactor = \"100\"\ncap = \"none\"\nfloor = \"0s\"",
        "law = \"polynomial\"\nbase = \"10d\"\npower = 8\ncap = \"none\"\nfloor = \"0s\"",
        "law = \"linear\"\nbase = \"1s\"\nstep = \"3650d\"\ncap = \"none\"\nfloor = \"0s\"",
    ] {
        assert_eq!(
            laws(&with(backoff, NONE), 10_000..=10_000),
            [ten_years],
            "{backoff}"
        );
    }
}

#[test]
fn each_jitter_kind_has_its_interval() {
    let law = "law = \"fixed\"\nbase = \"1001ms\"\ncap = \"1100ms\"\nfloor = \"0s\"";
    for (jitter, due) in [
        (NONE, (1001, 1001)),
        ("kind = \"full\"", (0, 1001)),
        ("kind = \"equal\"", (500, 1001)),
        (
            "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"up\"",
            (1001, 1201),
        ),
        (
            "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"down\"",
            (801, 1001),
        ),
        (
            "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"both\"",
            (801, 1201),
        ),
        (
            "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"up\"\ncap_after_jitter = true",
            (1001, 1100),
        ),
    ] {
        let found = waits::interval(&with(law, jitter), RetryNo::new(2));
        assert_eq!(
            found.map(|(low, high)| (low.as_ms(), high.as_ms())),
            Some(due),
            "{jitter}"
        );
    }
}

#[test]
fn decorrelated_jitter_builds_on_the_wait_drawn_before_and_is_capped() {
    let contract = with(
        "law = \"exponential\"\nbase = \"1s\"\nfactor = \"2\"\ncap = \"20s\"\nfloor = \"0s\"",
        "kind = \"decorrelated\"",
    );
    let at = |n, previous: Option<u64>| {
        waits::interval_after(&contract, RetryNo::new(n), previous.map(Duration::from_ms))
            .map(|(low, high)| (low.as_ms(), high.as_ms()))
    };
    assert_eq!(at(1, None), Some((1000, 1000)));
    assert_eq!(at(2, Some(1000)), Some((1000, 3000)));
    assert_eq!(at(3, Some(2500)), Some((1000, 7500)));
    assert_eq!(at(3, Some(9000)), Some((1000, 20_000)));
    let widest = |n| waits::interval(&contract, RetryNo::new(n)).map(|(_, high)| high.as_ms());
    assert_eq!([1, 2, 3, 4].map(widest), [1000, 3000, 9000, 20_000].map(Some));
}

/// The numbers were computed once by other means, from the five fields and their lengths.
#[test]
fn a_draw_is_the_very_one() {
    let law = "law = \"fixed\"\nbase = \"1s\"\ncap = \"none\"\nfloor = \"0s\"";
    let both = "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"both\"";
    let kinds = [
        with(law, "kind = \"full\""),
        with(law, "kind = \"equal\""),
        with(law, both),
    ];
    for (message_id, delivery, retry, due) in DRAWS {
        let key = DrawKey {
            message_id,
            endpoint_id: "ep_1",
            delivery_no: DeliveryNo::new(delivery),
            retry: RetryNo::new(retry),
        };
        let found = kinds
            .each_ref()
            .map(|contract| waits::draw(contract, &key, None).map(Duration::as_ms));
        assert_eq!(found, due.map(Some), "{key:?}");
    }
}

const DRAWS: [(&str, u32, u32, [u64; 3]); 4] = [
    ("msg_1", 1, 1, [212, 606, 885]),
    ("msg_1", 1, 2, [507, 754, 1003]),
    ("msg_1", 2, 1, [779, 889, 1112]),
    ("msg_2", 1, 1, [595, 797, 1038]),
];

#[test]
fn draws_lie_flat_over_their_interval() {
    let contract = with(
        "law = \"fixed\"\nbase = \"99ms\"\ncap = \"none\"\nfloor = \"0s\"",
        "kind = \"full\"",
    );
    let mut buckets = [0u32; 10];
    for n in 1..=20_000 {
        let key = DrawKey {
            message_id: "msg",
            endpoint_id: "ep",
            delivery_no: DeliveryNo::FIRST,
            retry: RetryNo::new(n),
        };
        let drawn = waits::draw(&contract, &key, None).unwrap().as_ms();
        buckets[usize::try_from(drawn / 10).unwrap()] += 1;
    }
    // 2000 each; five standard deviations are 212.
    assert!(buckets.iter().all(|n| n.abs_diff(2000) < 212), "{buckets:?}");
}

#[test]
fn retry_after_is_read_from_seconds_and_dates_and_garbage_counts_as_absent() {
    // Fri, 13 Feb 2009 23:31:30 GMT is 1234567890 s.
    let end = Instant::from_unix_ms(1_234_567_880_500);
    for (header, due_ms) in [
        ("120", Some(120_000)),
        (" 120\t", Some(120_000)),
        ("0", Some(0)),
        ("99999999999999999999999", Some(u64::MAX)),
        ("Fri, 13 Feb 2009 23:31:30 GMT", Some(9500)),
        ("Friday, 13-Feb-09 23:31:30 GMT", Some(9500)),
        ("Fri Feb 13 23:31:30 2009", Some(9500)),
        ("Fri, 13 Feb 2009 23:31:20 GMT", None),
        ("Fri, 13 Feb 2009 23:31:30 CET", None),
        ("-5", None),
        ("+5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ] {
        let found = waits::parse_retry_after(header, end);
        assert_eq!(found.map(Duration::as_ms), due_ms, "{header}");
    }
}

#[test]
fn each_retry_after_rule_does_what_it_says() {
    let (s, max) = (Duration::from_secs, Duration::from_secs(100));
    let bounded = RetryAfter::Bounded { max, times: 2 };
    for (rule, wait, asked, due) in [
        (RetryAfter::Ignore, 10, Some(60), 10),
        (RetryAfter::Floor { max }, 10, Some(60), 60),
        (RetryAfter::Floor { max }, 10, Some(5), 10),
        (RetryAfter::Floor { max }, 10, Some(1000), 100),
        (RetryAfter::Floor { max }, 200, Some(1000), 200),
        (RetryAfter::Replace { max }, 10, Some(5), 5),
        (RetryAfter::Replace { max }, 10, Some(1000), 100),
        (bounded, 10, Some(5), 10),
        (bounded, 10, Some(15), 15),
        (bounded, 10, Some(60), 20),
        (bounded, 10, None, 10),
    ] {
        let found = waits::combine(rule, s(wait), s(wait), asked.map(s));
        assert_eq!(found, s(due), "{rule:?} {wait} {asked:?}");
    }
}

/// `law` is the wait before jitter: a draw below it does not lower the bounds.
#[test]
fn a_bounded_retry_after_is_bounded_by_the_law_and_not_by_the_draw() {
    let (s, max) = (Duration::from_secs, Duration::from_secs(100));
    let bounded = RetryAfter::Bounded { max, times: 2 };
    let after = |asked| waits::combine(bounded, s(10), s(7), asked);
    assert_eq!([None, Some(s(1)), Some(s(60))].map(after), [s(7), s(10), s(20)]);
}

fn warned(contract: &Contract) -> Vec<&'static str> {
    waits::warnings(contract)
        .iter()
        .map(|warning| warning.clause)
        .collect()
}

/// `text` is the default preset with `from` written as `to`.
fn changed(changes: &[(&str, &str)]) -> Contract {
    let text = contract::preset("default").unwrap().text;
    let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    for (key, value) in changes {
        let line = lines
            .iter_mut()
            .find(|line| line.starts_with(&format!("{key} =")));
        *line.unwrap_or_else(|| panic!("no {key}")) = format!("{key} = {value}");
    }
    contract::parse(&lines.join("\n"), "changed").unwrap()
}

#[test]
fn advice_is_given_for_what_is_surely_not_meant() {
    assert_eq!(warned(&changed(&[])), [""; 0]);
    for (changes, due) in [
        (&[("cap", "\"40h\"")][..], "retry.backoff.cap"),
        (&[("cap", "\"30s\"")], "retry.backoff.cap"),
        (&[("max_age", "\"1h\"")], "retry.max_age"),
        (&[("max_attempts", "3"), ("cap", "\"2m\"")], "retry"),
        (&[("kind", "\"full\""), ("floor", "\"5s\"")], "retry.jitter"),
        (&[("max_attempts", "1")], "retry.max_attempts"),
    ] {
        assert!(warned(&changed(changes)).contains(&due), "{changes:?}");
    }
}

#[test]
fn advice_names_attempts_that_the_schedule_cannot_fill() {
    let contract = with(
        "law = \"schedule\"\nwaits = [\"2h\"]\nthen = \"stop\"\ncap = \"none\"\nfloor = \"0s\"",
        NONE,
    );
    let text: Vec<String> = waits::warnings(&contract)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        text,
        ["retry.max_attempts: 8 attempts, and the schedule stops after 2"]
    );
}
