//! The vectors of spec/vectors: policies that real systems publish, as far as the language can express them.

use contract::{Contract, Duration, RetryNo};
use schedule::jitter::bounds;
use schedule::law::{LawWait, wait};
use serde::Deserialize;

#[derive(Deserialize)]
struct Policy {
    policy: String,
    contract: Option<String>,
    cannot: Option<String>,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    n: u32,
    min_ms: u64,
    max_ms: u64,
}

/// The least and the largest wait that retry n can draw, over all that could have been drawn before it.
fn range(contract: &Contract, n: u32) -> Option<(u64, u64)> {
    let mut last: Option<(Duration, Duration)> = None;
    for k in 1..=n {
        let LawWait::Wait(law) = wait(&contract.retry, RetryNo::new(k)) else {
            return None;
        };
        let (lo, _) = bounds(&contract.retry, law, last.map(|(lo, _)| lo));
        let (_, hi) = bounds(&contract.retry, law, last.map(|(_, hi)| hi));
        last = Some((lo, hi));
    }
    last.map(|(lo, hi)| (lo.as_ms(), hi.as_ms()))
}

#[test]
fn every_published_policy_waits_as_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/policies.json");
    let policies: Vec<Policy> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (mut expressed, mut vectors) = (0, 0);
    for policy in &policies {
        let Some(text) = &policy.contract else {
            assert!(
                policy.cannot.is_some(),
                "{}: neither a contract nor a reason",
                policy.policy
            );
            continue;
        };
        let contract = contract::parse(text, &policy.policy).unwrap_or_else(|error| panic!("{error}"));
        expressed += 1;
        for Vector { n, min_ms, max_ms } in &policy.vectors {
            assert_eq!(
                range(&contract, *n),
                Some((*min_ms, *max_ms)),
                "{} retry {n}",
                policy.policy
            );
            vectors += 1;
        }
    }
    assert!(
        expressed >= 59 && vectors >= 316,
        "{expressed} policies, {vectors} vectors"
    );
}
