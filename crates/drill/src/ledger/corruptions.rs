//! Tests: the clean ledger corrupted by hand in each of the listed ways. Every judge must name each.

use super::records::Records;
use super::scenario::{HOUR, SECOND};
use contract::ledger::{AttemptRecord, DeliveryEventKind, EndpointEvent, EndpointState, Outcome};
use contract::{AttemptNo, Duration, Instant, Seq};

/// A kind of breach and what makes one.
type Corruption = (&'static str, fn(&mut Records));

pub(super) const CORRUPTIONS: &[Corruption] = &[
    ("too_early", |all| {
        shift_start(at(all, "msg-both", "ep-alpha", 2), -SECOND);
    }),
    ("too_many_attempts", |all| {
        again(all, "msg-long", "ep-alpha", 10, 2 * HOUR);
    }),
    ("after_success", |all| {
        again(all, "msg-after", "ep-alpha", 2, 60 * SECOND);
    }),
    ("to_inactive_endpoint", |all| {
        let row = at(all, "msg-gone", "ep-bravo", 2);
        let (before, started_at) = (Seq::new(row.seq.get() - 1), row.started_at);
        all.endpoints.push(EndpointEvent {
            seq: before,
            endpoint_id: "ep-bravo".into(),
            at: started_at,
            state: EndpointState::Draining,
            why: None,
            by: "test".into(),
        });
    }),
    ("overlap", |all| {
        let next = at(all, "msg-both", "ep-alpha", 2).started_at;
        at(all, "msg-both", "ep-alpha", 1).ended_at = Some(next + Duration::from_secs(2));
    }),
    ("duplicate_attempt", |all| {
        let mut twin = at(all, "msg-both", "ep-bravo", 3).clone();
        twin.seq = Seq::new(twin.seq.get() + 1);
        all.attempts.push(twin);
    }),
    ("min_gap", |all| {
        shift_start(at(all, "msg-paced-2", "ep-paced", 1), -1_500);
    }),
    ("rate", |all| {
        shift_start(at(all, "msg-paced-4", "ep-paced", 1), -5 * SECOND);
    }),
    ("in_flight", |all| {
        let end = at(all, "msg-paced-1", "ep-paced", 1).ended_at;
        at(all, "msg-paced-1", "ep-paced", 1).ended_at = end.map(|end| end + Duration::from_ms(500));
    }),
    ("retry_after_ignored", |all| {
        at(all, "msg-later", "ep-bravo", 3).retry_after = Some("7200".into());
    }),
    ("after_max_age", |all| {
        shift(at(all, "msg-after", "ep-alpha", 2), 6 * HOUR);
    }),
    ("overdue", |all| shift(at(all, "msg-held", "ep-charlie", 4), HOUR)),
    ("wait_too_long", |all| {
        let row = at(all, "msg-after", "ep-alpha", 2);
        row.due_at = row.due_at + Duration::from_secs(5);
    }),
    ("gave_up_early", |all| {
        all.attempts
            .retain(|row| row.message_id != "msg-long" || row.attempt_no.get() < 9);
    }),
    ("abandoned", |all| {
        all.deliveries
            .retain(|row| row.message_id != "msg-long" || row.event == DeliveryEventKind::Opened);
    }),
    // never tried at all
    ("abandoned", |all| {
        all.deliveries
            .retain(|row| row.message_id != "msg-gone" || row.event == DeliveryEventKind::Opened);
        all.attempts.retain(|row| row.message_id != "msg-gone");
    }),
    ("lost", |all| {
        all.deliveries
            .retain(|row| row.message_id != "msg-both" || row.endpoint_id != "ep-bravo");
        all.attempts
            .retain(|row| row.message_id != "msg-both" || row.endpoint_id != "ep-bravo");
    }),
    ("numbering_gap", |all| {
        at(all, "msg-both", "ep-alpha", 4).attempt_no = AttemptNo::new(5);
    }),
    ("wrong_draw", |all| {
        at(all, "msg-both", "ep-alpha", 2).wait_ms = Some(Duration::from_ms(29_999));
    }),
    ("unknown_contract", |all| {
        at(all, "msg-gone", "ep-bravo", 1).retry_rev = "nobody".into();
    }),
    ("outcome_not_in_contract", |all| {
        at(all, "msg-both", "ep-alpha", 1).status = Some(200);
    }),
    ("state_without_evidence", |all| {
        at(all, "msg-after", "ep-alpha", 2).outcome = Some(Outcome::TimedOut);
        at(all, "msg-after", "ep-alpha", 2).status = None;
    }),
];

/// Leaves room between any two records for one that is put there by hand.
pub(super) fn spread(all: &mut Records) {
    let wide = |seq: Seq| Seq::new(seq.get() * 10);
    all.attempts.iter_mut().for_each(|row| row.seq = wide(row.seq));
    all.deliveries.iter_mut().for_each(|row| row.seq = wide(row.seq));
    all.messages.iter_mut().for_each(|row| row.seq = wide(row.seq));
    all.endpoints.iter_mut().for_each(|row| row.seq = wide(row.seq));
    all.nodes.iter_mut().for_each(|row| row.seq = wide(row.seq));
}

/// Puts the records back in commit order: an export is ordered by `seq`.
pub(super) fn sort(all: &mut Records) {
    all.attempts.sort_by_key(|row| row.seq);
    all.endpoints.sort_by_key(|row| row.seq);
}

fn at<'a>(all: &'a mut Records, message: &str, endpoint: &str, attempt: u32) -> &'a mut AttemptRecord {
    let mine = |row: &&mut AttemptRecord| {
        row.message_id == message && row.endpoint_id == endpoint && row.attempt_no.get() == attempt
    };
    all.attempts
        .iter_mut()
        .find(mine)
        .expect("an attempt of the scenario")
}

fn shift_start(row: &mut AttemptRecord, by: i64) {
    row.started_at = Instant::from_unix_ms(row.started_at.as_unix_ms() + by);
}

fn shift(row: &mut AttemptRecord, by: i64) {
    shift_start(row, by);
    row.ended_at = row
        .ended_at
        .map(|end| Instant::from_unix_ms(end.as_unix_ms() + by));
}

/// One attempt more after the last of a delivery.
fn again(all: &mut Records, message: &str, endpoint: &str, last: u32, later: i64) {
    let mut row = at(all, message, endpoint, last).clone();
    row.attempt_id.push_str("-again");
    row.attempt_no = row.attempt_no.next();
    row.seq = Seq::new(row.seq.get() + 1_000_001);
    row.wait_ms = Some(Duration::from_secs(3_600));
    shift(&mut row, later);
    row.due_at = row.started_at;
    all.attempts.push(row);
}
