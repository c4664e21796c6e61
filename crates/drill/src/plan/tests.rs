//! The drill of the retry round: every fault is exercised and caught, and a blunted gate is noticed.

use super::*;
use contract::rounds::RetryRoundContract;
use gates::sha256_of;

/// The drill's own planner without a fault, with the contract and the facts refused as they must be.
struct Small;

impl Planner for Small {
    fn plan(&self, files: &RetryFiles, report: &Path) -> Code {
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let texts = RetryTexts {
            contract: read(&files.contract),
            endpoints: read(&files.endpoints),
            attempts: read(&files.attempts),
        };
        if RetryRoundContract::read(texts.contract.as_bytes(), "retry.env").is_err() {
            return Code::Contract;
        }
        let bad = ["asleep", "a-backwards", "a-zero"];
        let all = format!("{}{}", texts.endpoints, texts.attempts);
        if texts.attempts.is_empty() || bad.iter().any(|word| all.contains(word)) {
            return Code::Problem;
        }
        let mut value = super::report(&texts, &[]);
        value["build"] = "test".into();
        value["inputs"] = serde_json::json!({
            "contract": sha256_of(texts.contract.as_bytes()), "endpoints": sha256_of(texts.endpoints.as_bytes()),
            "attempts": sha256_of(texts.attempts.as_bytes()),
        });
        std::fs::write(report, value.to_string()).map_or(Code::Problem, |()| Code::Clean)
    }
}

#[test]
fn every_fault_is_exercised_and_caught() {
    let drill = drill_plan(&Gates::default(), &Small).expect("drill");
    for row in &drill.rows {
        assert!(row.caught(), "{row:?}");
    }
    assert_eq!(drill.code(), Code::Clean, "{:?}", drill.summary());
    assert_eq!(drill.rows.len(), 15 + 4);
}

#[test]
fn a_blunted_gate_makes_the_drill_exit_2() {
    for (blunt, gates) in Blunt::each(&Gates::default()) {
        let drill = drill_plan_on(
            &gates,
            &Small,
            &[("worked", case::worked())],
            &[PlanFault::SlackDropped],
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
    let quiet = RetryTexts {
        attempts: "attempt_id\tendpoint_id\tattempt_no\tstart_ts\tfinish_ts\tstatus\terror\n".to_owned(),
        ..case::worked()
    };
    let drill = drill_plan_on(
        &Gates::default(),
        &Small,
        &[("quiet", quiet)],
        &[PlanFault::SlackDropped],
    )
    .expect("drill");
    assert_eq!(drill.code(), Code::Problem);
    let slack = drill
        .rows
        .iter()
        .find(|row| row.fault == "slack dropped")
        .expect("row");
    assert_eq!(slack.verdict, "NOT EXERCISED");
    assert!(!slack.caught());
}

#[test]
fn a_planner_that_is_wrong_itself_is_not_green_before_the_first_fault() {
    let wrong = Faulty {
        sound: &Small,
        faults: &[PlanFault::SlackDropped],
    };
    let drill = drill_plan_on(
        &Gates::default(),
        &wrong,
        &[("worked", case::worked())],
        &[PlanFault::SlackDropped],
    )
    .expect("drill");
    assert!(!drill.green_before && !drill.green_after);
    assert_eq!(drill.code(), Code::Problem);
}

/// The report of a scheduler with all the faults of the spec's worked numbers at once.
#[test]
fn the_golden_faulty_report_differs_in_exactly_26_places() {
    let case = Case::lay("worked", &case::worked(), &Small).expect("case");
    let golden = Faulty {
        sound: &Small,
        faults: &[
            PlanFault::MaxForMin,
            PlanFault::LifetimeExponent,
            PlanFault::FirstHasEarliest,
            PlanFault::NoResetAfterSuccess,
            PlanFault::DrainingAdmitted,
            PlanFault::OkConstant,
            PlanFault::OverDeadLetterConstant,
            PlanFault::TotalsOverLedger,
            PlanFault::SkippedLeftOut,
            PlanFault::EverSucceeded,
        ],
    };
    let report = case.dir.path().join("report.json");
    golden.plan(&case.files, &report);
    let verdict = probe_plan(gates::Probe::default(), &case.files, &report);
    assert_eq!(
        verdict.lines.last().map(String::as_str),
        Some("RESULT: BAD (26 mismatches)"),
        "{verdict:#?}"
    );
    assert_eq!(
        verdict.lines.first().map(String::as_str),
        Some("a-02.earliest_ts: expected 1017, found 1077")
    );
}

/// Each case with the report of a sound planner and of a few faulty ones, named `name` beside its inputs.
pub(crate) fn faulty_reports(name: &str) -> Vec<(tempfile::TempDir, RetryFiles)> {
    let faults: [&[PlanFault]; 4] = [
        &[],
        &[PlanFault::MaxForMin],
        &[PlanFault::DrainingAdmitted],
        &[PlanFault::SkippedLeftOut],
    ];
    let mut all = Vec::new();
    for texts in [case::worked(), case::generated()] {
        for faults in faults {
            let case = Case::lay("case", &texts, &Small).expect("case");
            let planner = Faulty {
                sound: &Small,
                faults,
            };
            planner.plan(&case.files, &case.dir.path().join(name));
            all.push((case.dir, case.files));
        }
    }
    all
}
