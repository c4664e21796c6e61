//! The inputs of the drill: the worked case of the spec, and one generated case that exercises what the worked one
//! leaves alone (seconds, items at the limit, a malformed line, an item from the future).

use super::appraiser::QueueTexts;

/// The worked case (spec/queue-round.md, Worked numbers).
pub(crate) fn worked() -> QueueTexts {
    QueueTexts {
        contract: WORKED[0].1.to_owned(),
        channels: WORKED[1].1.to_owned(),
        queue: WORKED[2].1.to_owned(),
        now: 1_800_000,
    }
}

/// The generated case: the same on every machine and at every time.
pub(crate) fn generated() -> QueueTexts {
    let item = |id: &str, channel: &str, attempts: i64, received: i64| {
        format!(
            "{{\"id\": \"{id}\", \"channel\": \"{channel}\", \"attempts\": {attempts}, \"received_at_value\": {received}}}\n"
        )
    };
    let queue = [
        item("g-ready-at-limit", "email", 2, 9_000),
        item("g-dead-not-due", "email", 2, 9_995),
        item("g-dead-disabled", "sms", 3, 100),
        item("g-dead-unknown", "pager", 2, 100),
        item("g-exact", "push", 1, 9_997),
        item("g-future", "push", 0, 10_500),
        item("g-young", "email", 0, 9_999),
        item("g-old", "email", 0, 1),
        "this is no item\n".to_owned(),
        "\n".to_owned(),
        item("g-many", "push", 70, 1),
    ];
    QueueTexts {
        contract: "QUEUE_DELAY_UNIT=seconds\nQUEUE_BACKOFF_POLICY=exponential\nQUEUE_BACKOFF_BASE_MS=1500\nQUEUE_MAX_ATTEMPTS=2\n"
            .to_owned(),
        channels: "{\"email\": {\"enabled\": true}, \"push\": {\"enabled\": true}, \"sms\": {\"enabled\": false}}\n".to_owned(),
        queue: queue.concat(),
        now: 10_000,
    }
}

/// The worked case as files.
pub(crate) const WORKED: [(&str, &str); 3] = [
    (
        "queue.env",
        include_str!("../../../../cases/queue-round/queue.env"),
    ),
    (
        "channels.json",
        include_str!("../../../../cases/queue-round/channels.json"),
    ),
    (
        "queue.jsonl",
        include_str!("../../../../cases/queue-round/queue.jsonl"),
    ),
];
