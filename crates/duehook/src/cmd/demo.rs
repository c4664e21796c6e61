//! `duehook demo`: a server, three receivers, thirty messages, a drain, a kill; then three judges.
//!
//! The server is this program in a process of its own, killed by SIGKILL while requests are in the air. Judged are the
//! ledger, by the auditor and by the SQL probe, and the receivers' own logs, which know nothing of the ledger.

mod api;
mod board;
mod judge;
mod server;

use crate::exit::Exit;
use crate::receiver::log_clock;
use crate::receiver::signature::Key;
use crate::receiver::{Config, Receiver};
use crate::ui;
use api::Api;
use board::{Board, View};
use contract::{Contract, Duration};
use judge::{Facts, Judgement, Seen, Span, judge};
use serde_json::{Value, json};
use server::{DemoError, Server, until};
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Watch it work: a server, three receivers, a drain, a kill -9, and three judges
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    duehook demo\n  \
    duehook demo --keep /tmp/demo     then look at the store, the ledger and the logs\n  \
    duehook demo --json\n\n\
    Exit 0 with RESULT: OK; 2 with RESULT: BAD, when any attempt was early, lost or surplus.")]
pub(crate) struct Args {
    /// Keep the store, the ledger, the contract and all logs in this new folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print JSON: the result alone
    #[arg(long)]
    json: bool,
}

const CONTRACT: &str = include_str!("demo/contract.toml");
/// Messages of each of the three phases: before the drain, before the kill, after it.
const PHASE: usize = 10;
const MESSAGES: usize = 3 * PHASE;
/// Between two messages, so that attempts, drain and kill overlap.
const PACE: Duration = Duration::from_ms(15);
/// Far above what the contract needs (some two seconds) on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(10);
/// Long enough for a request that left before the drain to arrive.
const DRAIN_GRACE: Duration = Duration::from_ms(200);
const TOKEN: &str = "demo-token-that-never-leaves-this-machine";

/// A receiver of the demo.
struct Part {
    name: &'static str,
    /// Base64 of 24 bytes: no secret, the receiver is gone in seconds.
    secret: &'static str,
    script: &'static str,
}

/// The flaky one thinks for longer than the first wait: a wait measured from the start would show as early.
const PARTS: [Part; 3] = [
    Part {
        name: "healthy",
        secret: "whsec_ZHVlaG9vay1kZW1vLWhlYWx0aHktMDAw",
        script: "200:after=20ms",
    },
    Part {
        name: "flaky",
        secret: "whsec_ZHVlaG9vay1kZW1vLWZsYWt5LTAwMDAw",
        script: "503:after=250ms,500:after=250ms,200:after=20ms",
    },
    Part {
        name: "draining",
        secret: "whsec_ZHVlaG9vay1kZW1vLWRyYWluaW5nLTAw",
        script: "200:after=20ms",
    },
];
const FLAKY: usize = 1;
const DRAINING: usize = 2;

pub(crate) fn run(args: Args) -> Exit {
    let view = match (args.json, std::io::stdout().is_terminal()) {
        (true, _) => View::Silent,
        (false, true) => View::Rows,
        (false, false) => View::Lines,
    };
    let folder = match Folder::new(args.keep) {
        Ok(folder) => folder,
        Err(error) => return ui::fail(Exit::Problem, &error),
    };
    let started_ms = log_clock();
    let result = Stage::new(folder.path(), view).and_then(|stage| stage.play());
    match result {
        Ok(outcome) => outcome.tell(&folder, log_clock() - started_ms, args.json),
        Err(error) => {
            if args.json {
                ui::say(json!({ "ok": false, "error": error.to_string() }));
            }
            ui::fail(Exit::Problem, &error);
            if !args.json {
                ui::say("RESULT: BAD");
            }
            Exit::Problem
        }
    }
}

/// Where the demo's files are: kept, or gone with it.
enum Folder {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn new(keep: Option<PathBuf>) -> Result<Self, DemoError> {
        let Some(path) = keep else {
            let folder = tempfile::Builder::new().prefix("duehook-demo-").tempdir();
            return folder
                .map(Self::Temporary)
                .map_err(DemoError::io("a temporary folder cannot be made"));
        };
        let what = format!(
            "{} cannot be made: name a folder that does not exist yet",
            path.display()
        );
        std::fs::create_dir(&path).map_err(DemoError::io(what))?;
        path.canonicalize()
            .map(Self::Kept)
            .map_err(DemoError::io("the folder has no path"))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

/// Everything that runs.
struct Stage {
    // Dropped in this order: the server before the receivers, the runtime last.
    server: Server,
    receivers: Vec<Receiver>,
    _runtime: tokio::runtime::Runtime,
    board: Arc<Board>,
    folder: PathBuf,
    contract: Contract,
}

impl Stage {
    fn new(folder: &Path, view: View) -> Result<Self, DemoError> {
        let contract =
            contract::parse(CONTRACT, "the demo's contract").map_err(|e| DemoError::Api(e.to_string()))?;
        std::fs::write(folder.join("contract.toml"), CONTRACT)
            .map_err(DemoError::io("the contract cannot be written"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.map_err(DemoError::io("no runtime for the receivers"))?;
        let board = Arc::new(Board::new(&PARTS.map(|part| part.name), MESSAGES, view));
        let receivers = (0..PARTS.len())
            .map(|n| runtime.block_on(receiver(n, folder, &board)))
            .collect::<Result<Vec<_>, DemoError>>()?;
        let server = Server::new(folder, TOKEN)?;
        Ok(Self {
            server,
            receivers,
            _runtime: runtime,
            board,
            folder: folder.to_owned(),
            contract,
        })
    }

    /// The story, and its judges.
    fn play(mut self) -> Result<Outcome, DemoError> {
        let board = Arc::clone(&self.board);
        self.server.start()?;
        board.step(&format!(
            "a server on http://{}, and three receivers",
            self.server.address()
        ));
        let api = Api::new(self.server.address(), TOKEN);
        let app = api.application("demo")?;
        let mut endpoints = Vec::new();
        for (part, receiver) in PARTS.iter().zip(&self.receivers) {
            let url = format!("http://{}/{}", receiver.address(), part.name);
            endpoints.push(api.endpoint(&app, part.name, &url, part.secret)?);
        }
        let mut sent = Vec::new();
        self.send(
            &api,
            &app,
            &mut sent,
            "ten messages to each; the flaky one fails each twice",
        )?;

        api.state(&app, &endpoints[DRAINING], "draining")?;
        // What was claimed before the drain was committed may still be on its way.
        std::thread::sleep(DRAIN_GRACE.to_std());
        let drained_ms = log_clock();
        board.note(DRAINING, "draining: held");
        self.send(
            &api,
            &app,
            &mut sent,
            "one endpoint is drained; ten more messages: it must get none of them",
        )?;

        let killed = self.kill_in_flight()?;
        self.send(
            &api,
            &app,
            &mut sent,
            "up again, and still draining; ten more messages",
        )?;
        // Long enough for a sender that forgot the drain to show it.
        std::thread::sleep(Duration::from_ms(500).to_std());

        let activated_ms = log_clock();
        api.state(&app, &endpoints[DRAINING], "active")?;
        board.note(DRAINING, "");
        board.step("the endpoint is active again: what was held goes out");
        // A message that never comes is for the judges to name, with all else they find.
        let all = until("every delivery", PATIENCE, || {
            (0..PARTS.len()).all(|n| board.delivered(n) == MESSAGES)
        });
        // What a sender would send too many is sent soon after a success.
        std::thread::sleep(Duration::from_ms(300).to_std());
        let status = self.server.stop()?;
        board.step(&format!("stopped by SIGTERM: {status}"));
        board.finish();
        let drained = Span {
            from_ms: drained_ms,
            to_ms: activated_ms,
        };
        self.judge(&sent, drained, killed, (all.is_ok(), status.success()))
    }

    fn send(&self, api: &Api, app: &str, sent: &mut Vec<String>, step: &str) -> Result<(), DemoError> {
        self.board.step(step);
        for _ in 0..PHASE {
            sent.push(api.message(app, sent.len() + 1)?);
            std::thread::sleep(PACE.to_std());
        }
        Ok(())
    }

    /// Kills the server while the flaky receiver holds requests, and starts it anew.
    fn kill_in_flight(&mut self) -> Result<Span, DemoError> {
        let flaky = &self.receivers[FLAKY];
        until("a request in the air", PATIENCE, || flaky.open_requests() >= 3)?;
        let in_the_air = flaky.open_requests();
        let from_ms = log_clock();
        self.server.kill()?;
        self.board
            .step(&format!("kill -9, with {in_the_air} requests in the air"));
        std::thread::sleep(Duration::from_ms(200).to_std());
        let to_ms = log_clock();
        self.server.start()?;
        Ok(Span { from_ms, to_ms })
    }

    fn judge(
        self,
        sent: &[String],
        drained: Span,
        down: Span,
        (in_time, clean_stop): (bool, bool),
    ) -> Result<Outcome, DemoError> {
        let logs: Vec<_> = (0..PARTS.len()).map(|n| self.board.received(n)).collect();
        let seen: Vec<_> = (0..PARTS.len())
            .map(|n| Seen {
                name: PARTS[n].name,
                received: &logs[n],
                drained: (n == DRAINING).then_some(drained),
            })
            .collect();
        let facts = Facts {
            contract: &self.contract,
            sent,
            down: Some(down),
        };
        let receivers = judge(&facts, &seen);
        let requests = PARTS
            .iter()
            .zip(&logs)
            .map(|(part, log)| (part.name, log.len()))
            .collect();
        let store = self.server.store();
        merge(&self.folder, &self.folder.join("receivers.jsonl"))?;
        let received = self.folder.join("receivers.jsonl").display().to_string();
        let line = ["audit", "--store", &store, "--receiver", &received, "--json"];
        let audit = self.ask(&line, "audit.json")?;
        let ledger = self.folder.join("ledger").display().to_string();
        let export = self.ask(
            &["ledger", "export", "--store", &store, "--out", &ledger],
            "export.txt",
        )?;
        let probe = if export.ok {
            self.ask(&["probe", "ledger", "--ledger", &ledger], "probe.txt")?
        } else {
            export
        };
        Ok(Outcome {
            requests,
            receivers,
            audit,
            probe,
            in_time,
            clean_stop,
            sent: sent.len(),
        })
    }

    /// Runs a judge as its own command; its words go to a file too.
    fn ask(&self, arguments: &[&str], file: &str) -> Result<Verdict, DemoError> {
        let output = self.server.command(arguments).output();
        let output = output.map_err(DemoError::io(format!(
            "`duehook {}` cannot be run",
            arguments.join(" ")
        )))?;
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        std::fs::write(self.folder.join(file), &words)
            .map_err(DemoError::io(format!("{file} cannot be written")))?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Verdict {
            ok: output.status.code() == Some(0),
            words,
            errors,
        })
    }
}

async fn receiver(n: usize, folder: &Path, board: &Arc<Board>) -> Result<Receiver, DemoError> {
    let part = &PARTS[n];
    let wrong = |error: &dyn std::error::Error| DemoError::Api(error.to_string());
    let board = Arc::clone(board);
    let config = Config {
        script: part.script.parse().map_err(|error| wrong(&error))?,
        keys: vec![part.secret.parse::<Key>().map_err(|error| wrong(&error))?],
        log: Some(folder.join(format!("receiver-{}.jsonl", part.name))),
        on_request: Box::new(move |received| board.request(n, received)),
    };
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Receiver::start(any, config).await.map_err(DemoError::io(format!(
        "the receiver `{}` cannot start",
        part.name
    )))
}

/// All receivers' logs in one file, as the audit takes it.
fn merge(folder: &Path, into: &Path) -> Result<(), DemoError> {
    let mut text = String::new();
    for part in &PARTS {
        let path = folder.join(format!("receiver-{}.jsonl", part.name));
        text += &std::fs::read_to_string(&path)
            .map_err(DemoError::io(format!("{} cannot be read", path.display())))?;
    }
    std::fs::write(into, text).map_err(DemoError::io(format!("{} cannot be written", into.display())))
}

/// What a judge that is a command said.
struct Verdict {
    ok: bool,
    words: String,
    errors: String,
}

impl Verdict {
    /// How many findings of which kinds; else the last line it printed, or what it complained of.
    fn gist(&self) -> String {
        let last = |text: &str| {
            text.lines()
                .rev()
                .find(|line| !line.trim().is_empty())
                .map(str::to_owned)
        };
        let parsed = serde_json::from_str::<Value>(&self.words).unwrap_or_default();
        let Some(findings) = parsed["findings"].as_array() else {
            return last(&self.words)
                .or_else(|| last(&self.errors))
                .unwrap_or_default();
        };
        let counts = parsed["counts"].as_object().into_iter().flatten();
        let kinds: Vec<_> = counts.map(|(kind, count)| format!("{kind} {count}")).collect();
        let kinds = if kinds.is_empty() {
            String::new()
        } else {
            format!(": {}", kinds.join(", "))
        };
        format!("{} findings{kinds}", findings.len())
    }

    fn to_json(&self) -> Value {
        let words = serde_json::from_str(&self.words).unwrap_or_else(|_| Value::String(self.words.clone()));
        json!({ "ok": self.ok, "said": words, "errors": self.errors })
    }
}

/// How it went.
struct Outcome {
    sent: usize,
    requests: Vec<(&'static str, usize)>,
    receivers: Judgement,
    audit: Verdict,
    probe: Verdict,
    /// Every delivery succeeded before patience ended.
    in_time: bool,
    /// The server ended with exit 0 after SIGTERM.
    clean_stop: bool,
}

impl Outcome {
    fn ok(&self) -> bool {
        self.in_time
            && self.clean_stop
            && self.receivers.breaches.is_empty()
            && self.audit.ok
            && self.probe.ok
    }

    fn tell(&self, folder: &Folder, took_ms: f64, json: bool) -> Exit {
        let ok = self.ok();
        if json {
            ui::say(self.to_json(took_ms));
        } else {
            self.print(took_ms);
            match folder {
                Folder::Kept(path) => hints(path),
                Folder::Temporary(_) if !ok => ui::say("to look at it: duehook demo --keep DIR"),
                Folder::Temporary(_) => {}
            }
            ui::say(if ok { "RESULT: OK" } else { "RESULT: BAD" });
        }
        if ok { Exit::Clean } else { Exit::Problem }
    }

    fn to_json(&self, took_ms: f64) -> Value {
        let breaches: Vec<_> = self
            .receivers
            .breaches
            .iter()
            .map(|b| json!({ "kind": b.kind, "text": b.text }))
            .collect();
        json!({
            "ok": self.ok(), "messages": self.sent, "requests": self.receivers.requests, "took_ms": took_ms.floor(),
            "every_delivery_in_time": self.in_time, "clean_stop": self.clean_stop,
            "receivers": {
                "ok": breaches.is_empty(), "breaches": breaches, "crash_twins": self.receivers.crash_twins,
                "least_margin_ms": self.receivers.least_margin_ms,
            },
            "audit": self.audit.to_json(), "probe": self.probe.to_json(),
        })
    }

    fn print(&self, took_ms: f64) {
        let color = ui::color();
        let mark = |ok: bool| {
            if ok {
                ui::paint("✓", ui::GREEN, color)
            } else {
                ui::paint("✗", ui::RED, color)
            }
        };
        let requests: Vec<_> = self
            .requests
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        ui::say(format_args!(
            "\n{} messages, {} requests ({}), in {:.1} s",
            self.sent,
            self.receivers.requests,
            requests.join(", "),
            took_ms / 1000.0
        ));
        ui::say(format_args!(
            "{} every message delivered to every receiver",
            mark(self.in_time)
        ));
        ui::say(format_args!(
            "{} a clean stop after SIGTERM",
            mark(self.clean_stop)
        ));
        ui::say(format_args!(
            "{} audit of the ledger: {}",
            mark(self.audit.ok),
            self.audit.gist()
        ));
        ui::say(format_args!(
            "{} SQL probe of the ledger: {}",
            mark(self.probe.ok),
            self.probe.gist()
        ));
        let seen = &self.receivers;
        let margin = seen.least_margin_ms.map_or_else(String::new, |ms| {
            format!("; the nearest retry came {ms:.1} ms after it was due")
        });
        let twins = match seen.crash_twins {
            0 => String::new(),
            n => format!("; {n} came again because of the kill (at least once)"),
        };
        ui::say(format_args!(
            "{} receivers' own logs: {} breaches{margin}{twins}",
            mark(seen.breaches.is_empty()),
            seen.breaches.len()
        ));
        for breach in seen.breaches.iter().take(20) {
            ui::say(format_args!("    {}: {}", breach.kind, breach.text));
        }
        if seen.breaches.len() > 20 {
            ui::say(format_args!("    and {} more", seen.breaches.len() - 20));
        }
        for verdict in [&self.audit, &self.probe]
            .into_iter()
            .filter(|verdict| !verdict.ok)
        {
            verdict
                .errors
                .lines()
                .take(10)
                .for_each(|line| ui::say(format_args!("    {line}")));
        }
    }
}

/// What to type next.
fn hints(folder: &Path) {
    let at = folder.display();
    ui::say(format_args!(
        "kept in {at}: duehook.db, contract.toml, server.log, receivers.jsonl, audit.json, probe.txt"
    ));
    ui::say(format_args!("  duehook contract show {at}/contract.toml"));
    ui::say(format_args!("  duehook audit --store sqlite:{at}/duehook.db"));
    ui::say(format_args!("  duehook probe ledger --ledger {at}/ledger"));
}
