//! `cargo xtask crash`: kills the real server at random moments under load, starts it again, and lets three witnesses
//! judge: the receivers' own logs, the audit, and the SQL probe (spec/engine.md, Promises under failure, 1).

mod api;
mod judge;
mod node;

use crate::process::{self, Run};
use crate::{Error, Result, none_of};
use node::{Node, Receiver};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How to kill.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often the server is killed
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Messages a second, at most
    #[arg(long, default_value_t = 500)]
    rate: u64,
    /// Repeats the same moments
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Try the optimised build
    #[arg(long)]
    release: bool,
}

/// Waits of milliseconds, so that many retries fall into a short run. `judge` knows its waits by heart.
const CONTRACT: &str = r#"contract = 1
name = "crash"

[retry]
max_attempts = 12
max_age = "none"
anchor = "end"
slack = "0s"
late_after = "30s"

[retry.backoff]
law = "exponential"
base = "100ms"
factor = "2"
cap = "800ms"
floor = "0s"

[retry.jitter]
kind = "none"

[retry.retry_after]
rule = "ignore"

[outcome]
success = ["200-299"]
terminal = ["410"]

[endpoint]
min_gap = "0s"
rate = "none"
in_flight = 8
timeout = "5s"
disable_after = "never"
disable_on = ["410"]
"#;

/// Threads that send.
const SENDERS: u64 = 4;
/// After the last kill everything must be delivered within this.
const DRAIN: Duration = Duration::from_secs(60);
/// A start must answer within this (spec: ready within two seconds).
const READY: Duration = Duration::from_secs(2);

/// The next number of a fixed sequence (splitmix64): the moments repeat with the seed.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn write(path: &Path, text: &str) -> Result {
    std::fs::write(path, text).map_err(|source| Error::File {
        path: path.into(),
        source,
    })
}

/// Sends until told to stop, and remembers what was acknowledged.
fn send(
    node: &Node,
    app: &str,
    stop: &AtomicBool,
    counter: &AtomicU64,
    rate: u64,
    acked: &Mutex<BTreeSet<String>>,
) {
    let pause = Duration::from_micros(1_000_000 * SENDERS / rate.max(1));
    while !stop.load(Ordering::Relaxed) {
        let number = counter.fetch_add(1, Ordering::Relaxed);
        let body =
            format!(r#"{{"eventType":"crash.test","eventId":"n-{number}","payload":{{"n":{number}}}}}"#);
        let answer = node.call("POST", &format!("/api/v1/app/{app}/msg"), &body).ok();
        let id = answer
            .filter(|answer| (200..=299).contains(&answer.status))
            .and_then(|answer| answer.text("id"));
        if let Some(id) = id {
            acked
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .insert(id);
        }
        std::thread::sleep(pause);
    }
}

/// Kills and starts again, so often; gives the slowest start.
fn kill_and_start(node: &Node, args: &Args) -> Result<Duration> {
    let mut seed = args.seed;
    let mut slowest = Duration::ZERO;
    for kill in 1..=args.kills {
        std::thread::sleep(Duration::from_millis(50 + next(&mut seed) % 400));
        node.kill()?;
        let ready = node.start()?;
        slowest = slowest.max(ready);
        println!(
            "kill {kill} of {}: ready again after {} ms",
            args.kills,
            ready.as_millis()
        );
    }
    std::thread::sleep(Duration::from_millis(200));
    Ok(slowest)
}

/// Loads the server from all senders while it is killed; gives what was acknowledged, and the slowest start.
fn storm(node: &Node, app: &str, args: &Args) -> Result<(BTreeSet<String>, Duration)> {
    let (stop, counter, acked) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::default());
    let slowest = std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| send(node, app, &stop, &counter, args.rate, &acked));
        }
        let slowest = kill_and_start(node, args);
        stop.store(true, Ordering::Relaxed);
        slowest
    })?;
    Ok((
        acked
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner),
        slowest,
    ))
}

/// One application with an endpoint for each receiver.
fn set_up(node: &Node, receivers: &[&Receiver]) -> Result<String> {
    let app = node
        .call("POST", "/api/v1/app", r#"{"name":"crash"}"#)?
        .require("id")?;
    for receiver in receivers {
        let body = format!(r#"{{"url":"{}"}}"#, receiver.url());
        node.call("POST", &format!("/api/v1/app/{app}/endpoint"), &body)?
            .require("id")?;
    }
    Ok(app)
}

/// Waits until each receiver has answered every acknowledged message with success.
fn drain(receivers: &[&Receiver], acked: &BTreeSet<String>) -> Vec<String> {
    let step = Duration::from_millis(250);
    let mut waited = Duration::ZERO;
    loop {
        let missing: Vec<String> = receivers
            .iter()
            .flat_map(|receiver| judge::undelivered(&receiver.requests(), acked, receiver.name()))
            .collect();
        if missing.is_empty() || waited >= DRAIN {
            return missing;
        }
        std::thread::sleep(step);
        waited += step;
    }
}

/// `cargo xtask crash`.
pub(crate) fn run(args: &Args) -> Result {
    let mut build = vec!["build", "--quiet", "--locked", "--package", "duehook"];
    build.extend(args.release.then_some("--release"));
    Run::cargo().args(&build).go()?;
    let profile = if args.release { "release" } else { "debug" };
    let binary = process::target_folder().join(profile).join("duehook");
    let dir = tempfile::tempdir().map_err(|source| Error::File {
        path: std::env::temp_dir(),
        source,
    })?;
    write(&dir.path().join("contract.toml"), CONTRACT)?;

    let healthy = Receiver::start(&binary, dir.path(), "healthy", "200")?;
    let failing = Receiver::start(&binary, dir.path(), "failing", "500,503,200")?;
    let receivers = [&healthy, &failing];
    let node = Node::new(&binary, dir.path());
    node.start()?;
    let app = set_up(&node, &receivers)?;
    let (acked, slowest) = storm(&node, &app, args)?;
    let mut found = drain(&receivers, &acked);
    node.stop()?;
    if slowest > READY {
        found.push(format!(
            "a start took {} ms; {} are allowed",
            slowest.as_millis(),
            READY.as_millis()
        ));
    }
    for receiver in receivers {
        let requests = receiver.requests();
        println!("{}: {} requests", receiver.name(), requests.len());
        found.extend(judge::breaches(&requests, receiver.name()));
    }
    found.extend(node.judgements());
    let (count, ms) = (acked.len(), slowest.as_millis());
    println!(
        "{} kills, {count} messages acknowledged, slowest start {ms} ms, seed {}",
        args.kills, args.seed
    );
    println!("RESULT: {}", if found.is_empty() { "OK" } else { "BAD" });
    if !found.is_empty() {
        println!("store, logs and ledger are kept in {}", dir.keep().display());
    }
    none_of(&found)
}
