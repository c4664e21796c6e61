//! `duehook listen`: a receiver for developers. Verifies signatures, answers by script, logs every request.

use crate::exit::Exit;
use crate::receiver::script::Script;
use crate::receiver::signature::Key;
use crate::receiver::{Config, Received, Receiver, Verdict};
use crate::ui;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Receive webhooks: verify them, answer by script, log every request
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    duehook listen --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n  \
    duehook listen --answer 500,500,200              fail twice, then succeed, for each message\n  \
    duehook listen --answer 503:retry-after=2,200    ask for two seconds, then succeed\n  \
    duehook listen --answer 200:after=3s             think for three seconds\n  \
    duehook listen --answer hang                     never answer; also drip, endless, close\n  \
    duehook listen --log seen.jsonl                  then: duehook audit --receiver seen.jsonl\n\n\
    Exit 2 when a request came without a valid signature although a key was given.")]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8072")]
    listen: SocketAddr,
    /// A key to verify signatures with: whsec_… (HMAC) or whpk_… (Ed25519); may be given several times
    #[arg(
        long,
        value_name = "KEY",
        env = "DUEHOOK_LISTEN_SECRET",
        hide_env_values = true,
        value_delimiter = ','
    )]
    secret: Vec<Key>,
    /// What to answer to a message's first, second, … request; the last repeats
    #[arg(long, value_name = "SCRIPT", default_value = "200")]
    answer: Script,
    /// Append each request to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Stop after so many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// What was seen so far.
#[derive(Default)]
struct Tally {
    requests: AtomicU64,
    /// Requests whose signature was asked for and does not hold.
    unverified: AtomicU64,
    /// Told when the wanted number of requests is reached.
    enough: Notify,
}

pub(crate) fn run(args: Args) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return ui::fail(Exit::Problem, &error),
    };
    runtime.block_on(listen(args))
}

async fn listen(args: Args) -> Exit {
    let tally = Arc::new(Tally::default());
    let (json, color) = (args.json, ui::color());
    let (counted, wanted) = (Arc::clone(&tally), args.requests);
    let on_request = move |received: &Received| {
        if json {
            ui::say(serde_json::to_string(received).unwrap_or_default());
        } else {
            ui::say(line(received, color));
        }
        if !matches!(received.signature, Verdict::Valid | Verdict::Unchecked) {
            counted.unverified.fetch_add(1, Ordering::Relaxed);
        }
        let so_far = counted.requests.fetch_add(1, Ordering::Relaxed) + 1;
        if wanted.is_some_and(|wanted| so_far >= wanted) {
            counted.enough.notify_one();
        }
    };
    let unsigned = args.secret.is_empty();
    let config = Config {
        script: args.answer,
        keys: args.secret,
        log: args.log,
        on_request: Box::new(on_request),
    };
    let receiver = match Receiver::start(args.listen, config).await {
        Ok(receiver) => receiver,
        Err(error) => {
            return ui::fail(
                Exit::Problem,
                &ListenError {
                    listen: args.listen,
                    source: error,
                },
            );
        }
    };
    if !json {
        ui::say(format_args!(
            "listening on http://{}  (Ctrl-C ends)",
            receiver.address()
        ));
        if unsigned {
            ui::say("signatures are not checked: give --secret whsec_… to check them");
        }
    }
    tokio::select! {
        () = ui::stopped() => {}
        () = tally.enough.notified() => {
            // The last answer is on its way: let it leave before the connections are dropped.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    finish(&tally, json)
}

fn finish(tally: &Tally, json: bool) -> Exit {
    let (requests, unverified) = (
        tally.requests.load(Ordering::Relaxed),
        tally.unverified.load(Ordering::Relaxed),
    );
    if !json && std::io::stdout().is_terminal() {
        ui::say(format_args!(
            "\n{requests} requests, {unverified} of them without a valid signature"
        ));
    }
    if unverified == 0 {
        Exit::Clean
    } else {
        Exit::Problem
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {listen} or open the log; is the port taken? try --listen 127.0.0.1:0")]
struct ListenError {
    listen: SocketAddr,
    source: std::io::Error,
}

/// `21:03:04.123  POST /hook  msg_…  n=2  valid  12 ms → 500`
fn line(received: &Received, color: bool) -> String {
    let status = match received.status {
        Some(status) => ui::status(status, color),
        None => ui::paint(&format!("no answer ({})", received.answer), ui::RED, color),
    };
    let signature = match received.signature {
        Verdict::Valid => ui::paint("signature valid", ui::GREEN, color),
        Verdict::Unchecked => "signature unchecked".to_owned(),
        other => ui::paint(&format!("signature {}", other.word()), ui::RED, color),
    };
    let number = received
        .attempt_no
        .map_or_else(String::new, |n| format!("  n={n}"));
    format!(
        "{}  {} {}  {}{number}  {} bytes  {signature}  {status}",
        ui::clock(received.arrival_ms),
        received.method,
        received.path,
        received.message_id.as_deref().unwrap_or("no message id"),
        received.body_bytes,
    )
}
