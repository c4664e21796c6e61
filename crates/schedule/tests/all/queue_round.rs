//! The queue round (spec/queue-round.md): its worked numbers, and each rule by itself.

use contract::rounds::{BackoffPolicy, DelayUnit, QueueRoundContract};
use proptest::prelude::*;
use schedule::round::queue::{Appraised, Item, Reason, Tally, Verdict, appraise, backoff_ms};

const CONTRACT: QueueRoundContract = QueueRoundContract {
    delay_unit: DelayUnit::Milliseconds,
    policy: BackoffPolicy::Exponential,
    backoff_base_ms: 30_000,
    max_attempts: 3,
};
const NOW: i64 = 1_800_000;

const fn item(channel_enabled: Option<bool>, attempts: i64, received_at_value: i64) -> Item {
    Item {
        channel_enabled,
        attempts,
        received_at_value,
    }
}

#[test]
fn the_worked_round_gives_every_worked_number() {
    use Reason as R;
    use Verdict as V;
    let (on, off, none) = (Some(true), Some(false), None);
    let cases = [
        (
            "m-001",
            item(on, 2, 1_750_000),
            50_000,
            120_000,
            V::Defer,
            R::NotDue,
            None,
        ),
        (
            "m-002",
            item(on, 2, 1_690_000),
            110_000,
            120_000,
            V::Defer,
            R::NotDue,
            None,
        ),
        (
            "m-003",
            item(off, 0, 1_200_000),
            600_000,
            30_000,
            V::Block,
            R::ChannelDisabled,
            None,
        ),
        (
            "m-004",
            item(on, 2, 1_680_000),
            120_000,
            120_000,
            V::Deliver,
            R::Ready,
            Some(120_000),
        ),
        (
            "m-005",
            item(on, 1, 1_740_000),
            60_000,
            60_000,
            V::Deliver,
            R::Ready,
            Some(60_000),
        ),
        (
            "m-006",
            item(none, 0, 1_790_000),
            10_000,
            30_000,
            V::Block,
            R::ChannelUnknown,
            None,
        ),
        (
            "m-007",
            item(on, 0, 1_799_500),
            500,
            30_000,
            V::Defer,
            R::NotDue,
            None,
        ),
    ];
    let mut tally = Tally::default();
    for (id, item, age_ms, backoff_ms, verdict, reason, wait_ms) in cases {
        let got = appraise(&CONTRACT, &item, NOW);
        assert_eq!(
            got,
            Appraised {
                age_ms,
                backoff_ms,
                verdict,
                reason,
                wait_ms
            },
            "{id}"
        );
        tally.add(got.verdict);
    }
    assert_eq!(
        tally,
        Tally {
            items_total: 7,
            deliver: 2,
            defer: 3,
            block: 2,
            dead: 0
        }
    );
    assert!(tally.ok());
}

#[test]
fn an_item_that_cannot_go_out_now_is_dead_at_the_limit_and_one_that_can_goes_out() {
    let judged = |channel, attempts, age| {
        let got = appraise(&CONTRACT, &item(channel, attempts, NOW - age), NOW);
        (got.verdict, got.reason)
    };
    assert_eq!(
        judged(Some(true), 3, 239_999),
        (Verdict::Dead, Reason::MaxAttempts)
    );
    assert_eq!(judged(Some(true), 3, 240_000), (Verdict::Deliver, Reason::Ready));
    assert_eq!(judged(None, 3, 240_000), (Verdict::Dead, Reason::MaxAttempts));
    assert_eq!(judged(Some(false), 4, 0), (Verdict::Dead, Reason::MaxAttempts));
    assert_eq!(
        judged(Some(false), 2, 0),
        (Verdict::Block, Reason::ChannelDisabled)
    );
}

#[test]
fn seconds_scale_the_age_and_not_the_backoff() {
    let seconds = QueueRoundContract {
        delay_unit: DelayUnit::Seconds,
        ..CONTRACT
    };
    let got = appraise(&seconds, &item(Some(true), 1, 1_740), 1_800);
    assert_eq!(
        (got.age_ms, got.backoff_ms, got.verdict),
        (60_000, 60_000, Verdict::Deliver)
    );
}

#[test]
fn an_item_from_the_future_has_a_negative_age_and_is_not_due() {
    let got = appraise(&CONTRACT, &item(Some(true), 0, NOW + 1), NOW);
    assert_eq!((got.age_ms, got.verdict), (-1, Verdict::Defer));
}

#[test]
fn ages_and_backoffs_saturate() {
    let seconds = QueueRoundContract {
        delay_unit: DelayUnit::Seconds,
        ..CONTRACT
    };
    for (now, received, age) in [
        (i64::MAX, i64::MIN, i64::MAX),
        (i64::MIN, i64::MAX, i64::MIN),
        (i64::MAX / 999, 0, i64::MAX),
    ] {
        assert_eq!(
            appraise(&seconds, &item(Some(true), 0, received), now).age_ms,
            age
        );
    }
    for (attempts, want) in [
        (0, 30_000),
        (1, 60_000),
        (48, 30_000 << 48),
        (49, i64::MAX),
        (63, i64::MAX),
        (i64::MAX, i64::MAX),
    ] {
        assert_eq!(backoff_ms(&CONTRACT, attempts), want, "{attempts}");
    }
    let one = QueueRoundContract {
        backoff_base_ms: 1,
        ..CONTRACT
    };
    assert_eq!((backoff_ms(&one, 62), backoff_ms(&one, 63)), (1 << 62, i64::MAX));
}

#[test]
fn every_verdict_is_counted_and_none_is_malformed() {
    let mut tally = Tally::default();
    for verdict in [
        Verdict::Dead,
        Verdict::Dead,
        Verdict::Block,
        Verdict::Deliver,
        Verdict::Defer,
    ] {
        tally.add(verdict);
    }
    let want = Tally {
        items_total: 5,
        deliver: 1,
        defer: 1,
        block: 1,
        dead: 2,
    };
    assert_eq!((tally, tally.malformed(), tally.ok()), (want, 0, true));
}

#[test]
fn a_line_that_could_not_be_read_makes_the_round_not_ok() {
    let mut tally = Tally::default();
    tally.add(Verdict::Defer);
    tally.add_malformed();
    assert_eq!((tally.items_total, tally.malformed(), tally.ok()), (2, 1, false));
}

proptest! {
    #[test]
    fn verdict_reason_and_wait_never_disagree(
        enabled in any::<Option<bool>>(), attempts in 0_i64..100, received in any::<i64>(), now in any::<i64>()
    ) {
        let got = appraise(&CONTRACT, &item(enabled, attempts, received), now);
        let agree = match got.verdict {
            Verdict::Deliver => got.reason == Reason::Ready && got.wait_ms == Some(got.age_ms) && enabled == Some(true),
            Verdict::Defer => got.reason == Reason::NotDue && attempts < 3,
            Verdict::Block => matches!(got.reason, Reason::ChannelUnknown | Reason::ChannelDisabled) && attempts < 3,
            Verdict::Dead => got.reason == Reason::MaxAttempts && attempts >= 3,
        };
        prop_assert!(agree && (got.verdict == Verdict::Deliver || got.wait_ms.is_none()), "{got:?}");
    }
}
