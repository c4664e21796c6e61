//! What the language says: the example of the spec, every law, the presets.

use contract::model::{Anchor, Direction, Jitter, Law, RetryAfter, SimpleLaw, Then};
use contract::{Duration, preset, presets};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn the_example_of_the_spec_is_read_clause_by_clause() {
    let contract = preset("default")
        .expect("it ships")
        .contract()
        .expect("it is sound");
    let retry = &contract.retry;
    assert_eq!(contract.name, "acme-webhooks");
    assert_eq!((retry.max_attempts, retry.anchor), (8, Anchor::End));
    assert_eq!(retry.max_age, Some(secs(3 * 86_400)));
    assert_eq!((retry.slack, retry.late_after), (Duration::ZERO, secs(30)));
    let Law::Simple(SimpleLaw::Exponential { base, factor }) = &retry.backoff.law else {
        panic!("exponential")
    };
    assert_eq!((*base, factor.millionths()), (secs(30), 4_000_000));
    assert_eq!(
        (retry.backoff.cap, retry.backoff.floor),
        (Some(secs(36_000)), Duration::ZERO)
    );
    assert_eq!((retry.jitter, retry.cap_after_jitter), (Jitter::None, false));
    assert_eq!(retry.retry_after, RetryAfter::Floor { max: secs(86_400) });
    assert_eq!(contract.outcome.success.ranges(), [(200, 299)]);
    assert_eq!(contract.outcome.terminal.ranges(), [(410, 410)]);
    assert_eq!((contract.endpoint.in_flight, contract.endpoint.rate), (8, None));
    assert_eq!(
        (contract.endpoint.min_gap, contract.endpoint.timeout),
        (Duration::ZERO, secs(15))
    );
    assert_eq!(contract.endpoint.disable_after, Some(secs(5 * 86_400)));
    assert_eq!(contract.endpoint.disable_on.ranges(), [(410, 410)]);
}

#[test]
fn every_preset_is_a_complete_and_sound_file() {
    for preset in presets() {
        let contract = preset.contract().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            contract::parse(&contract.to_toml(), "again").expect("complete"),
            contract,
            "{}",
            preset.name
        );
    }
    let error = preset("svx").expect_err("no such preset").to_string();
    assert!(
        error.contains("`svx`") && error.contains("default, svix, standard-webhooks"),
        "{error}"
    );
}

/// The example with its backoff table replaced.
pub(crate) fn with_backoff(backoff: &str) -> String {
    let text = preset("default").expect("it ships").text;
    let (head, tail) = text.split_once("[retry.backoff]").expect("the table");
    let (_, tail) = tail.split_once("[retry.jitter]").expect("the next table");
    format!("{head}[retry.backoff]\n{backoff}\n[retry.jitter]{tail}")
}

fn law(backoff: &str) -> Law {
    contract::parse(&with_backoff(backoff), "test.toml")
        .unwrap_or_else(|e| panic!("{e}"))
        .retry
        .backoff
        .law
}

#[test]
fn every_law_is_read() {
    let rest = "cap = \"none\"\nfloor = \"0s\"\n";
    let simple = |text: &str| match law(&format!("{text}\n{rest}")) {
        Law::Simple(law) => law,
        Law::Segments(_) => panic!("one law"),
    };
    assert_eq!(
        simple("law = \"fixed\"\nbase = \"0s\""),
        SimpleLaw::Fixed { base: secs(0) }
    );
    let linear = SimpleLaw::Linear {
        base: secs(1),
        step: secs(2),
    };
    assert_eq!(simple("law = \"linear\"\nbase = \"1s\"\nstep = \"2s\""), linear);
    let polynomial = SimpleLaw::Polynomial {
        base: secs(1),
        power: 4,
    };
    assert_eq!(
        simple("law = \"polynomial\"\nbase = \"1s\"\npower = 4"),
        polynomial
    );
    let schedule = SimpleLaw::Schedule {
        waits: vec![secs(5), secs(300)],
        then: Then::Stop,
    };
    assert_eq!(
        simple("law = \"schedule\"\nwaits = [\"5s\", \"5m\"]\nthen = \"stop\""),
        schedule
    );
    let segments = law(&format!(
        "law = \"segments\"\n{rest}[[retry.backoff.segment]]\nlaw = \"schedule\"\nwaits = [\"1s\", \"2s\"]\n\
         [[retry.backoff.segment]]\nlaw = \"fixed\"\nbase = \"3s\"\ncount = 4\n\
         [[retry.backoff.segment]]\nlaw = \"schedule\"\nwaits = [\"9s\"]\nthen = \"repeat\"\n"
    ));
    let Law::Segments(segments) = segments else {
        panic!("segments")
    };
    assert_eq!(
        segments.iter().map(|s| s.count).collect::<Vec<_>>(),
        [Some(2), Some(4), None]
    );
}

#[test]
fn every_jitter_and_every_retry_after_rule_is_read() {
    let text = preset("default").expect("it ships").text;
    let with = |from: &str, to: &str| {
        contract::parse(&text.replacen(from, to, 1), "test.toml")
            .unwrap_or_else(|e| panic!("{e}"))
            .retry
    };
    let kind = "kind = \"none\"";
    assert_eq!(with(kind, "kind = \"full\"").jitter, Jitter::Full);
    assert_eq!(with(kind, "kind = \"equal\"").jitter, Jitter::Equal);
    assert_eq!(with(kind, "kind = \"decorrelated\"").jitter, Jitter::Decorrelated);
    for (word, direction) in [
        ("up", Direction::Up),
        ("down", Direction::Down),
        ("both", Direction::Both),
    ] {
        let jitter = with(
            kind,
            &format!("kind = \"proportional\"\nratio = \"20%\"\ndirection = \"{word}\""),
        )
        .jitter;
        assert_eq!(
            jitter,
            Jitter::Proportional {
                ratio_ppm: 200_000,
                direction
            }
        );
    }
    assert!(with(kind, "cap_after_jitter = true\nkind = \"full\"").cap_after_jitter);
    let max = secs(86_400);
    assert_eq!(
        with("rule = \"floor\"", "rule = \"replace\"").retry_after,
        RetryAfter::Replace { max }
    );
    let bounded = with("rule = \"floor\"", "times = 2\nrule = \"bounded\"").retry_after;
    assert_eq!(bounded, RetryAfter::Bounded { max, times: 2 });
    let ignore = text
        .replace("max = \"24h\"", "")
        .replace("rule = \"floor\"", "rule = \"ignore\"");
    assert_eq!(
        contract::parse(&ignore, "t").expect("sound").retry.retry_after,
        RetryAfter::Ignore
    );
}

#[test]
fn a_byte_order_mark_and_crlf_change_nothing() {
    let text = preset("default").expect("it ships").text;
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let plain = contract::parse(text, "plain").expect("sound");
    assert_eq!(
        contract::parse_bytes(windows.as_bytes(), "windows").expect("sound"),
        plain
    );
}
