//! One attempt: look at the clocks once more, sign, send, and decide what follows. One call, one request at most.
//!
//! Keeps I1 (a start is read just before sending and both clocks must allow it) and I9. The row was written before
//! (I2); what is decided here is written by the loop.

use crate::clock::moment;
use crate::config::Config;
use crate::contracts::Known;
use crate::lane::{Lane, Waits};
use crate::shared::{Event, Phase, Shared};
use crate::sign::sign_headers;
use crate::wire::{Fault, Outgoing, Sent};
use bytes::Bytes;
use contract::ledger::Outcome;
use http::{HeaderName, HeaderValue};
use schedule::{Attempted, Decision};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Claimed, DeliveryKey, Next, Reading, Settle};

static ATTEMPT: HeaderName = HeaderName::from_static("duehook-attempt");

/// An attempt that is written down as started.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) claimed: Claimed,
    pub(crate) lane: Arc<Lane>,
    /// The contract by which it was scheduled.
    pub(crate) own: Known,
}

/// An attempt that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) lane: Arc<Lane>,
    pub(crate) settle: Settle,
}

/// Tells the loop when the task vanishes without a word.
struct Watch<'a> {
    shared: &'a Shared,
    lane: &'a Arc<Lane>,
    delivery: DeliveryKey,
    started: AtomicBool,
    told: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.told {
            let now = moment(&self.shared.clock.now());
            let started = self.started.load(Ordering::Relaxed);
            self.lane.vanish(&self.shared.slots, started, now);
            let lane = Arc::clone(self.lane);
            self.shared.tell(Event::Vanished(lane, self.delivery));
        }
    }
}

/// Makes the attempt and tells the loop how it ended.
pub(crate) async fn run(shared: Arc<Shared>, job: Job) {
    let lane = Arc::clone(&job.lane);
    let mut watch = Watch {
        shared: &shared,
        lane: &lane,
        delivery: job.claimed.due.key,
        started: AtomicBool::new(false),
        told: false,
    };
    let settle = attempt(&shared, job, &watch.started).await;
    watch.told = true;
    let lane = Arc::clone(&lane);
    shared.tell(Event::Ended(Box::new(Ended { lane, settle })));
}

async fn attempt(shared: &Shared, job: Job, has_started: &AtomicBool) -> Settle {
    let started = shared.clock.now();
    let due = &job.claimed.due;
    // The row can still be taken back: nothing of it has left this process.
    if shared.phase() != Phase::Running || !Waits::of(due).is_due(&started) {
        job.lane.unsent(&shared.slots);
        return released(job.claimed, &started);
    }
    let config = job.lane.start(moment(&started));
    has_started.store(true, Ordering::Relaxed);
    let counters = &shared.counters;
    counters.started.fetch_add(1, Ordering::Relaxed);
    counters.late(started.wall.since(due.due_at));
    let sent = match outgoing(shared, &job, &config, &started) {
        Ok(outgoing) => until_cut(shared, outgoing).await,
        Err(reason) => Sent {
            fault: Some(Fault::Refused(reason)),
            ..Sent::default()
        },
    };
    let ended = shared.clock.now_ceil();
    let outcome = outcome_of(&job.own, &sent);
    job.lane.end(&shared.slots, outcome == Outcome::TimedOut);
    settled(shared, job, &config, sent, outcome, &started, &ended)
}

/// The answer; or, once a shutdown has run out of patience, none.
async fn until_cut(shared: &Shared, outgoing: Outgoing) -> Sent {
    let mut phase = shared.phase.subscribe();
    tokio::select! {
        biased;
        sent = shared.wire.send(outgoing) => sent,
        _ = phase.wait_for(|phase| *phase == Phase::Cut) => Sent {
            fault: Some(Fault::TimedOut("shutdown".to_owned())),
            ..Sent::default()
        },
    }
}

fn outgoing(shared: &Shared, job: &Job, config: &Config, started: &Reading) -> Result<Outgoing, String> {
    let target = config.target.clone()?;
    let message = &job.claimed.due.message;
    let body = message.payload.clone().ok_or("payload_erased")?;
    let mut headers = config.headers.clone();
    let mut keys = config.keys_at(started.wall).peekable();
    if keys.peek().is_none() {
        return Err("no_secret: this endpoint has no valid signing secret".to_owned());
    }
    let names = shared.options.signature_headers;
    sign_headers(
        names,
        keys,
        &message.id.to_string(),
        started.wall,
        &body,
        &mut headers,
    );
    let joined = format!("{}; n={}", job.claimed.attempt_id, job.claimed.attempt_no);
    // An id and a number are always a header value.
    if let Ok(value) = HeaderValue::from_str(&joined) {
        headers.insert(ATTEMPT.clone(), value);
    }
    Ok(Outgoing {
        target,
        headers,
        body,
        timeout: paced_by(shared, job, config).contract.endpoint.timeout,
    })
}

/// The contract whose endpoint clauses the row names.
fn paced_by(shared: &Shared, job: &Job, config: &Config) -> Known {
    let key = job.claimed.start.endpoint;
    let named = (key != config.contract.key).then(|| shared.contracts.get(key));
    named.flatten().unwrap_or_else(|| config.contract.clone())
}

fn outcome_of(own: &Known, sent: &Sent) -> Outcome {
    match &sent.fault {
        Some(Fault::Refused(_)) => Outcome::Refused,
        Some(Fault::TimedOut(_)) => Outcome::TimedOut,
        Some(Fault::Failed(_)) => Outcome::Failed,
        None => Attempted::outcome_of(&own.contract.outcome, sent.status),
    }
}

fn settled(
    shared: &Shared,
    job: Job,
    config: &Config,
    sent: Sent,
    outcome: Outcome,
    started: &Reading,
    ended: &Reading,
) -> Settle {
    let error = sent.fault.map(|fault| match fault {
        Fault::Refused(word) | Fault::TimedOut(word) | Fault::Failed(word) => word,
    });
    // Retry-After is read from failed answers; on any other it would only mislead a judge.
    let retry_after = sent.retry_after.filter(|_| outcome == Outcome::Failed);
    let mut settle = Settle {
        claimed: job.claimed,
        started_at: started.wall,
        // A wall clock set back under way must not end an attempt before its start.
        ended_at: ended.wall.max(started.wall),
        outcome,
        status: sent.status,
        error,
        retry_after,
        response: sent.body,
        next: Next::Succeeded,
    };
    settle.next = next(shared, &settle, &job.own, config, started, ended);
    settle
}

/// What follows, as `schedule` decides it.
pub(crate) fn next(
    shared: &Shared,
    settle: &Settle,
    own: &Known,
    config: &Config,
    started: &Reading,
    ended: &Reading,
) -> Next {
    if settle.outcome == Outcome::Succeeded {
        return Next::Succeeded;
    }
    let due = &settle.claimed.due;
    // The contract now in force: the message's own, or what holds at the endpoint.
    let of_message = due.message.contract.and_then(|key| shared.contracts.get(key));
    let force = of_message.unwrap_or_else(|| config.contract.clone());
    let attempted = Attempted {
        message_id: &due.message.id.to_string(),
        endpoint_id: &config.id,
        delivery_no: due.delivery_no,
        attempt_no: settle.claimed.attempt_no,
        opened_at: due.opened_at,
        first_started_at: due.first_started_at.unwrap_or(settle.started_at),
        started_at: settle.started_at,
        ended_at: settle.ended_at,
        outcome: settle.outcome,
        status: settle.status,
        retry_after: settle.retry_after.as_deref(),
        previous_wait: due.wait,
    };
    match schedule::settle(&attempted, &own.contract, &force.contract) {
        Decision::Succeeded => Next::Succeeded,
        Decision::Dead(reason) => {
            let terminal = reason == contract::ledger::DeadReason::Terminal;
            let retry = if terminal { own.key } else { force.key };
            Next::Dead { reason, retry }
        }
        Decision::Retry {
            due_at,
            wait,
            elapsed,
        } => Next::Retry {
            due_at,
            due_boot: elapsed.due_boot(started.boot, ended.boot),
            wait,
            retry: force.key,
        },
    }
}

fn released(claimed: Claimed, now: &Reading) -> Settle {
    Settle {
        started_at: claimed.start.started_at,
        ended_at: now.wall.max(claimed.start.started_at),
        // Of no account: the row goes.
        outcome: Outcome::Interrupted,
        status: None,
        error: None,
        retry_after: None,
        response: Bytes::new(),
        next: Next::Released,
        claimed,
    }
}
