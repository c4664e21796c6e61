//! Clock readings put on one axis of elapsed time, by the steps of the wall clock that a ledger tells of.
//!
//! The axis is the wall clock as it stands behind the last step: an earlier reading is moved by the steps that came after
//! it. Which came after it is told by commit order, and where a row was written before it ended, by the readings.

use contract::ledger::{AttemptRecord, NodeEvent, NodeEventKind};
use contract::{Duration, Instant, Seq};
use std::collections::HashMap;

/// Between the claim and the reading just before sending lies no more than this.
const SENDING: Duration = Duration::from_secs(2);
/// A step is noticed no later than this.
const NOTICING: Duration = Duration::from_secs(2);

struct Step {
    seq: Seq,
    /// The wall clock behind it.
    at: Instant,
    /// By how far it was set forward (or, negative, back).
    size_ms: i64,
}

impl Step {
    /// The wall clock before it.
    const fn before(&self) -> Instant {
        moved(self.at, self.size_ms.saturating_neg())
    }
}

/// The steps of each node's clock.
#[derive(Default)]
pub(super) struct Elapsed {
    steps: HashMap<String, Vec<Step>>,
}

const fn moved(at: Instant, by_ms: i64) -> Instant {
    Instant::from_unix_ms(at.as_unix_ms().saturating_add(by_ms))
}

impl Elapsed {
    /// From the events of nodes, by `seq`.
    pub(super) fn of(events: &[NodeEvent]) -> Self {
        let mut steps: HashMap<String, Vec<Step>> = HashMap::new();
        for event in events.iter().filter(|event| event.event == NodeEventKind::Step) {
            steps.entry(event.node.clone()).or_default().push(Step {
                seq: event.seq,
                at: event.at,
                size_ms: event.size_ms,
            });
        }
        Self { steps }
    }

    fn after(&self, node: &str, seq: Seq) -> &[Step] {
        let steps = self.steps.get(node).map_or(&[][..], Vec::as_slice);
        steps
            .get(steps.partition_point(|step| step.seq < seq)..)
            .unwrap_or_default()
    }

    /// A reading that was written at `seq`.
    pub(super) fn at(&self, node: &str, seq: Seq, at: Instant) -> Instant {
        self.after(node, seq)
            .iter()
            .fold(at, |at, step| moved(at, step.size_ms))
    }

    /// A reading in a record that names no node: where only one node's clock stepped, it is taken to be that one's.
    pub(super) fn of_no_node(&self, seq: Seq, at: Instant) -> Instant {
        let mut nodes = self.steps.keys();
        match (nodes.next(), nodes.next()) {
            (Some(only), None) => self.at(only, seq, at),
            _ => at,
        }
    }

    /// The start of an attempt, which is read between its claim and its settling.
    pub(super) fn start(&self, row: &AttemptRecord) -> Instant {
        let steps = self.after(&row.node, row.seq);
        // Only a reading behind a step forward can be so late.
        let behind = steps.first().is_some_and(|step| {
            step.size_ms > 0 && row.started_at >= step.at && row.started_at <= step.at + SENDING
        });
        let later = steps.iter().skip(usize::from(behind));
        later.fold(row.started_at, |at, step| moved(at, step.size_ms))
    }

    /// From when on, between `from` and `until`, that node's wall clock reads `due` or later: where it was set back behind
    /// that, from when it does again.
    pub(super) fn reached(&self, node: &str, from: Instant, due: Instant, until: Instant) -> Instant {
        let steps = self.steps.get(node).map_or(&[][..], Vec::as_slice);
        // By how far readings are to be moved: of the stretch before the first step, then of each behind it.
        let mut ahead: i64 = steps.iter().map(|step| step.size_ms).sum();
        let (mut begin, mut reached) = (from, None);
        for step in steps {
            let before = moved(due, ahead);
            ahead -= step.size_ms;
            let end = moved(step.at, ahead);
            if begin < end {
                // A stretch that reads `due` from its beginning on goes on with what was reached before it.
                reached = match reached {
                    Some(at) if before <= begin => Some(at),
                    _ => Some(before.max(begin)).filter(|at| *at < end),
                };
                begin = end;
            }
            if end > until {
                break;
            }
        }
        match reached {
            Some(at) if begin > until || moved(due, ahead) <= begin => at,
            _ => begin.max(moved(due, ahead)),
        }
    }

    /// The end of an attempt that lasts no longer than `limit`, at the earliest and at the latest: where the clock stepped
    /// about then, its reading can fit the stretch before the step and the one behind it.
    pub(super) fn end(&self, row: &AttemptRecord, end: Instant, limit: Duration) -> (Instant, Instant) {
        let steps = self.after(&row.node, row.seq);
        let all: i64 = steps.iter().map(|step| step.size_ms).sum();
        // The reading as one of the stretch between the claim and the first step, then of each behind a step.
        let (mut fits, mut ahead) = (None::<(Instant, Instant)>, all);
        let mut fit = |ahead| {
            let at = moved(end, ahead);
            let (earliest, latest) = fits.unwrap_or((at, at));
            fits = Some((earliest.min(at), latest.max(at)));
        };
        // The start as the clock of each stretch would have it: it lies before all the steps.
        let (mut start, mut begin) = (row.started_at, row.started_at);
        for step in steps {
            if begin <= end + NOTICING && end <= step.before() {
                fit(ahead);
            }
            if step.before() > start + limit {
                return fits.unwrap_or((moved(end, all), moved(end, all)));
            }
            start = moved(start, step.size_ms);
            ahead -= step.size_ms;
            begin = step.at;
        }
        if begin <= end + NOTICING {
            fit(ahead);
        }
        fits.unwrap_or((moved(end, all), moved(end, all)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::ledger::Trigger;
    use contract::{AttemptNo, DeliveryNo};

    const LIMIT: Duration = Duration::from_secs(10);

    fn ms(ms: i64) -> Instant {
        Instant::from_unix_ms(ms)
    }

    fn stepped(steps: &[(u64, i64, i64)]) -> Elapsed {
        let event = |(seq, at, size_ms): &(u64, i64, i64)| NodeEvent {
            seq: Seq::new(*seq),
            node: "n".to_owned(),
            at: ms(*at),
            boot_id: "b".to_owned(),
            mono_ms: 0,
            event: NodeEventKind::Step,
            size_ms: *size_ms,
        };
        Elapsed::of(&steps.iter().map(event).collect::<Vec<_>>())
    }

    fn row(seq: u64, started_at: i64) -> AttemptRecord {
        AttemptRecord {
            attempt_id: "a".to_owned(),
            seq: Seq::new(seq),
            message_id: "m".to_owned(),
            endpoint_id: "e".to_owned(),
            delivery_no: DeliveryNo::FIRST,
            attempt_no: AttemptNo::FIRST,
            retry_rev: String::new(),
            endpoint_rev: String::new(),
            due_at: ms(0),
            started_at: ms(started_at),
            ended_at: None,
            outcome: None,
            status: None,
            error: None,
            retry_after: None,
            wait_ms: None,
            node: "n".to_owned(),
            trigger: Trigger::Scheduled,
        }
    }

    #[test]
    fn readings_before_a_step_move_with_it_and_later_ones_stay() {
        let clock = stepped(&[(10, 5_000, 3_000), (20, 4_000, -2_000)]);
        let at = |seq, at| clock.at("n", Seq::new(seq), ms(at)).as_unix_ms();
        // Before both, between them, behind both; and another node's clock did not step.
        assert_eq!(
            [at(1, 1_000), at(15, 5_500), at(25, 4_500)],
            [2_000, 3_500, 4_500]
        );
        assert_eq!(clock.at("other", Seq::new(1), ms(1_000)), ms(1_000));
        assert_eq!(clock.of_no_node(Seq::new(1), ms(1_000)), ms(2_000));
    }

    #[test]
    fn a_due_time_is_reached_when_the_wall_clock_reads_it_and_goes_on_to() {
        let reached = |steps: &[(u64, i64, i64)], from, due| {
            stepped(steps)
                .reached("n", ms(from), ms(due), ms(20_000))
                .as_unix_ms()
        };
        assert_eq!(reached(&[], 3_000, 5_000), 5_000);
        assert_eq!(reached(&[], 7_000, 5_000), 7_000);
        // 6000 becomes 4000: on the axis the step is at 4000, what read 5000 before it was at 3000, and reads it again later.
        let back = [(10, 4_000, -2_000)];
        assert_eq!(reached(&back, 1_000, 5_000), 5_000);
        assert_eq!(reached(&back, 1_000, 3_500), 1_500);
        assert_eq!(
            stepped(&back).reached("n", ms(1_000), ms(5_000), ms(3_900)),
            ms(3_000)
        );
        // 2000 becomes 12 000: 5000 is passed over, and reached at the step.
        assert_eq!(reached(&[(10, 12_000, 10_000)], 11_000, 5_000), 12_000);
        // Set back, and forward again before the due time came: reached by the second step.
        assert_eq!(
            reached(&[(10, 4_000, -2_000), (20, 9_000, 4_500)], 8_000, 6_500),
            9_000
        );
    }

    #[test]
    fn an_end_behind_a_step_forward_is_told_by_its_reading() {
        // 2000 becomes 12 000.
        let clock = stepped(&[(10, 12_000, 10_000)]);
        let end = |end| clock.end(&row(1, 1_000), ms(end), LIMIT);
        assert_eq!(end(1_500), (ms(11_500), ms(11_500)));
        assert_eq!(end(12_300), (ms(12_300), ms(12_300)));
        // The claim before the step, the reading just behind it.
        assert_eq!(clock.start(&row(1, 12_001)), ms(12_001));
        assert_eq!(clock.start(&row(1, 1_999)), ms(11_999));
    }

    #[test]
    fn an_end_about_a_step_back_may_be_either() {
        // 5000 becomes 3000.
        let clock = stepped(&[(10, 3_000, -2_000)]);
        let end = |start, end| clock.end(&row(1, start), ms(end), LIMIT);
        assert_eq!(end(4_500, 4_800), (ms(2_800), ms(4_800)));
        assert_eq!(end(500, 900), (ms(-1_100), ms(-1_100)));
        // Set forward by ten seconds and back by two while it was in flight.
        let both = stepped(&[(10, 12_000, 10_000), (20, 11_000, -2_000)]);
        assert_eq!(both.end(&row(1, 1_500), ms(11_500), LIMIT).1, ms(11_500));
        // In flight for longer than it can be: it ended before the step.
        assert_eq!(
            clock.end(&row(1, 1_000), ms(4_800), Duration::from_secs(1)),
            (ms(2_800), ms(2_800))
        );
    }
}
