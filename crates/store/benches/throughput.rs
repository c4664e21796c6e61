//! What the embedded store does alone: `cargo bench -p store`. Prints one line a scenario; no receiver, no HTTP, so that
//! these are ceilings of what a server on it can reach. Every figure is durable: `synchronous=FULL`.

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use bytes::Bytes;
use contract::ledger::{EndpointState, Outcome};
use contract::{BootInstant, Instant, MessageId};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant as Time;
use store::sqlite::{Options, SqliteStore};
use store::{
    App, AppFields, Claim, Claimed, Endpoint, EndpointFields, EndpointKey, Level, NewMessage, Next, Reading,
    Secret, Settle, Start, StartGate, Store,
};

const ENDPOINTS: u64 = 10;
/// What the engine settles and claims in one commit.
const WINDOW: usize = 500;

fn now() -> Reading {
    Reading {
        wall: Instant::from_unix_ms(1_700_000_000_000),
        boot: BootInstant::from_ms(1_000),
    }
}

struct Gate(Option<Start>);

impl StartGate for Gate {
    fn try_reserve(&self, _: EndpointKey, _: &NewMessage) -> Option<Start> {
        self.0
    }
    fn release(&self, _: EndpointKey) {}
}

struct Bench {
    store: Arc<SqliteStore>,
    app: App,
    endpoints: Vec<Endpoint>,
    start: Start,
}

impl Bench {
    async fn new(path: &Path) -> Self {
        let store = SqliteStore::open(path, Options::default()).expect("open");
        store.node_up("bench", "boot", now()).await.expect("node_up");
        let contract = store.put_contract("rev", "{}").await.expect("put_contract");
        store
            .set_contract(Level::Organisation, Some(contract))
            .await
            .expect("set_contract");
        let app = store
            .create_app(AppFields::default(), now().wall)
            .await
            .expect("create_app");
        let mut endpoints = Vec::new();
        for n in 0..ENDPOINTS {
            let fields = EndpointFields {
                url: "http://127.0.0.1/".to_owned(),
                event_types: Some(vec![format!("t{n}")]),
                ..EndpointFields::default()
            };
            let secret = Secret {
                key: "whsec_x".to_owned(),
                expires_at: None,
            };
            let made =
                store.create_endpoint(app.key, fields, EndpointState::Active, secret, "me", now().wall);
            endpoints.push(made.await.expect("create_endpoint"));
        }
        let start = Start {
            started_at: now().wall,
            retry: contract,
            endpoint: contract,
        };
        Self {
            store,
            app,
            endpoints,
            start,
        }
    }

    fn message(&self, n: u64) -> NewMessage {
        NewMessage {
            id: MessageId::at_unix_ms(1_700_000_000_000 + n / 10),
            app: self.app.key,
            event_id: None,
            event_type: format!("t{}", n % ENDPOINTS),
            channels: None,
            payload: Bytes::from(vec![b'x'; 1024]),
            contract: None,
            idempotency_key: None,
            now: now(),
        }
    }

    fn settle(&self, claimed: Claimed) -> Settle {
        Settle {
            claimed,
            started_at: now().wall,
            ended_at: now().wall,
            outcome: Outcome::Succeeded,
            status: Some(200),
            error: None,
            retry_after: None,
            response: Bytes::from_static(b"ok"),
            next: Next::Succeeded,
        }
    }

    /// `count` messages, `at_once` callers that each wait for their own answer.
    async fn accept(
        self: &Arc<Self>,
        count: u64,
        at_once: u64,
        start: bool,
    ) -> (f64, Vec<u64>, Vec<Claimed>) {
        let begun = Time::now();
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..at_once {
            let bench = Arc::clone(self);
            let gate = Arc::new(Gate(start.then_some(self.start)));
            tasks.spawn(async move {
                let (mut times, mut claims) = (Vec::new(), Vec::new());
                for n in (caller..count).step_by(usize::try_from(at_once).expect("few")) {
                    let sent = Time::now();
                    let accepted = bench
                        .store
                        .accept(bench.message(n), gate.clone())
                        .await
                        .expect("accept");
                    times.push(u64::try_from(sent.elapsed().as_micros()).expect("soon"));
                    claims.extend(accepted.claimed);
                }
                (times, claims)
            });
        }
        let (mut times, mut claims) = (Vec::new(), Vec::new());
        for (mut some, mut more) in tasks.join_all().await {
            times.append(&mut some);
            claims.append(&mut more);
        }
        times.sort_unstable();
        (begun.elapsed().as_secs_f64(), times, claims)
    }

    /// Accepts with first attempts started, each settled in batches beside.
    async fn deliver(self: &Arc<Self>, count: u64, at_once: u64) -> f64 {
        let (sender, mut claims) = tokio::sync::mpsc::unbounded_channel::<Claimed>();
        let begun = Time::now();
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..at_once {
            let (bench, sender) = (Arc::clone(self), sender.clone());
            let gate = Arc::new(Gate(Some(self.start)));
            tasks.spawn(async move {
                for n in (caller..count).step_by(usize::try_from(at_once).expect("few")) {
                    let accepted = bench
                        .store
                        .accept(bench.message(n), gate.clone())
                        .await
                        .expect("accept");
                    accepted
                        .claimed
                        .into_iter()
                        .for_each(|claimed| sender.send(claimed).expect("open"));
                }
            });
        }
        drop(sender);
        let mut batch = Vec::new();
        while claims.recv_many(&mut batch, WINDOW).await > 0 {
            let settles = batch.drain(..).map(|claimed| self.settle(claimed)).collect();
            self.store
                .settle_and_claim(settles, vec![])
                .await
                .expect("settle");
        }
        tasks.join_all().await;
        begun.elapsed().as_secs_f64()
    }

    /// Everything that waits: finishing one window and claiming the next share a commit.
    async fn drain(self: &Arc<Self>) -> (u64, f64) {
        let begun = Time::now();
        let mut lanes = tokio::task::JoinSet::new();
        for lane in 0..self.endpoints.len() {
            let bench = Arc::clone(self);
            lanes.spawn(async move {
                let endpoint = bench.endpoints[lane].key;
                let (mut settles, mut done) = (Vec::new(), 0u64);
                loop {
                    let due = bench.store.due(endpoint, now(), WINDOW, &[]).await.expect("due");
                    if due.is_empty() && settles.is_empty() {
                        return done;
                    }
                    let start = bench.start;
                    let claims = due.into_iter().map(|due| Claim { due, start }).collect();
                    let (_, claimed) = bench
                        .store
                        .settle_and_claim(settles, claims)
                        .await
                        .expect("commit");
                    settles = claimed
                        .into_iter()
                        .flatten()
                        .map(|one| bench.settle(one))
                        .collect();
                    done += u64::try_from(settles.len()).expect("few");
                }
            });
        }
        let done = lanes.join_all().await.into_iter().sum();
        (done, begun.elapsed().as_secs_f64())
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn rate(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

fn percentile(times: &[u64], per_mille: usize) -> u64 {
    times
        .get(times.len() * per_mille / 1000)
        .copied()
        .unwrap_or_default()
}

fn cpu() -> f64 {
    let ticks = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = ticks
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let tick = |at: usize| {
        fields
            .get(at)
            .and_then(|text| text.parse::<f64>().ok())
            .unwrap_or_default()
    };
    (tick(11) + tick(12)) / 100.0
}

fn megabytes(folder: &Path) -> u64 {
    let sizes = std::fs::read_dir(folder).expect("folder").flatten();
    sizes
        .map(|entry| entry.metadata().map_or(0, |file| file.len()))
        .sum::<u64>()
        >> 20
}

fn main() {
    let scale: u64 = std::env::var("STORE_BENCH_SCALE")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("runtime").block_on(run(scale));
}

async fn run(scale: u64) {
    let folder = tempfile::tempdir_in(std::env::var("STORE_BENCH_DIR").unwrap_or_else(|_| ".".to_owned()));
    let folder = folder.expect("a folder");
    let path = folder.path().join("bench.db");
    let bench = Arc::new(Bench::new(&path).await);
    for (at_once, count) in [(1, 5_000), (16, 40_000), (64, 100_000), (256, 200_000)] {
        let (count, used) = (count * scale, cpu());
        let before = bench.store.commit_stats();
        let (seconds, times, _) = bench.accept(count, at_once, false).await;
        let stats = bench.store.commit_stats();
        println!(
            "accept, {at_once:>3} callers: {:>8.0}/s  p50 {:>6} us  p99 {:>6} us  {:>5.1} a commit  {:>5.1} us CPU each",
            rate(count, seconds),
            percentile(&times, 500),
            percentile(&times, 990),
            rate(stats.commands - before.commands, 1.0) / rate(stats.commits - before.commits, 1.0),
            (cpu() - used) * 1e6 / rate(count, 1.0),
        );
    }
    let used = cpu();
    let (done, seconds) = bench.drain().await;
    println!(
        "drain of {done}: {:.0} deliveries/s  {:.1} us CPU each",
        rate(done, seconds),
        (cpu() - used) * 1e6 / rate(done, 1.0)
    );
    for at_once in [64, 256] {
        let (count, used) = (200_000 * scale, cpu());
        let seconds = bench.deliver(count, at_once).await;
        println!(
            "accept, start, settle, {at_once:>3} callers: {:.0}/s  {:.1} us CPU each",
            rate(count, seconds),
            (cpu() - used) * 1e6 / rate(count, 1.0)
        );
    }
    println!("on disk: {} MB", megabytes(folder.path()));
    let waiting = 300_000 * scale;
    bench.accept(waiting, 256, false).await;
    let begun = Time::now();
    drop(bench);
    println!("drop: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    let begun = Time::now();
    let store = SqliteStore::open(&path, Options::default()).expect("open");
    let counts = store.counts().await.expect("counts");
    println!(
        "open with {} waiting: {:.0} ms",
        counts.pending,
        begun.elapsed().as_secs_f64() * 1e3
    );
}
