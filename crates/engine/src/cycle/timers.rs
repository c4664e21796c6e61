//! One timer a lane, ordered by the boot-time clock. A wall-clock due time is counted onto it; when the wall clock is
//! set, all are counted again.

use super::reach;
use contract::BootInstant;
use schedule::Until;
use std::collections::{BTreeSet, HashMap};
use store::{EndpointKey, Reading};

/// The timers of all lanes.
#[derive(Debug, Default)]
pub(super) struct Timers {
    order: BTreeSet<(BootInstant, EndpointKey)>,
    of: HashMap<EndpointKey, BootInstant>,
}

impl Timers {
    /// Sets a lane's timer, in place of the one it had.
    pub(super) fn set(&mut self, key: EndpointKey, until: Until, now: &Reading) {
        let at = now.boot + reach(until, now);
        self.clear(key);
        self.order.insert((at, key));
        self.of.insert(key, at);
    }

    pub(super) fn clear(&mut self, key: EndpointKey) {
        if let Some(at) = self.of.remove(&key) {
            self.order.remove(&(at, key));
        }
    }

    pub(super) fn first(&self) -> Option<BootInstant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes out all whose time has come.
    pub(super) fn fired(&mut self, now: BootInstant) -> Vec<EndpointKey> {
        let mut fired = Vec::new();
        while let Some((at, key)) = self.order.first().copied() {
            if at > now {
                break;
            }
            self.clear(key);
            fired.push(key);
        }
        fired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Instant;

    #[test]
    fn a_lane_has_one_timer_and_the_later_clock_counts() {
        let now = Reading {
            wall: Instant::from_unix_ms(1000),
            boot: BootInstant::from_ms(50),
        };
        let until = |wall, boot| Until {
            wall: Instant::from_unix_ms(wall),
            boot: Some(BootInstant::from_ms(boot)),
        };
        let mut timers = Timers::default();
        let (a, b) = (EndpointKey(1), EndpointKey(2));
        timers.set(a, until(1100, 60), &now);
        assert_eq!(timers.first(), Some(BootInstant::from_ms(150)));
        timers.set(a, until(1000, 90), &now);
        timers.set(b, until(1005, 50), &now);
        assert_eq!(timers.fired(BootInstant::from_ms(54)), vec![]);
        assert_eq!(timers.fired(BootInstant::from_ms(55)), vec![b]);
        assert_eq!(timers.fired(BootInstant::from_ms(90)), vec![a]);
        assert_eq!(timers.first(), None);
    }
}
