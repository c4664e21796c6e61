//! Enums and numbers at the database's edge: one code a word, and the id of an attempt from its row.
//!
//! Codes start at 2, see `migrations/0001_first.sql`. A code that is not known is damage, never a default (I7).

use crate::{DeliveryState, StoreError};
use contract::ledger::{DeliveryEventKind, EndpointState, NodeEventKind, Outcome, Trigger};
use contract::{AttemptId, AttemptNo, DeliveryNo, Duration, Instant};

/// A number that the database holds and that lies outside what its column can mean.
pub(super) fn damaged(what: &str, found: i64) -> StoreError {
    StoreError::Corrupt {
        reason: format!("{what} cannot be {found}"),
        source: None,
    }
}

/// The database's integers are signed: what does not fit is cut to the largest.
pub(super) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn size(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(what: &str, n: i64) -> Result<u64, StoreError> {
    u64::try_from(n).map_err(|_| damaged(what, n))
}

pub(super) fn small(what: &str, n: i64) -> Result<u32, StoreError> {
    u32::try_from(n).map_err(|_| damaged(what, n))
}

pub(super) fn wait(n: Option<i64>) -> Result<Option<Duration>, StoreError> {
    n.map(|n| unsigned("wait_ms", n).map(Duration::from_ms))
        .transpose()
}

macro_rules! codes {
    ($to:ident, $from:ident, $type:ident { $($variant:ident = $code:literal),+ $(,)? }) => {
        pub(super) const fn $to(value: $type) -> i64 {
            match value { $($type::$variant => $code),+ }
        }
        pub(super) fn $from(code: i64) -> Result<$type, StoreError> {
            match code { $($code => Ok($type::$variant),)+ _ => Err(damaged(stringify!($type), code)) }
        }
    };
}

codes!(endpoint_state, to_endpoint_state, EndpointState { Active = 2, Draining = 3, Disabled = 4, Deleted = 5 });
codes!(trigger, to_trigger, Trigger { Scheduled = 2, Manual = 3 });
codes!(node_event, to_node_event, NodeEventKind { Up = 2, Down = 3, Step = 4 });
codes!(
    ended,
    to_ended,
    Outcome { Succeeded = 3, Failed = 4, TimedOut = 5, Refused = 6, Interrupted = 7 }
);

/// The outcome of an attempt that has none yet.
pub(super) const IN_FLIGHT: i64 = 2;
/// The status of an attempt without one.
pub(super) const NO_STATUS: i64 = 999;

pub(super) fn to_outcome(code: i64) -> Result<Option<Outcome>, StoreError> {
    if code == IN_FLIGHT {
        return Ok(None);
    }
    to_ended(code).map(Some)
}

pub(super) fn to_status(code: i64) -> Result<Option<u16>, StoreError> {
    match code {
        NO_STATUS => Ok(None),
        _ => u16::try_from(code).map(Some).map_err(|_| damaged("status", code)),
    }
}

/// The states of a delivery row. A superseded delivery is a cancelled one to people, and another event in the ledger.
pub(super) mod state {
    pub(in crate::sqlite) const PENDING: i64 = 2;
    pub(in crate::sqlite) const SENDING: i64 = 3;
    pub(in crate::sqlite) const SUCCEEDED: i64 = 4;
    pub(in crate::sqlite) const DEAD: i64 = 5;
    pub(in crate::sqlite) const CANCELLED: i64 = 6;
    pub(in crate::sqlite) const SUPERSEDED: i64 = 7;
}

pub(super) fn to_delivery_state(code: i64) -> Result<DeliveryState, StoreError> {
    match code {
        state::PENDING => Ok(DeliveryState::Pending),
        state::SENDING => Ok(DeliveryState::Sending),
        state::SUCCEEDED => Ok(DeliveryState::Succeeded),
        state::DEAD => Ok(DeliveryState::Dead),
        state::CANCELLED | state::SUPERSEDED => Ok(DeliveryState::Cancelled),
        _ => Err(damaged("the state of a delivery", code)),
    }
}

/// The final event of a delivery in this state; none while it is open.
pub(super) fn to_final_event(code: i64) -> Result<Option<DeliveryEventKind>, StoreError> {
    match code {
        state::PENDING | state::SENDING => Ok(None),
        state::SUCCEEDED => Ok(Some(DeliveryEventKind::Succeeded)),
        state::DEAD => Ok(Some(DeliveryEventKind::Dead)),
        state::CANCELLED => Ok(Some(DeliveryEventKind::Cancelled)),
        state::SUPERSEDED => Ok(Some(DeliveryEventKind::Superseded)),
        _ => Err(damaged("the state of a delivery", code)),
    }
}

/// The row of an attempt, as its id names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttemptRow {
    pub(super) claimed_at: Instant,
    pub(super) delivery: i64,
    pub(super) attempt_no: AttemptNo,
}

/// How many bits an attempt number takes: a contract allows 10 000 attempts at most.
const NO_BITS: u32 = 14;
/// How many bits of a UUID are free beside its time, version and variant.
const FREE_BITS: u32 = 74;

impl AttemptRow {
    /// The id: a UUIDv7 whose free bits are the row's key, so that ids sort by the time of the claim, none repeats,
    /// and no index is needed to find the row.
    pub(super) fn id(self) -> AttemptId {
        let ms = u128::try_from(self.claimed_at.as_unix_ms().max(0)).unwrap_or(0) & ((1 << 48) - 1);
        let delivery = u128::try_from(self.delivery.max(0)).unwrap_or(0) & ((1 << (FREE_BITS - NO_BITS)) - 1);
        let free = (delivery << NO_BITS) | u128::from(self.attempt_no.get()) & ((1 << NO_BITS) - 1);
        let (high, low) = (free >> 62, free & ((1 << 62) - 1));
        AttemptId::from_bits((ms << 80) | (7 << 76) | (high << 64) | (2 << 62) | low)
    }

    /// The row that an id names, whether or not it exists. `None` for an id that this store never gave.
    pub(super) fn of(id: AttemptId) -> Option<Self> {
        let bits = id.bits();
        let (version, variant) = ((bits >> 76) & 0xf, (bits >> 62) & 3);
        if (version, variant) != (7, 2) {
            return None;
        }
        let free = (((bits >> 64) & 0xfff) << 62) | (bits & ((1 << 62) - 1));
        Some(Self {
            claimed_at: Instant::from_unix_ms(i64::try_from(bits >> 80).ok()?),
            delivery: i64::try_from(free >> NO_BITS).ok()?,
            attempt_no: AttemptNo::new(u32::try_from(free & ((1 << NO_BITS) - 1)).ok()?),
        })
    }
}

pub(super) fn delivery_no(n: i64) -> Result<DeliveryNo, StoreError> {
    small("delivery_no", n).map(DeliveryNo::new)
}

pub(super) fn attempt_no(n: i64) -> Result<AttemptNo, StoreError> {
    small("attempt_no", n).map(AttemptNo::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempts_id_names_its_row_and_sorts_by_the_claim() {
        let row = |ms, delivery, n| AttemptRow {
            claimed_at: Instant::from_unix_ms(ms),
            delivery,
            attempt_no: AttemptNo::new(n),
        };
        let rows = [
            row(0, 0, 0),
            row(1_700_000_000_000, 1, 1),
            row(1_700_000_000_000, 1, 2),
            row(1_700_000_000_000, (1 << 59) + 12_345, 1),
            row(1_700_000_000_001, 1, 10_000),
            row((1 << 48) - 1, (1 << 60) - 1, (1 << 14) - 1),
        ];
        for row in rows {
            assert_eq!(AttemptRow::of(row.id()), Some(row));
        }
        assert!(rows.windows(2).all(|pair| pair[0].id() < pair[1].id()));
    }

    #[test]
    fn an_id_of_another_make_names_no_row() {
        assert_eq!(AttemptRow::of(AttemptId::from_bits(0)), None);
        assert_eq!(AttemptRow::of(AttemptId::from_bits(u128::MAX)), None);
    }

    #[test]
    fn an_unknown_code_is_damage() {
        for found in [i64::MIN, -1, 0, 1, 8, i64::MAX] {
            assert!(matches!(
                to_endpoint_state(found),
                Err(StoreError::Corrupt { .. })
            ));
            assert!(matches!(
                to_delivery_state(found),
                Err(StoreError::Corrupt { .. })
            ));
            assert!(matches!(to_outcome(found), Err(StoreError::Corrupt { .. })));
        }
        assert!(matches!(to_status(70_000), Err(StoreError::Corrupt { .. })));
    }
}
