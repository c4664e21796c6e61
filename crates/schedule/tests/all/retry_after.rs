//! Retry-After (spec/contract.md): a total reader, and four rules.

use crate::support::{at, ms, secs};
use contract::Duration;
use contract::model::RetryAfter;
use proptest::prelude::*;
use schedule::retry_after::{combine, parse};

/// 1994-11-06 08:49:37 UTC, the date of the HTTP specification's examples.
const DATE: i64 = 784_111_777_000;

#[test]
fn seconds_and_all_three_forms_of_an_http_date_are_read() {
    for (header, ended_at, want) in [
        ("0", 0, secs(0)),
        ("120", 0, secs(120)),
        (" 120\t", 0, secs(120)),
        ("007", 0, secs(7)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", DATE - 1500, ms(1500)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", DATE - 1, ms(1)),
        ("Sun Nov  6 08:49:37 1994", DATE - 60_000, secs(60)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", DATE, secs(0)),
    ] {
        assert_eq!(parse(header, at(ended_at)), Some(want), "{header}");
    }
}

#[test]
fn too_many_digits_saturate() {
    assert_eq!(parse("18446744073709551615", at(0)), Some(Duration::MAX));
    assert_eq!(parse(&"9".repeat(400), at(0)), Some(Duration::MAX));
}

#[test]
fn garbage_negative_fractional_and_past_values_count_as_absent() {
    for header in [
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1e3",
        "0x10",
        "soon",
        "12 s",
        "1,2",
        "١٢",
        "Sun, 06 Nov 1994",
        "NaN",
        "\u{0}",
    ] {
        assert_eq!(parse(header, at(0)), None, "{header:?}");
    }
    assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT", at(DATE + 1)), None);
}

#[test]
fn each_rule_combines_the_law_the_draw_and_the_request() {
    let (law, drawn, max) = (secs(100), secs(80), secs(1000));
    let floor = RetryAfter::Floor { max };
    let replace = RetryAfter::Replace { max };
    let bounded = RetryAfter::Bounded { max, times: 2 };
    let cases = [
        (RetryAfter::Ignore, Some(500), 80),
        (floor, None, 80),
        (floor, Some(10), 80),
        (floor, Some(90), 90),
        (floor, Some(5000), 1000),
        (replace, None, 80),
        (replace, Some(10), 10),
        (replace, Some(0), 0),
        (replace, Some(5000), 1000),
        (bounded, None, 80),
        (bounded, Some(10), 100),
        (bounded, Some(150), 150),
        (bounded, Some(5000), 200),
        (
            RetryAfter::Bounded {
                max: secs(50),
                times: 2,
            },
            Some(5000),
            100,
        ),
        (RetryAfter::Bounded { max, times: u32::MAX }, Some(5000), 1000),
    ];
    for (rule, asked, want) in cases {
        assert_eq!(
            combine(rule, law, drawn, asked.map(secs)),
            secs(want),
            "{rule:?} {asked:?}"
        );
    }
}

proptest! {
    #[test]
    fn the_reader_is_total(header in "\\PC{0,60}", now in any::<i64>()) {
        let _ = parse(&header, at(now));
    }

    #[test]
    fn under_the_floor_rule_no_request_shortens_a_wait(drawn in any::<u64>(), asked in any::<u64>(), max in any::<u64>()) {
        let wait = combine(RetryAfter::Floor { max: ms(max) }, ms(drawn), ms(drawn), Some(ms(asked)));
        prop_assert!(wait >= ms(drawn));
    }
}
