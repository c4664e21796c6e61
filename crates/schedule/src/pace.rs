//! The exact pace of one endpoint: `min_gap`, `rate` and its own throttle, each "at most N starts in any window W".
//!
//! A start is reserved when it is claimed and becomes a start when the request is about to be sent. A reservation
//! counts as starting now, at every moment until it starts or is cancelled; so whatever the delay between claim and
//! send, no window ever holds too many starts. Both clocks are watched: the wall clock, because the ledger is judged
//! by it, and the boot-time clock, because a wall clock set forward must release nothing early (I1).

use contract::model::EndpointClauses;
use contract::{BootInstant, Duration, Instant};
use std::collections::VecDeque;

/// Both clocks at one moment, each rounded down to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock.
    pub wall: Instant,
    /// The boot-time clock.
    pub boot: BootInstant,
}

impl Moment {
    fn after(self, wait: Duration) -> Self {
        Self {
            wall: self.wall + wait,
            boot: self.boot + wait,
        }
    }
}

/// At most so many starts in any window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    starts: usize,
    window: Duration,
}

/// The pacing state of one endpoint.
#[derive(Clone, Debug)]
pub struct Pace {
    limits: Vec<Limit>,
    /// The last starts, ordered by the boot-time clock; as many as the widest limit counts.
    starts: VecDeque<Moment>,
    /// Whether the wall clock's readings in `starts` are in order too; false for a while after it was set back.
    wall_in_order: bool,
    reserved: usize,
}

impl Pace {
    /// A pace by these clauses and the endpoint's own `throttle` in starts a second, with no start behind it.
    #[must_use]
    pub fn new(clauses: &EndpointClauses, throttle: Option<u16>) -> Self {
        let limits = limits_of(clauses, throttle);
        Self {
            limits,
            starts: VecDeque::new(),
            wall_in_order: true,
            reserved: 0,
        }
    }

    /// The clauses changed: the starts made and reserved stay known.
    pub fn set_clauses(&mut self, clauses: &EndpointClauses, throttle: Option<u16>) {
        self.limits = limits_of(clauses, throttle);
        self.forget();
    }

    /// Reserves a start. Ask [`Pace::next_allowed`] before.
    pub fn reserve(&mut self) {
        self.reserved = self.reserved.saturating_add(1);
    }

    /// A reserved start is made: the reading just before sending.
    pub fn start(&mut self, at: Moment) {
        self.cancel();
        self.record(at);
    }

    /// A reservation is given back: nothing was sent.
    pub fn cancel(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// Reservations that have neither started nor been cancelled.
    #[must_use]
    pub fn reserved(&self) -> usize {
        self.reserved
    }

    /// Notes a start that was not reserved here: one read back from the ledger after a restart.
    pub fn record(&mut self, at: Moment) {
        if self.limits.is_empty() {
            return;
        }
        let place = self.starts.partition_point(|start| start.boot <= at.boot);
        self.starts.insert(place, at);
        let around = self
            .starts
            .range(place.saturating_sub(1)..self.starts.len().min(place + 2));
        self.wall_in_order &= around.is_sorted_by_key(|start| start.wall);
        self.forget();
    }

    /// Takes every window as full from `now` on: for a restart that does not know the starts before it.
    pub fn assume_full(&mut self, now: Moment) {
        let most = self.limits.iter().map(|limit| limit.starts).max().unwrap_or(0);
        for _ in 0..most {
            self.record(now);
        }
    }

    /// `None` when one more start is allowed now; else the moment to ask again, before which none is.
    #[must_use]
    pub fn next_allowed(&self, now: Moment) -> Option<Moment> {
        let mut next: Option<Moment> = None;
        for limit in &self.limits {
            if let Some(at) = self.blocked_until(*limit, now) {
                next = Some(next.map_or(at, |next| Moment {
                    wall: next.wall.max(at.wall),
                    boot: next.boot.max(at.boot),
                }));
            }
        }
        next
    }

    fn blocked_until(&self, limit: Limit, now: Moment) -> Option<Moment> {
        let room = limit.starts.saturating_sub(self.reserved);
        if room == 0 {
            // Each reservation counts as starting now.
            return Some(now.after(limit.window));
        }
        let boot = self
            .nth_latest_boot(room)
            .map(|start| start + limit.window)
            .filter(|at| *at > now.boot);
        let wall = self
            .nth_latest_wall(room, limit, now)
            .map(|start| start + limit.window)
            .filter(|at| *at > now.wall);
        if boot.is_none() && wall.is_none() {
            return None;
        }
        Some(Moment {
            wall: wall.unwrap_or(now.wall),
            boot: boot.unwrap_or(now.boot),
        })
    }

    /// The start that must have left the window before one more may be made: the n-th from the last.
    fn nth_latest_boot(&self, n: usize) -> Option<BootInstant> {
        let at = self.starts.len().checked_sub(n)?;
        self.starts.get(at).map(|start| start.boot)
    }

    /// The same by the wall clock. After it was set back, starts that lie a window or more ahead of `now` are in no
    /// window together with it and do not count: a step of days must not stop an endpoint for days.
    fn nth_latest_wall(&self, n: usize, limit: Limit, now: Moment) -> Option<Instant> {
        let horizon = now.wall + limit.window;
        if self.wall_in_order && self.starts.back().is_none_or(|last| last.wall < horizon) {
            let at = self.starts.len().checked_sub(n)?;
            return self.starts.get(at).map(|start| start.wall);
        }
        let mut near: Vec<Instant> = self
            .starts
            .iter()
            .map(|start| start.wall)
            .filter(|wall| *wall < horizon)
            .collect();
        near.sort_unstable();
        near.get(near.len().checked_sub(n)?).copied()
    }

    /// Keeps no more starts than the limits can ask for.
    fn forget(&mut self) {
        let most = self.limits.iter().map(|limit| limit.starts).max().unwrap_or(0);
        while self.starts.len() > most {
            self.starts.pop_front();
        }
        // Looked through as a whole only where the order is in doubt: after a step, until it has passed out.
        if !self.wall_in_order {
            self.wall_in_order = self.starts.iter().is_sorted_by_key(|start| start.wall);
        }
    }
}

fn limits_of(clauses: &EndpointClauses, throttle: Option<u16>) -> Vec<Limit> {
    let gap = (!clauses.min_gap.is_zero()).then_some(Limit {
        starts: 1,
        window: clauses.min_gap,
    });
    let rate = clauses.rate.map(|rate| Limit {
        starts: usize::try_from(rate.starts).unwrap_or(usize::MAX),
        window: rate.window,
    });
    let throttle = throttle.filter(|starts| *starts > 0).map(|starts| Limit {
        starts: usize::from(starts),
        window: Duration::from_secs(1),
    });
    gap.into_iter().chain(rate).chain(throttle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(starts: usize) -> Pace {
        let limits = vec![Limit {
            starts,
            window: Duration::from_ms(1000),
        }];
        Pace {
            limits,
            starts: VecDeque::new(),
            wall_in_order: true,
            reserved: 0,
        }
    }

    fn moment(wall: i64, boot: u64) -> Moment {
        Moment {
            wall: Instant::from_unix_ms(wall),
            boot: BootInstant::from_ms(boot),
        }
    }

    #[test]
    fn no_more_starts_are_kept_than_the_limits_can_ask_for() {
        let mut pace = pace(3);
        (0..100).for_each(|n| pace.record(moment(n, 7)));
        assert_eq!(pace.starts.len(), 3);
        pace.limits.clear();
        pace.forget();
        assert!(pace.starts.is_empty());
    }

    #[test]
    fn a_step_of_the_wall_clock_is_in_doubt_until_it_has_passed_out() {
        let mut pace = pace(3);
        for (wall, boot, in_order) in [
            (5, 0, true),
            (5, 1, true),
            (9, 2, true),
            (4, 3, false),
            (5, 4, false),
            (6, 5, true),
            (6, 6, true),
        ] {
            pace.record(moment(wall, boot));
            assert_eq!(pace.wall_in_order, in_order, "{wall} {boot}");
        }
    }

    #[test]
    fn a_start_that_is_noted_late_takes_its_place_and_its_neighbours_are_looked_at() {
        let mut pace = pace(9);
        for (wall, boot) in [(0, 0), (10, 10), (20, 20)] {
            pace.record(moment(wall, boot));
        }
        pace.record(moment(100, 5));
        assert!(!pace.wall_in_order);
        assert!(pace.starts.iter().is_sorted_by_key(|start| start.boot));
    }
}
