//! The receivers' side of the story: were attempts early, lost, surplus, or sent to a draining endpoint?
//!
//! It knows the contract, what was sent, and what each receiver logged; never the ledger. Requests that a crash left
//! in the air may come twice (I9): those, and only those, are excused, and counted.

use crate::receiver::{Received, Verdict};
use audit::waits;
use contract::{Contract, Duration, RetryNo};
use std::collections::BTreeMap;

/// An answer this shortly before the kill may not have been settled: its twin is the crash's, not the schedule's.
const UNSETTLED_MS: f64 = 500.0;

/// A stretch of time, in Unix milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from_ms: f64,
    pub(super) to_ms: f64,
}

/// What happened at one receiver, by its own log.
pub(super) struct Seen<'a> {
    pub(super) name: &'a str,
    pub(super) received: &'a [Received],
    /// While its endpoint was draining.
    pub(super) drained: Option<Span>,
}

/// What the demo did.
pub(super) struct Facts<'a> {
    pub(super) contract: &'a Contract,
    /// The ids of acknowledged messages.
    pub(super) sent: &'a [String],
    /// From the kill of the server to its new start.
    pub(super) down: Option<Span>,
}

/// What the logs show.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Judgement {
    pub(super) requests: usize,
    pub(super) breaches: Vec<Breach>,
    /// Requests that came again because the server was killed between sending and recording.
    pub(super) crash_twins: usize,
    /// The least margin of a retry over its wait, in milliseconds.
    pub(super) least_margin_ms: Option<f64>,
}

/// One thing that should not be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Breach {
    /// In the audit's words.
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// Judges every receiver's log.
pub(super) fn judge(facts: &Facts<'_>, receivers: &[Seen<'_>]) -> Judgement {
    let mut judgement = Judgement::default();
    for seen in receivers {
        judgement.requests += seen.received.len();
        one_receiver(facts, seen, &mut judgement);
    }
    judgement
}

impl Judgement {
    fn breach(&mut self, kind: &'static str, text: String) {
        self.breaches.push(Breach { kind, text });
    }
}

fn one_receiver(facts: &Facts<'_>, seen: &Seen<'_>, judgement: &mut Judgement) {
    let mut by_message: BTreeMap<&str, Vec<&Received>> = BTreeMap::new();
    for received in seen.received {
        let id = received.message_id.as_deref().unwrap_or_default();
        by_message.entry(id).or_default().push(received);
        if received.signature != Verdict::Valid {
            let text = format!(
                "{}: {id}: the signature is {}",
                seen.name,
                received.signature.word()
            );
            judgement.breach("bad_signature", text);
        }
        let draining = seen
            .drained
            .is_some_and(|span| (span.from_ms..span.to_ms).contains(&received.arrival_ms));
        if draining {
            judgement.breach(
                "to_inactive_endpoint",
                format!("{}: {id} came while it was draining", seen.name),
            );
        }
    }
    for id in by_message
        .keys()
        .filter(|id| !facts.sent.iter().any(|sent| sent == *id))
    {
        judgement.breach("unknown_message", format!("{}: `{id}` was never sent", seen.name));
    }
    for id in facts.sent {
        let mut attempts = by_message.remove(id.as_str()).unwrap_or_default();
        attempts.sort_by(|a, b| a.arrival_ms.total_cmp(&b.arrival_ms));
        one_delivery(facts, &format!("{}: {id}", seen.name), &attempts, judgement);
    }
}

fn succeeded(received: &Received) -> bool {
    received
        .status
        .is_some_and(|status| (200..=299).contains(&status))
}

fn one_delivery(facts: &Facts<'_>, name: &str, attempts: &[&Received], judgement: &mut Judgement) {
    let limit = facts.contract.retry.max_attempts;
    if attempts.len() > usize::try_from(limit).unwrap_or(usize::MAX) {
        judgement.breach(
            "too_many_attempts",
            format!("{name}: {} attempts; the limit is {limit}", attempts.len()),
        );
    }
    if !attempts.iter().any(|attempt| succeeded(attempt)) {
        judgement.breach(
            "lost",
            format!("{name}: never delivered, in {} attempts", attempts.len()),
        );
    }
    for (n, pair) in attempts.windows(2).enumerate() {
        let [before, after] = pair else { continue };
        if before.body_sha256 != after.body_sha256 {
            judgement.breach(
                "body_changed",
                format!("{name}: attempt {} has another body", n + 2),
            );
        }
        let in_the_air = facts.down.is_some_and(|down| in_the_air(before, down));
        if succeeded(before) && !in_the_air {
            judgement.breach(
                "after_success",
                format!("{name}: attempt {} after a success", n + 2),
            );
        }
        // A recorded failure would have been retried anyway.
        if in_the_air && (succeeded(before) || before.answered_ms.is_none()) {
            judgement.crash_twins += 1;
        }
        // An attempt is written down before it is sent (I2): even a crash does not give its number away again.
        if after.attempt_no <= before.attempt_no {
            let number = after.attempt_no.unwrap_or(0);
            judgement.breach(
                "duplicate_attempt",
                format!("{name}: a second request calls itself attempt {number}"),
            );
        }
        timing(facts, name, before, after, in_the_air, judgement);
    }
}

/// True where the kill may have come between this request and the record of its answer.
fn in_the_air(received: &Received, down: Span) -> bool {
    let unsettled = received
        .answered_ms
        .is_none_or(|answered| answered > down.from_ms - UNSETTLED_MS);
    received.arrival_ms <= down.to_ms && unsettled
}

fn timing(
    facts: &Facts<'_>,
    name: &str,
    before: &Received,
    after: &Received,
    in_the_air: bool,
    judgement: &mut Judgement,
) {
    // A crash may have burned attempts in between that never came here: then the wait before the later one is the longer.
    let n = before
        .attempt_no
        .unwrap_or(1)
        .max(after.attempt_no.unwrap_or(1).saturating_sub(1));
    let earliest = waits::interval(facts.contract, RetryNo::new(n)).map(|(earliest, _)| earliest);
    let wait = earliest.unwrap_or(Duration::ZERO);
    // An answer anchors the wait; where none left before the kill, the recovery does (I1).
    let recovery_ms = facts.down.filter(|_| in_the_air).map(|down| down.to_ms);
    let anchor_ms = before.answered_ms.or(recovery_ms).unwrap_or(before.arrival_ms);
    let margin = after.arrival_ms - anchor_ms - as_f64(wait);
    if margin < 0.0 {
        let text = format!(
            "{name}: attempt {} came {:.1} ms early (its wait is {wait})",
            n + 1,
            -margin
        );
        judgement.breach("too_early", text);
    }
    let least = judgement
        .least_margin_ms
        .map_or(margin, |least| least.min(margin));
    judgement.least_margin_ms = Some(least);
}

/// Waits of this contract are far below 2^53 milliseconds.
#[allow(clippy::cast_precision_loss)]
fn as_f64(duration: Duration) -> f64 {
    duration.as_ms() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract() -> Contract {
        contract::parse(include_str!("contract.toml"), "demo").expect("sound")
    }

    fn request(message: &str, n: u32, arrival_ms: f64, answered: Option<(f64, u16)>) -> Received {
        Received {
            arrival_ms,
            answered_ms: answered.map(|(at, _)| at),
            message_id: Some(message.to_owned()),
            attempt_id: Some(format!("atmpt_{message}_{n}")),
            attempt_no: Some(n),
            method: "POST".to_owned(),
            path: "/".to_owned(),
            status: answered.map(|(_, status)| status),
            answer: String::new(),
            signature: Verdict::Valid,
            body_bytes: 2,
            body_sha256: "aa".to_owned(),
        }
    }

    fn kinds(received: &[Received], drained: Option<Span>, down: Option<Span>) -> Vec<&'static str> {
        let contract = contract();
        let facts = Facts {
            contract: &contract,
            sent: &["m".to_owned()],
            down,
        };
        let judgement = judge(
            &facts,
            &[Seen {
                name: "r",
                received,
                drained,
            }],
        );
        judgement.breaches.iter().map(|breach| breach.kind).collect()
    }

    /// Two failures of 250 ms each and a success: waits of 200 and 400 ms from the end.
    fn good() -> Vec<Received> {
        vec![
            request("m", 1, 1000.0, Some((1250.0, 503))),
            request("m", 2, 1450.0, Some((1700.0, 500))),
            request("m", 3, 2100.0, Some((2101.0, 200))),
        ]
    }

    #[test]
    fn a_good_delivery_has_no_breach() {
        assert!(kinds(&good(), None, None).is_empty());
    }

    #[test]
    fn a_wait_from_the_start_is_early() {
        let mut log = good();
        log[1].arrival_ms = 1251.0;
        assert_eq!(kinds(&log, None, None), ["too_early"]);
    }

    #[test]
    fn a_number_that_comes_twice_was_not_written_down() {
        let mut log = good();
        log[1].attempt_no = Some(1);
        assert_eq!(kinds(&log, None, None), ["duplicate_attempt"]);
    }

    #[test]
    fn a_burned_attempt_lengthens_the_wait() {
        let log = |third: f64| {
            vec![
                request("m", 1, 1000.0, Some((1250.0, 503))),
                request("m", 3, third, Some((third + 1.0, 200))),
            ]
        };
        assert_eq!(kinds(&log(1600.0), None, None), ["too_early"]);
        assert!(kinds(&log(1650.0), None, None).is_empty());
    }

    #[test]
    fn a_message_that_never_succeeds_is_lost() {
        assert_eq!(kinds(&good()[..2], None, None), ["lost"]);
        assert_eq!(kinds(&[], None, None), ["lost"]);
    }

    #[test]
    fn an_attempt_after_success_is_surplus_unless_a_crash_left_it_in_the_air() {
        let mut log = good();
        log.push(request("m", 4, 4000.0, Some((4001.0, 200))));
        assert_eq!(kinds(&log, None, None), ["after_success"]);
        let down = Span {
            from_ms: 2150.0,
            to_ms: 2400.0,
        };
        assert!(kinds(&log, None, Some(down)).is_empty());
        let much_later = Span {
            from_ms: 3000.0,
            to_ms: 3100.0,
        };
        assert_eq!(kinds(&log, None, Some(much_later)), ["after_success"]);
    }

    #[test]
    fn an_interrupted_attempt_waits_from_its_recovery() {
        let down = Span {
            from_ms: 1100.0,
            to_ms: 1500.0,
        };
        let log = |second: f64| {
            vec![
                request("m", 1, 1000.0, None),
                request("m", 2, second, Some((second + 1.0, 200))),
            ]
        };
        assert!(kinds(&log(1700.0), None, Some(down)).is_empty());
        assert_eq!(kinds(&log(1600.0), None, Some(down)), ["too_early"]);
    }

    #[test]
    fn a_request_to_a_draining_endpoint_is_a_breach() {
        let log = [request("m", 1, 1000.0, Some((1001.0, 200)))];
        assert_eq!(
            kinds(
                &log,
                Some(Span {
                    from_ms: 500.0,
                    to_ms: 1500.0
                }),
                None
            ),
            ["to_inactive_endpoint"]
        );
    }

    #[test]
    fn more_attempts_than_the_limit_are_too_many() {
        let log: Vec<_> = (1u32..=6)
            .map(|n| {
                let at = 1000.0 * f64::from(n);
                request("m", n, at, Some((at + 1.0, if n == 6 { 200 } else { 500 })))
            })
            .collect();
        assert_eq!(kinds(&log, None, None), ["too_many_attempts"]);
    }

    #[test]
    fn a_changed_body_a_bad_signature_and_a_stranger_are_breaches() {
        let mut log = good();
        log[2].body_sha256 = "bb".to_owned();
        assert_eq!(kinds(&log, None, None), ["body_changed"]);
        let mut log = good();
        log[0].signature = Verdict::Invalid;
        assert_eq!(kinds(&log, None, None), ["bad_signature"]);
        let mut log = good();
        log.push(request("other", 1, 1.0, Some((2.0, 200))));
        assert_eq!(kinds(&log, None, None), ["unknown_message"]);
    }
}
