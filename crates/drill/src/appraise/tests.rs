//! The drill of the queue round: every fault is exercised and caught, and a blunted gate is noticed.

use super::*;
use contract::rounds::QueueRoundContract;
use gates::sha256_of;

/// The drill's own appraiser without a fault, with contract and channels refused as they must be.
struct Small;

impl Appraiser for Small {
    fn appraise(&self, files: &QueueFiles, now: i64, report: &Path) -> Code {
        let Ok(texts) = texts_of(files, now) else {
            return Code::Problem;
        };
        if QueueRoundContract::read(texts.contract.as_bytes(), "queue.env").is_err() {
            return Code::Contract;
        }
        let channels: Option<serde_json::Map<String, Value>> = serde_json::from_str(&texts.channels).ok();
        if channels.is_none_or(|all| all.values().any(|channel| !channel["enabled"].is_boolean())) {
            return Code::Problem;
        }
        let malformed: Vec<Value> = (1..)
            .zip(texts.queue.lines())
            .filter(|(_, line)| !line.trim().is_empty() && serde_json::from_str::<Value>(line).is_err())
            .map(|(n, _): (u64, _)| serde_json::json!({"line": n, "error": "no JSON"}))
            .collect();
        let code = if malformed.is_empty() {
            Code::Clean
        } else {
            Code::Problem
        };
        let mut value = super::report(&texts, &malformed.into(), None);
        value["engine"] = "queue-appraiser".into();
        value["build"] = "test".into();
        value["inputs"] = serde_json::json!({
            "contract": sha256_of(texts.contract.as_bytes()), "channels": sha256_of(texts.channels.as_bytes()),
            "queue": sha256_of(texts.queue.as_bytes()),
        });
        std::fs::write(report, value.to_string()).map_or(Code::Problem, |()| code)
    }
}

#[test]
fn every_fault_is_exercised_and_caught() {
    let drill = drill_appraise(&Gates::default(), &Small).expect("drill");
    for row in &drill.rows {
        assert!(row.caught(), "{row:?}");
    }
    assert_eq!(drill.code(), Code::Clean, "{:?}", drill.summary());
    assert_eq!(drill.rows.len(), 14 + 4);
}

#[test]
fn a_blunted_gate_makes_the_drill_exit_2() {
    for (blunt, gates) in Blunt::each(&Gates::default()) {
        let drill = drill_appraise_on(
            &gates,
            &Small,
            &[("worked", case::worked())],
            &[AppraiseFault::RowDropped],
        )
        .expect("drill");
        assert_eq!(drill.code(), Code::Problem, "{blunt:?}");
        // An emptied list is red for everything, the clean report too; a forced exit misses the faults.
        let missed = drill.rows.iter().any(|row| row.verdict.starts_with("MISSED"));
        assert_eq!(missed, blunt != Blunt::EmptyChecks, "{blunt:?}");
        assert!(!drill.green_before, "{blunt:?}");
    }
}

#[test]
fn a_fault_that_nothing_exercises_is_said_and_never_counts_as_caught() {
    let drill = drill_appraise_on(
        &Gates::default(),
        &Small,
        &[("worked", case::worked())],
        &[AppraiseFault::DeadNotDecided],
    )
    .expect("drill");
    let dead = drill
        .rows
        .iter()
        .find(|row| row.fault == "dead not decided")
        .expect("row");
    assert_eq!(dead.verdict, "NOT EXERCISED");
    assert_eq!(drill.code(), Code::Problem);
}

/// spec/queue-round.md, Worked numbers: what the two classic faults read.
#[test]
fn the_classic_faults_read_as_the_spec_says() {
    let times = report(
        &case::worked(),
        &Value::Array(Vec::new()),
        Some(AppraiseFault::BaseTimesAttempts),
    );
    assert_eq!((&times["deliver"], &times["defer"]), (&4.into(), &1.into()));
    let backoffs = |report: &Value| -> Vec<i64> {
        [0, 4, 6]
            .map(|n| report["results"][n]["backoff_ms"].as_i64().unwrap_or(-1))
            .to_vec()
    };
    assert_eq!(backoffs(&times), [60_000, 30_000, 0]);
    let power = report(
        &case::worked(),
        &Value::Array(Vec::new()),
        Some(AppraiseFault::BaseToTheAttempts),
    );
    assert_eq!(backoffs(&power), [900_000_000, 30_000, 1]);
}

/// Each case with the report of a few faulty appraisers, named `name` beside its inputs.
pub(crate) fn faulty_reports(name: &str) -> Vec<(tempfile::TempDir, QueueFiles)> {
    let mut all = Vec::new();
    for texts in [case::worked(), case::generated()] {
        for fault in [
            AppraiseFault::OkConstant,
            AppraiseFault::BaseTimesAttempts,
            AppraiseFault::RowDoubled,
        ] {
            let case = Case::lay("case", &texts, &Small).expect("case");
            let appraiser = Faulty { sound: &Small, fault };
            appraiser.appraise(&case.files, case.now, &case.dir.path().join(name));
            all.push((case.dir, case.files));
        }
    }
    all
}
