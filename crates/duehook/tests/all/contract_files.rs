//! `duehook contract` as people and programs use it: exit codes, what is printed, what is written.

use std::path::Path;
use std::process::{Command, Output};

fn duehook(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_duehook"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("it runs")
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

#[test]
fn init_writes_a_file_that_check_accepts_and_never_writes_over_one() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(
        duehook(folder.path(), &["contract", "init"]).status.code(),
        Some(0)
    );
    let check = duehook(folder.path(), &["contract", "check", "contract.toml"]);
    assert_eq!(check.status.code(), Some(0), "{}", said(&check));
    let again = duehook(folder.path(), &["contract", "init"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(said(&again).contains("--force"), "{}", said(&again));
    assert_eq!(
        duehook(folder.path(), &["contract", "init", "--force"])
            .status
            .code(),
        Some(0)
    );
}

#[test]
fn every_preset_is_written_as_it_ships() {
    let folder = tempfile::tempdir().expect("a folder");
    for preset in contract::presets() {
        let printed = duehook(folder.path(), &["contract", "init", "--preset", preset.name, "-"]);
        assert_eq!(
            String::from_utf8_lossy(&printed.stdout).trim_end(),
            preset.text.trim_end()
        );
    }
    let unknown = duehook(folder.path(), &["contract", "init", "--preset", "svx"]);
    assert_eq!(unknown.status.code(), Some(64));
    assert!(said(&unknown).contains("svix"), "{}", said(&unknown));
}

#[test]
fn an_unusable_contract_is_exit_3_with_every_problem_and_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = contract::preset("default").expect("it ships").text;
    let text = text
        .replacen("base = \"30s\"", "base = 30", 1)
        .replacen("in_flight = 8", "in_flight = 0", 1);
    std::fs::write(folder.path().join("bad.toml"), text).expect("written");
    for verb in ["check", "show"] {
        let output = duehook(folder.path(), &["contract", verb, "bad.toml"]);
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        let said = said(&output);
        for part in ["bad.toml:14:", "base = 30", "base = \"30s\"", "in_flight = 0"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let answer = json(&duehook(folder.path(), &["contract", verb, "--json", "bad.toml"]));
        assert_eq!(answer["contract_available"], false);
        assert_eq!(answer["problems"][0]["clause"], "retry.backoff.base");
        assert_eq!(answer["problems"][0]["line"], 14);
        assert_eq!(answer["problems"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn a_missing_file_and_a_folder_in_its_place_are_exit_3() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["nowhere.toml", "."] {
        let output = duehook(folder.path(), &["contract", "check", name]);
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(said(&output).contains("cannot be read"), "{}", said(&output));
    }
}

#[test]
fn show_gives_each_retry_with_its_wait_and_age() {
    let folder = tempfile::tempdir().expect("a folder");
    let shown = duehook(folder.path(), &["contract", "show", "preset:default"]);
    let text = said(&shown);
    // The example of spec/contract.md: 30s 2m 8m 32m 2h8m 8h32m 10h, 21h22m in all.
    for part in ["30s", "2m30s", "10m30s", "2h8m", "8h32m", "21h22m30s"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let retries = json(&duehook(
        folder.path(),
        &["contract", "show", "--json", "preset:default"],
    ));
    let waits: Vec<_> = retries["retries"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|r| r["latest_ms"].as_u64())
        .collect();
    let seconds = [30, 120, 480, 1920, 7680, 30_720, 36_000];
    assert_eq!(waits, seconds.map(|s: u64| Some(s * 1000)));
}

#[test]
fn diff_names_the_clauses_and_the_waits_that_differ() {
    let folder = tempfile::tempdir().expect("a folder");
    let same = json(&duehook(
        folder.path(),
        &["contract", "diff", "--json", "preset:svix", "preset:svix"],
    ));
    assert_eq!(
        (&same["same"], &same["rev_a"]),
        (&serde_json::Value::Bool(true), &same["rev_b"])
    );
    let text = said(&duehook(
        folder.path(),
        &["contract", "diff", "preset:svix", "preset:standard-webhooks"],
    ));
    for part in [
        "retry.max_attempts",
        "8",
        "10",
        "retry.backoff.waits",
        "14h..15h24m",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
