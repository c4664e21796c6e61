//! The waits of a contract, whatever it says: scheduler and auditor, written apart, give the same law, the same interval
//! and the same draw.
#![no_main]

use contract::{Contract, DeliveryNo, Duration, RetryNo};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(read) = contract::parse_bytes(text, "fuzz.toml") else {
        return;
    };
    let mut before = None;
    for n in [1, 2, 3, 4, 5, 8, 13, 40, 200, 9_999] {
        match agreed(&read, RetryNo::new(n), before) {
            Some(drawn) => before = Some(drawn),
            None => return,
        }
    }
});

/// The draw of retry n on which both agree; none where the schedule has stopped.
fn agreed(contract: &Contract, retry: RetryNo, before: Option<Duration>) -> Option<Duration> {
    let law = schedule::law::wait(&contract.retry, retry).wait();
    assert_eq!(law, audit::waits::law(contract, retry));
    let interval = schedule::jitter::bounds(&contract.retry, law?, before);
    assert_eq!(
        Some(interval),
        audit::waits::interval_after(contract, retry, before)
    );
    let (message_id, endpoint_id, delivery_no) = ("msg_1", "ep_1", DeliveryNo::new(1));
    let ours = schedule::DrawKey {
        message_id,
        endpoint_id,
        delivery_no,
        retry_no: retry,
    };
    let theirs = audit::waits::DrawKey {
        message_id,
        endpoint_id,
        delivery_no,
        retry,
    };
    let drawn = schedule::jitter::draw(&contract.retry, law?, &ours, before);
    assert_eq!(Some(drawn), audit::waits::draw(contract, &theirs, before));
    assert!(interval.0 <= drawn && drawn <= interval.1);
    Some(drawn)
}
