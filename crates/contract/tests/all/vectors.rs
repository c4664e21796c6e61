//! The published policies of `spec/vectors/policies.json`: each is a sound contract, or says why it cannot be one.
//! The numbers are run by `schedule` and by `audit`, each on its own.

use serde_json::Value;

fn policies() -> Vec<Value> {
    let text = include_str!("../../../../spec/vectors/policies.json");
    serde_json::from_str(text).expect("an array of policies")
}

#[test]
fn each_policy_is_a_sound_contract_or_says_why_not() {
    let all = policies();
    assert_eq!(all.len(), 74);
    let mut expressed = 0;
    for policy in &all {
        let name = policy["policy"].as_str().expect("a name");
        let vectors = policy["vectors"].as_array().expect("vectors");
        match (policy["contract"].as_str(), policy["cannot"].as_str()) {
            (Some(text), None) => {
                let contract = contract::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(contract.name, name);
                assert_eq!(
                    contract.to_toml(),
                    text,
                    "{name}: the file is in the printed form"
                );
                for vector in vectors {
                    let number = |key: &str| vector[key].as_u64().unwrap_or_else(|| panic!("{name}: {key}"));
                    assert!(number("min_ms") <= number("max_ms"), "{name}");
                    assert!(
                        (1..u64::from(contract.retry.max_attempts)).contains(&number("n")),
                        "{name}"
                    );
                }
                expressed += 1;
            }
            (None, Some(why)) => assert!(!why.is_empty() && vectors.is_empty(), "{name}"),
            _ => panic!("{name}: a contract or a reason, not both"),
        }
    }
    assert_eq!(expressed, 59);
}
