//! The third witness: what the receivers saw, judged by a few lines that share nothing with the product.

use std::collections::{BTreeMap, BTreeSet};

/// `max_attempts` of the harness's contract.
const MAX_ATTEMPTS: usize = 12;
/// Its waits in milliseconds: 100, 200, 400, then the cap of 800.
const WAITS_MS: [f64; 4] = [100.0, 200.0, 400.0, 800.0];

/// A request as a receiver logged it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    message: String,
    attempt_no: usize,
    arrived_ms: f64,
    answered_ms: Option<f64>,
    succeeded: bool,
}

impl Request {
    /// A line of the log; none when it is no whole request of ours.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(Self {
            message: line["message_id"].as_str()?.to_owned(),
            attempt_no: usize::try_from(line["attempt_no"].as_u64()?).ok()?,
            arrived_ms: line["arrival_ms"].as_f64()?,
            answered_ms: line["answered_ms"].as_f64(),
            succeeded: line["status"].as_u64() == Some(200),
        })
    }
}

/// Acknowledged messages that the receiver never answered with success.
pub(crate) fn undelivered(requests: &[Request], acked: &BTreeSet<String>, name: &str) -> Vec<String> {
    let delivered: BTreeSet<&str> = requests
        .iter()
        .filter(|request| request.succeeded)
        .map(|request| request.message.as_str())
        .collect();
    let missing = acked.iter().filter(|id| !delivered.contains(id.as_str()));
    missing
        .map(|id| format!("{name}: {id} was acknowledged and is not delivered"))
        .collect()
}

/// Requests that came too early, too often, or out of order.
pub(crate) fn breaches(requests: &[Request], name: &str) -> Vec<String> {
    let mut by_message: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for request in requests {
        by_message.entry(&request.message).or_default().push(request);
    }
    let mut found = Vec::new();
    for (id, mut list) in by_message {
        list.sort_by(|a, b| a.arrived_ms.total_cmp(&b.arrived_ms));
        if list.len() > MAX_ATTEMPTS || list.iter().any(|request| request.attempt_no > MAX_ATTEMPTS) {
            found.push(format!(
                "{name}: {id} had {} requests; {MAX_ATTEMPTS} are allowed",
                list.len()
            ));
        }
        for pair in list.windows(2) {
            found.extend(between(pair[0], pair[1]).map(|what| format!("{name}: {id}: {what}")));
        }
    }
    found
}

/// The wait after attempt n runs from its end; the receiver's answer is never after that.
fn between(earlier: &Request, later: &Request) -> Option<String> {
    if later.attempt_no <= earlier.attempt_no {
        return Some(format!(
            "attempt {} after attempt {}",
            later.attempt_no, earlier.attempt_no
        ));
    }
    // A crash can swallow attempts between the two, never make the wait shorter than that before the later one.
    let wait = WAITS_MS[(later.attempt_no - 2).min(WAITS_MS.len() - 1)];
    let gap = later.arrived_ms - earlier.answered_ms.unwrap_or(earlier.arrived_ms);
    (gap < wait).then(|| {
        format!(
            "attempt {} came {gap:.3} ms after the one before, not {wait}",
            later.attempt_no
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(attempt_no: usize, arrived_ms: f64, status: u64) -> Request {
        let answered = arrived_ms + 1.0;
        let line = format!(
            r#"{{"message_id":"m","attempt_no":{attempt_no},"arrival_ms":{arrived_ms},"answered_ms":{answered},"status":{status}}}"#
        );
        Request::read(&line).expect("a request")
    }

    #[test]
    fn the_law_of_the_contract_is_kept_to_the_fraction() {
        let good = [
            request(1, 0.0, 500),
            request(2, 101.0, 500),
            request(3, 302.0, 200),
        ];
        assert_eq!(breaches(&good, "r"), Vec::<String>::new());
        let early = [request(1, 0.0, 500), request(2, 100.9, 500)];
        assert_eq!(breaches(&early, "r").len(), 1);
        let swallowed = [request(1, 0.0, 500), request(3, 201.0, 500)];
        assert_eq!(breaches(&swallowed, "r"), Vec::<String>::new());
    }

    #[test]
    fn a_repeated_number_and_a_surplus_request_are_named() {
        assert_eq!(
            breaches(&[request(1, 0.0, 500), request(1, 900.0, 500)], "r").len(),
            1
        );
        let many: Vec<Request> = (1..=13_u32)
            .map(|n| request(n as usize, f64::from(n) * 1000.0, 500))
            .collect();
        assert_eq!(breaches(&many, "r").len(), 1);
    }

    #[test]
    fn what_was_acknowledged_and_never_answered_is_named() {
        let acked = BTreeSet::from(["m".to_owned(), "lost".to_owned()]);
        assert_eq!(undelivered(&[request(1, 0.0, 200)], &acked, "r").len(), 1);
        assert_eq!(undelivered(&[request(1, 0.0, 500)], &acked, "r").len(), 2);
    }
}
