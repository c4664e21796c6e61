//! The waits that real systems publish (spec/vectors/policies.json), by the auditor's own derivation.

use audit::waits;
use contract::RetryNo;
use serde::Deserialize;

#[derive(Deserialize)]
struct Policy {
    policy: String,
    contract: Option<String>,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    n: u32,
    min_ms: u64,
    max_ms: u64,
}

#[test]
fn every_published_wait_is_derived() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/policies.json");
    let policies: Vec<Policy> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut judged = 0;
    for policy in &policies {
        let Some(text) = &policy.contract else { continue };
        let contract = contract::parse(text, &policy.policy).unwrap();
        for vector in &policy.vectors {
            let found = waits::interval(&contract, RetryNo::new(vector.n))
                .map(|(low, high)| (low.as_ms(), high.as_ms()));
            assert_eq!(
                found,
                Some((vector.min_ms, vector.max_ms)),
                "{} retry {}",
                policy.policy,
                vector.n
            );
            judged += 1;
        }
    }
    assert!(judged >= 300, "{judged} vectors");
}
