//! `duehook verify`: the acceptance list of a round over one directory of inputs (spec/gates.md).
//!
//! The gates may not name the scheduler; the reports that they try come from this program's own `plan` and `appraise`,
//! run as anybody would run them.

use crate::exit::Exit;
use crate::ui::{fail, say};
use gates::{
    Appraiser, Code, Gates, Planner, QueueFiles, RetryFiles, Verification, verify_appraise, verify_plan,
};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Run every rule of a round's spec as a named check over one directory of inputs
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  duehook verify plan                          the worked case of the spec\n  \
duehook verify plan --dir my-round           retry.env, endpoints.tsv, attempts.tsv in my-round\n  \
duehook verify appraise --dir my-queue --now 1800000\n\n\
Exit codes: 0 every check passed · 2 one failed, or the inputs cannot be read"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    round: Round,
}

#[derive(clap::Subcommand)]
enum Round {
    /// The retry round
    Plan {
        /// The directory with retry.env, endpoints.tsv and attempts.tsv [default: the worked case]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// The queue round
    Appraise {
        /// The directory with queue.env, channels.json and queue.jsonl [default: the worked case]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// The clock, in the contract's unit
        #[arg(
            long,
            value_name = "TIME",
            default_value_t = 1_800_000,
            allow_negative_numbers = true
        )]
        now: i64,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: Args) -> Exit {
    let outcome = match args.round {
        Round::Plan { dir, json } => plan(dir.as_deref()).map(|list| (list, json)),
        Round::Appraise { dir, now, json } => appraise(dir.as_deref(), now).map(|list| (list, json)),
    };
    match outcome {
        Ok((list, json)) => {
            print(&list, json);
            exit_of(list.code())
        }
        Err(error) => fail(Exit::Problem, &error),
    }
}

fn plan(dir: Option<&Path>) -> io::Result<Verification> {
    let worked = tempfile::tempdir()?;
    let dir = match dir {
        Some(dir) => dir,
        None => {
            write_all(worked.path(), &drill::WORKED_PLAN)?;
            worked.path()
        }
    };
    verify_plan(&Gates::default(), &Own::find()?, &RetryFiles::in_dir(dir))
}

fn appraise(dir: Option<&Path>, now: i64) -> io::Result<Verification> {
    let worked = tempfile::tempdir()?;
    let dir = match dir {
        Some(dir) => dir,
        None => {
            write_all(worked.path(), &drill::WORKED_APPRAISE)?;
            worked.path()
        }
    };
    verify_appraise(&Gates::default(), &Own::find()?, &QueueFiles::in_dir(dir), now)
}

fn write_all(dir: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    files
        .iter()
        .try_for_each(|(name, text)| std::fs::write(dir.join(name), text))
}

fn print(list: &Verification, json: bool) {
    if json {
        let checks: Vec<_> = list
            .checks
            .iter()
            .map(|check| serde_json::json!({"name": check.name, "passed": check.fault.is_none(), "fault": check.fault}))
            .collect();
        let failed = list.failed();
        say(
            serde_json::json!({"checks": checks, "pass": list.checks.len() - failed, "fail": failed, "ok": list.code() == Code::Clean}),
        );
    } else {
        list.lines().iter().for_each(say);
    }
}

/// This program itself, as a planner and an appraiser.
pub(crate) struct Own {
    program: PathBuf,
}

impl Own {
    pub(crate) fn find() -> io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
        })
    }

    fn call(&self, arguments: &[&OsStr]) -> Code {
        let status = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        // A command that cannot be run, or that died, has judged nothing.
        status
            .ok()
            .and_then(|status| Code::from_number(status.code()?))
            .unwrap_or(Code::Problem)
    }
}

impl Planner for Own {
    fn plan(&self, files: &RetryFiles, report: &Path) -> Code {
        self.call(&[
            "plan".as_ref(),
            "--contract".as_ref(),
            files.contract.as_ref(),
            "--endpoints".as_ref(),
            files.endpoints.as_ref(),
            "--attempts".as_ref(),
            files.attempts.as_ref(),
            "--report".as_ref(),
            report.as_ref(),
        ])
    }
}

impl Appraiser for Own {
    fn appraise(&self, files: &QueueFiles, now: i64, report: &Path) -> Code {
        self.call(&[
            "appraise".as_ref(),
            "--contract".as_ref(),
            files.contract.as_ref(),
            "--channels".as_ref(),
            files.channels.as_ref(),
            "--queue".as_ref(),
            files.queue.as_ref(),
            "--now".as_ref(),
            now.to_string().as_ref(),
            "--report".as_ref(),
            report.as_ref(),
        ])
    }
}

/// The exit of a gate's code.
pub(crate) fn exit_of(code: Code) -> Exit {
    match code {
        Code::Clean => Exit::Clean,
        Code::DoesNotHold => Exit::DoesNotHold,
        Code::Problem => Exit::Problem,
        Code::Contract => Exit::Contract,
    }
}
