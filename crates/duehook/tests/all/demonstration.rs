//! `duehook demo`: the main job, end to end, in a few seconds.

use std::process::Command;

#[test]
fn the_demo_ends_ok() {
    let output = Command::new(env!("CARGO_BIN_EXE_duehook"))
        .args(["demo", "--json"])
        .output()
        .expect("it runs");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&result["ok"], &result["messages"]), (&true.into(), &30.into()));
    assert!(
        result["took_ms"].as_f64().is_some_and(|ms| ms < 20_000.0),
        "{said}"
    );
    // Each message to three receivers, the flaky one three times: a crash adds, nothing takes away.
    assert!(result["requests"].as_u64().is_some_and(|n| n >= 150), "{said}");
}

#[test]
fn keep_wants_a_new_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_duehook"))
        .args(["demo", "--keep"])
        .arg(folder.path())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("does not exist yet"));
}
