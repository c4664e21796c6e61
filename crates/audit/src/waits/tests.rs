//! Worked numbers of spec/contract.md and every published policy.

use super::*;

fn preset() -> Contract {
    let preset = contract::preset("default").unwrap();
    contract::parse(preset.text, "default").unwrap()
}

#[test]
fn exponential_30s_times_4_capped_at_10h_adds_up_to_21h22m() {
    let contract = preset();
    let waits: Vec<String> =
        (1..=7).map(|n| interval(&contract, RetryNo::new(n)).unwrap().0.to_string()).collect();
    assert_eq!(waits, ["30s", "2m", "8m", "32m", "2h8m", "8h32m", "10h"]);
}

#[test]
fn every_published_policy_gives_its_published_waits() {
    #[derive(serde::Deserialize)]
    struct Policy {
        policy: String,
        contract: Option<String>,
        vectors: Vec<Vector>,
    }
    #[derive(serde::Deserialize)]
    struct Vector {
        n: u32,
        min_ms: u64,
        max_ms: u64,
    }
    let text = include_str!("../../../../spec/vectors/policies.json");
    let policies: Vec<Policy> = serde_json::from_str(text).unwrap();
    let mut checked = 0;
    for policy in policies {
        let Some(toml) = policy.contract else { continue };
        let contract = contract::parse(&toml, &policy.policy).unwrap();
        for vector in policy.vectors {
            let (lo, hi) = interval(&contract, RetryNo::new(vector.n)).unwrap();
            assert_eq!((lo.as_ms(), hi.as_ms()), (vector.min_ms, vector.max_ms), "{} n={}", policy.policy, vector.n);
            checked += 1;
        }
    }
    assert!(checked > 300, "only {checked} vectors were checked");
}
