//! Tests: the SQL under `probe/` says the same in the `sqlite3` shell, in `psql` and in the bundled SQLite.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the SQL.
fn probe_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe")
}

/// Says that a check did not run: the gate demands that none is left out.
fn not_run(what: &str, tool: &str) {
    println!("NOT RUN: {what}: `{tool}` is missing");
}

/// The lines that the `sqlite3` shell prints for these scripts, and then for a query, run in `dir`; `None` where there is
/// no shell.
fn sqlite3(dir: &Path, scripts: &[&str], query: &str) -> Option<Vec<String>> {
    let reads: Vec<String> = scripts
        .iter()
        .map(|name| format!(".read {}", probe_dir().join(name).display()))
        .collect();
    let output = Command::new("sqlite3")
        .arg(":memory:")
        .args(&reads)
        .args(Some(query).filter(|query| !query.is_empty()))
        .current_dir(dir)
        .output()
        .ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "sqlite3 says: {errors}");
    Some(
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(str::to_owned)
            .collect(),
    )
}

/// A private PostgreSQL cluster in a temporary directory, stopped when dropped.
struct Cluster {
    dir: tempfile::TempDir,
    bin: PathBuf,
    as_postgres: bool,
}

impl Cluster {
    /// `None` where PostgreSQL is not installed.
    fn start() -> Option<Self> {
        let bin = bin_dir()?;
        // PostgreSQL refuses to run as root, and then its own user owns the cluster.
        let as_postgres = output("id", &["-u"]).is_some_and(|id| id.trim() == "0");
        let dir = tempfile::tempdir().expect("temporary directory");
        if as_postgres {
            assert!(output("chown", &["postgres", &dir.path().display().to_string()]).is_some());
        }
        let cluster = Self {
            dir,
            bin,
            as_postgres,
        };
        let at = cluster.dir.path().display();
        assert!(cluster.run(&format!(
            "initdb -D {at}/data -A trust -U postgres --no-sync -E UTF8 --locale=C"
        )));
        let options = format!("-k {at} -c listen_addresses= -c fsync=off");
        assert!(cluster.run(&format!(
            "pg_ctl -D {at}/data -o '{options}' -l {at}/log -w start"
        )));
        Some(cluster)
    }

    fn run(&self, command: &str) -> bool {
        let command = format!("{}/{command}", self.bin.display());
        let mut shell = if self.as_postgres {
            let mut shell = Command::new("su");
            shell.args(["postgres", "-s", "/bin/sh"]);
            shell
        } else {
            Command::new("sh")
        };
        // The server inherits what it is given: a pipe would never close.
        let quiet = shell
            .arg("-c")
            .arg(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        quiet
            .current_dir("/")
            .status()
            .is_ok_and(|status| status.success())
    }

    /// The lines that `psql` prints for these scripts, and then for a query, run in `folder`.
    fn psql(&self, folder: &Path, scripts: &[&str], query: &str) -> Vec<String> {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-At",
            "-U",
            "postgres",
            "-d",
            "postgres",
            "-h",
        ]);
        psql.arg(self.dir.path()).current_dir(folder);
        for name in scripts {
            psql.arg("-f").arg(probe_dir().join(name));
        }
        if !query.is_empty() {
            psql.args(["-c", query]);
        }
        let output = psql.output().expect("psql");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && errors.is_empty(),
            "psql says: {errors}"
        );
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run(&format!(
            "pg_ctl -D {}/data -m immediate stop",
            self.dir.path().display()
        ));
    }
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where `initdb` and `psql` are: on Debian not in the path.
fn bin_dir() -> Option<PathBuf> {
    if let Some(dir) = output("pg_config", &["--bindir"]).map(|dir| PathBuf::from(dir.trim()))
        && dir.join("initdb").exists()
    {
        return Some(dir);
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut dirs: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    dirs.retain(|dir| dir.join("initdb").exists() && dir.join("psql").exists());
    dirs.sort();
    dirs.pop()
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

mod tests {
    use super::*;
    use crate::ledger::tests::write_ledgers;
    use gates::{Probe, probe_appraise, probe_ledger, probe_plan};

    #[test]
    fn the_sqlite3_shell_judges_a_retry_round_as_the_program_does() {
        for (case, files) in crate::plan::tests::faulty_reports("plan.json") {
            let ours = probe_plan(Probe::default(), &files, &case.path().join("plan.json"));
            let Some(shell) = sqlite3(case.path(), &["plan.shell.sql", "plan.sql"], "") else {
                return not_run("probe/plan.sql by hand", "sqlite3");
            };
            assert_eq!(shell, ours.lines);
        }
    }

    #[test]
    fn the_sqlite3_shell_judges_a_queue_round_as_the_program_does() {
        for (case, files) in crate::appraise::tests::faulty_reports("appraisal.json") {
            let ours = probe_appraise(
                Probe::default(),
                &files,
                &case.path().join("appraisal.json"),
                None,
            );
            let Some(shell) = sqlite3(case.path(), &["appraise.shell.sql", "appraise.sql"], "") else {
                return not_run("probe/appraise.sql by hand", "sqlite3");
            };
            assert_eq!(shell, ours.lines);
        }
    }

    #[test]
    fn the_sqlite3_shell_judges_a_ledger_as_the_program_does() {
        for folder in write_ledgers() {
            let ours = probe_ledger(Probe::default(), folder.path(), None);
            let scripts = ["ledger.sqlite-import.sql", "ledger.sqlite.sql", "ledger.sql"];
            let Some(shell) = sqlite3(folder.path(), &scripts, "") else {
                return not_run("probe/ledger.sql by hand", "sqlite3");
            };
            assert_eq!(sorted(shell), sorted(ours.lines));
        }
    }

    #[test]
    fn psql_judges_a_ledger_as_sqlite_does() {
        let Some(cluster) = Cluster::start() else {
            return not_run("probe/ledger.sql in psql", "initdb (PostgreSQL 15)");
        };
        for folder in write_ledgers() {
            let ours = probe_ledger(Probe::default(), folder.path(), None);
            let psql = cluster.psql(folder.path(), &["ledger.psql-import.sql", "ledger.sql"], "");
            assert_eq!(sorted(psql), sorted(ours.lines));
        }
    }

    /// Every published policy that the language can express, in one ledger whose one delivery asks for many waits.
    fn policies() -> tempfile::TempDir {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/policies.json");
        let policies: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).expect("vectors")).expect("json");
        let texts = policies
            .as_array()
            .expect("list")
            .iter()
            .filter_map(|policy| policy["contract"].as_str());
        let contracts: Vec<_> = texts
            .map(|text| contract::parse(text, "vector").expect("contract"))
            .collect();
        crate::ledger::tests::write_policies(&contracts)
    }

    #[test]
    fn both_dialects_derive_the_same_waits() {
        let folder = policies();
        let query = "SELECT rev || ' ' || n || ' ' || ends || ' ' || wait_ms || ' ' || low_ms || ' ' || high_ms FROM contract_wait";
        let scripts = ["ledger.sqlite-import.sql", "ledger.sqlite.sql", "ledger.sql"];
        let Some(shell) = sqlite3(folder.path(), &scripts, query) else {
            return not_run("the waits in sqlite3", "sqlite3");
        };
        let Some(cluster) = Cluster::start() else {
            return not_run("the waits in psql", "initdb (PostgreSQL 15)");
        };
        let psql = cluster.psql(folder.path(), &["ledger.psql-import.sql", "ledger.sql"], query);
        assert!(shell.len() > 59 * 30, "{}", shell.len());
        assert_eq!(sorted(psql), sorted(shell));
    }
}
