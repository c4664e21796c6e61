//! The canonical form and the printed file lose nothing: both give the same contract back, for any contract.

use contract::model::{
    Anchor, Backoff, Contract, Direction, EndpointClauses, Jitter, Law, OutcomeSets, Rate, Retry, RetryAfter,
    Segment, SimpleLaw, StatusSet, Then,
};
use contract::{CanonicalError, Duration, parse_factor, preset};
use proptest::prelude::*;

/// The canonical text of the spec's example. It is what revisions are made of: a change here is a change of format.
const EXAMPLE: &str = concat!(
    r#"{"contract":1,"endpoint":{"disable_after_ms":432000000,"disable_on":[[410,410]],"in_flight":8,"min_gap_ms":0,"#,
    r#""rate":null,"timeout_ms":15000},"name":"acme-webhooks","outcome":{"success":[[200,299]],"terminal":[[410,410]]},"#,
    r#""retry":{"anchor":"end","backoff":{"base_ms":30000,"cap_ms":36000000,"factor_ppm":4000000,"floor_ms":0,"#,
    r#""law":"exponential"},"jitter":{"cap_after_jitter":false,"kind":"none"},"late_after_ms":30000,"#,
    r#""max_age_ms":259200000,"max_attempts":8,"retry_after":{"max_ms":86400000,"rule":"floor"},"slack_ms":0}}"#
);

#[test]
fn the_canonical_form_of_the_example_is_fixed() {
    let contract = preset("default").expect("it ships").contract().expect("sound");
    assert_eq!(contract.canonical(), EXAMPLE);
    assert_eq!(contract.rev(), contract::revision_of(EXAMPLE));
    assert_eq!(contract.rev().len(), 64);
    assert_eq!(Contract::from_canonical(EXAMPLE).expect("canonical"), contract);
}

#[test]
fn comments_order_and_units_do_not_change_the_revision() {
    let text = preset("default").expect("it ships").text;
    let rev = |text: &str| contract::parse(text, "t").unwrap_or_else(|e| panic!("{e}")).rev();
    assert_eq!(rev(&text.replacen("\"30s\"", "\"30000ms\"", 2)), rev(text));
    assert_eq!(
        rev(&text.replacen("\"200-299\"", "\"204\", \"200-203\", \"205-299\"", 1)),
        rev(text)
    );
    assert_ne!(
        rev(&text.replacen("max_attempts = 8", "max_attempts = 9", 1)),
        rev(text)
    );
}

#[test]
fn what_is_not_canonical_is_refused() {
    let not = |text: &str| Contract::from_canonical(text).expect_err(text);
    assert_eq!(not(&EXAMPLE.replace(":1,", ": 1,")), CanonicalError::NotCanonical);
    assert_eq!(
        not(&EXAMPLE.replace("\"contract\":1", "\"and\":1,\"contract\":1")),
        CanonicalError::NotCanonical
    );
    assert_eq!(
        not(&EXAMPLE.replace("\"min_gap_ms\":0,", "")),
        CanonicalError::Field("min_gap_ms")
    );
    assert_eq!(
        not(&EXAMPLE.replace("\"base_ms\":30000", "\"base_ms\":-1")),
        CanonicalError::Field("base_ms")
    );
    assert_eq!(
        not(&EXAMPLE.replace("\"kind\":\"none\"", "\"kind\":\"some\"")),
        CanonicalError::Field("kind")
    );
    assert!(matches!(
        not(&EXAMPLE.replace("\"timeout_ms\":15000", "\"timeout_ms\":0")),
        CanonicalError::Contradiction { .. }
    ));
    assert!(matches!(not(&EXAMPLE[1..]), CanonicalError::NotJson(_)));
    assert!(matches!(not(""), CanonicalError::NotJson(_)));
}

fn duration(low: u64, high: u64) -> impl Strategy<Value = Duration> {
    (low..=high).prop_map(Duration::from_ms)
}

/// Waits up to an hour, below every cap drawn here.
fn wait() -> impl Strategy<Value = Duration> {
    duration(1, 3_600_000)
}

fn simple_law() -> impl Strategy<Value = SimpleLaw> {
    let factor = (1_000_000u64..=100_000_000).prop_map(|ppm| {
        parse_factor(&format!("{}.{:06}", ppm / 1_000_000, ppm % 1_000_000)).expect("a factor")
    });
    let then = prop_oneof![Just(Then::Repeat), Just(Then::Stop)];
    prop_oneof![
        wait().prop_map(|base| SimpleLaw::Fixed { base }),
        (wait(), wait()).prop_map(|(base, step)| SimpleLaw::Linear { base, step }),
        (wait(), factor).prop_map(|(base, factor)| SimpleLaw::Exponential { base, factor }),
        (wait(), 1u8..=8).prop_map(|(base, power)| SimpleLaw::Polynomial { base, power }),
        (prop::collection::vec(wait(), 1..6), then)
            .prop_map(|(waits, then)| SimpleLaw::Schedule { waits, then }),
    ]
}

/// A law that another segment follows.
fn inner_segment() -> impl Strategy<Value = Segment> {
    (simple_law(), 1u32..=10_000).prop_map(|(law, count)| match law {
        SimpleLaw::Schedule { waits, .. } => Segment {
            count: u32::try_from(waits.len()).ok(),
            law: SimpleLaw::Schedule {
                waits,
                then: Then::Repeat,
            },
        },
        law => Segment {
            law,
            count: Some(count),
        },
    })
}

fn law() -> impl Strategy<Value = Law> {
    let segments = (prop::collection::vec(inner_segment(), 0..4), simple_law());
    prop_oneof![
        simple_law().prop_map(Law::Simple),
        segments.prop_map(|(mut all, law)| {
            all.push(Segment { law, count: None });
            Law::Segments(all)
        }),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let direction = prop_oneof![Just(Direction::Up), Just(Direction::Down), Just(Direction::Both)];
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        (1u32..=1_000_000, direction)
            .prop_map(|(ratio_ppm, direction)| Jitter::Proportional { ratio_ppm, direction }),
    ]
}

fn retry_after() -> impl Strategy<Value = RetryAfter> {
    prop_oneof![
        Just(RetryAfter::Ignore),
        wait().prop_map(|max| RetryAfter::Floor { max }),
        wait().prop_map(|max| RetryAfter::Replace { max }),
        (wait(), 1u32..=1000).prop_map(|(max, times)| RetryAfter::Bounded { max, times }),
    ]
}

fn retry() -> impl Strategy<Value = Retry> {
    let anchor = prop_oneof![Just(Anchor::End), Just(Anchor::Start), Just(Anchor::First)];
    let backoff = (
        law(),
        prop::option::of(duration(3_600_000, 315_360_000_000)),
        duration(0, 3_600_000),
    );
    let head = (1u32..=10_000, prop::option::of(wait()), anchor, wait(), wait());
    (head, backoff, jitter(), any::<bool>(), retry_after()).prop_map(
        |(head, backoff, jitter, again, retry_after)| {
            let (max_attempts, max_age, anchor, slack, late_after) = head;
            let (law, cap, floor) = backoff;
            let cap_after_jitter = again && cap.is_some();
            let backoff = Backoff { law, cap, floor };
            Retry {
                max_attempts,
                max_age,
                anchor,
                slack,
                late_after,
                backoff,
                jitter,
                cap_after_jitter,
                retry_after,
            }
        },
    )
}

/// Sets within one hundred of statuses, so that two sets of different hundreds never meet.
fn statuses(hundred: u16) -> impl Strategy<Value = StatusSet> {
    prop::collection::btree_set(hundred..hundred + 100, 1..8)
        .prop_map(|set| StatusSet::from_ranges(set.into_iter().map(|s| (s, s)).collect()).expect("disjoint"))
}

fn contract() -> impl Strategy<Value = Contract> {
    let rate =
        prop::option::of((1u32..=1_000_000, wait()).prop_map(|(starts, window)| Rate { starts, window }));
    let endpoint = (
        wait(),
        rate,
        1u32..=1_000_000,
        wait(),
        prop::option::of(wait()),
        statuses(500),
    );
    let name = "[^\\p{Cc}]{1,40}";
    (name, retry(), statuses(200), statuses(400), endpoint).prop_map(
        |(name, retry, success, terminal, endpoint)| {
            let (min_gap, rate, in_flight, timeout, disable_after, disable_on) = endpoint;
            Contract {
                name,
                retry,
                outcome: OutcomeSets { success, terminal },
                endpoint: EndpointClauses {
                    min_gap,
                    rate,
                    in_flight,
                    timeout,
                    disable_after,
                    disable_on,
                },
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_canonical_form_is_an_exact_inverse(contract in contract()) {
        let text = contract.canonical();
        prop_assert_eq!(Contract::from_canonical(&text).expect("canonical"), contract);
    }

    #[test]
    fn a_printed_contract_reads_back_the_same(contract in contract()) {
        let text = contract.to_toml();
        let again = contract::parse(&text, "printed").unwrap_or_else(|e| panic!("{e}\n{text}"));
        prop_assert_eq!(again.rev(), contract.rev());
        prop_assert_eq!(again, contract);
    }

    #[test]
    fn no_text_makes_the_readers_panic(text in "\\PC{0,200}", cut in 0usize..1200, junk in any::<Vec<u8>>()) {
        let _ = contract::parse(&text, "any");
        let _ = Contract::from_canonical(&text);
        let _ = contract::rounds::RetryRoundContract::read(&junk, "any");
        let example = preset("default").expect("it ships").text;
        let mut bytes = example.as_bytes().to_vec();
        let cut = cut.min(bytes.len());
        bytes.splice(cut.., junk);
        let _ = contract::parse_bytes(&bytes, "any");
    }
}
