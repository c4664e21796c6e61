//! The audit that runs beside the engine: judges the whole ledger again and again, and hands its verdict to the API
//! (`/health`, `/metrics`, `/api/v1/duehook/audit`). Every rule stands in the `audit` crate; here is only the rhythm.
//!
//! A ledger that could not be judged is said to be unjudged, never clean (I7).

use crate::cmd::audit::feed;
use audit::judge::{Judge, Options, Report};
use contract::Duration;
use engine::clock::Clock;
use server::Verdict;
use std::sync::Arc;
use store::Store;
use tokio::sync::watch;

/// An audit may take this share of one core at most: after one that took t, the next waits at least 19 t.
const WAITS_PER_AUDIT: u32 = 19;
/// The judge holds so much in memory before it goes to temporary files: less than a command of its own would, since
/// the engine lives in the same process.
const MEMORY: usize = 32 * 1024 * 1024;
/// So many findings are held; all are counted.
const LISTED: usize = 100;

/// Judges until it is dropped.
pub(super) async fn run(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    every: Duration,
    verdicts: watch::Sender<Option<Arc<Verdict>>>,
) {
    let mut pause = every.to_std();
    loop {
        tokio::time::sleep(pause).await;
        let started = tokio::time::Instant::now();
        let verdict = judge(&*store, &*clock).await;
        let took = started.elapsed();
        match (&verdict.unjudged, verdict.clean) {
            (Some(reason), _) => tracing::warn!(reason, "the audit could not judge"),
            (None, true) => tracing::debug!(attempts = verdict.attempts, ?took, "audit: clean"),
            (None, false) => tracing::error!(findings = ?verdict.findings, "audit: the contract was breached; `duehook audit` names the rows"),
        }
        verdicts.send_replace(Some(Arc::new(verdict)));
        pause = every.to_std().max(took.saturating_mul(WAITS_PER_AUDIT));
    }
}

async fn judge(store: &dyn Store, clock: &dyn Clock) -> Verdict {
    let options = Options {
        // Read before the ledger is: whatever was late by then has its row, or a reason to have none.
        as_of: Some(clock.now().wall),
        memory: MEMORY,
        listed: LISTED,
        ..Options::default()
    };
    let judged = match feed(store, Judge::new(options), None).await {
        Ok(judge) => tokio::task::spawn_blocking(|| judge.finish())
            .await
            .map_err(|error| error.to_string())
            .and_then(|report| report.map_err(|error| error.to_string())),
        Err(error) => Err(with_cause(&error)),
    };
    verdict(judged, clock)
}

fn verdict(judged: Result<Report, String>, clock: &dyn Clock) -> Verdict {
    let at = clock.now().wall;
    match judged {
        Ok(report) => Verdict {
            at,
            clean: report.ok,
            findings: report
                .counts
                .iter()
                .map(|(kind, count)| (kind.word().to_owned(), *count))
                .collect(),
            attempts: report.judged.attempts,
            unjudged: None,
        },
        Err(reason) => Verdict {
            at,
            clean: false,
            findings: std::collections::BTreeMap::new(),
            attempts: 0,
            unjudged: Some(reason),
        },
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{error}{cause}")
}
