//! What `serve` does beside delivering: it judges its own ledger again and again, and takes away what is old enough. Both
//! read and write through the store alone; neither can stop a delivery.

use crate::cmd::audit::feed;
use crate::config::Settings;
use audit::judge::{Judge, Options};
use contract::{Duration, Instant};
use server::Verdict;
use std::sync::Arc;
use store::{Retain, Store, StoreError};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// Messages looked at in one commit of retention: short, so that it stands in nobody's way.
const STEP: usize = 500;
/// How often retention looks.
const RETAIN_EVERY: Duration = Duration::from_secs(60);

/// Starts what is due by the settings. The tasks end with the runtime.
pub(super) fn start(settings: &Settings, store: &Arc<dyn Store>) -> watch::Receiver<Option<Arc<Verdict>>> {
    // Until the first judgement there is no verdict, which is not the same as a clean one (I7).
    let (verdicts, verdict) = watch::channel(None);
    if let Some(every) = settings.audit_every {
        tokio::spawn(judge_for_ever(Arc::clone(store), every, verdicts));
    }
    for (what, age) in [
        (Retain::Payloads, settings.retain_payloads),
        (Retain::Ledger, settings.retain),
    ] {
        if let Some(age) = age {
            tokio::spawn(retain_for_ever(Arc::clone(store), what, age));
        }
    }
    verdict
}

async fn judge_for_ever(
    store: Arc<dyn Store>,
    every: Duration,
    verdicts: watch::Sender<Option<Arc<Verdict>>>,
) {
    let mut ticks = interval(every.to_std());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Ok(now) = super::now() else { continue };
        let verdict = match judge(&*store, now).await {
            Ok(verdict) => verdict,
            Err(reason) => Verdict {
                at: now,
                clean: false,
                findings: std::collections::BTreeMap::new(),
                attempts: 0,
                unjudged: Some(reason),
            },
        };
        if !verdict.clean {
            tracing::error!(findings = ?verdict.findings, unjudged = ?verdict.unjudged, "the ledger does not hold: `duehook audit` names the rows");
        }
        verdicts.send_replace(Some(Arc::new(verdict)));
    }
}

async fn judge(store: &dyn Store, now: Instant) -> Result<Verdict, String> {
    let options = Options {
        as_of: Some(now),
        ..Options::default()
    };
    let fed = feed(store, Judge::new(options), None).await;
    let fed = fed.map_err(|error| error.to_string())?;
    let judged = tokio::task::spawn_blocking(move || fed.finish()).await;
    let report = judged
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    let counts = report.counts.iter();
    Ok(Verdict {
        at: now,
        clean: report.ok,
        findings: counts
            .map(|(kind, count)| (kind.word().to_owned(), *count))
            .collect(),
        attempts: report.judged.attempts,
        unjudged: None,
    })
}

async fn retain_for_ever(store: Arc<dyn Store>, what: Retain, age: Duration) {
    let mut ticks = interval(RETAIN_EVERY.to_std());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Ok(now) = super::now() else { continue };
        match retain(&*store, what, now - age).await {
            Ok(0) => {}
            Ok(messages) => tracing::info!(?what, messages, "taken away: older than retention keeps"),
            Err(error) => tracing::warn!(?what, %error, "retention: trying again at the next turn"),
        }
    }
}

/// One pass over everything that is old enough.
async fn retain(store: &dyn Store, what: Retain, before: Instant) -> Result<u64, StoreError> {
    let (mut after, mut total) = (None, 0);
    loop {
        let step = store.retain(what, before, after, STEP).await?;
        total += step.messages;
        match step.next {
            Some(next) => after = Some(next),
            None => return Ok(total),
        }
    }
}
