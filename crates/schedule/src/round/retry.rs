//! The retry round: for each attempt of a ledger, when was it allowed to start, and did it start too early?
//!
//! A streaming fold: what it holds grows with the endpoints and not with the ledger. Keeps I4 (admissible *is*
//! `active`), I5 (the boundary is found by counting) and I8 (every figure is derived).

use contract::ledger::EndpointState;
use contract::rounds::RetryRoundContract;
use serde::Serialize;

/// An endpoint of the round.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// Only `active` is planned.
    pub state: EndpointState,
    /// At least 1.
    pub max_attempts: i64,
    /// Seconds, at least 0.
    pub backoff_base_s: i64,
    /// Seconds, at least 0: a cap on the wait.
    pub dispatch_gap_s: i64,
}

/// A row of the ledger, in ledger order.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The place of its endpoint among those given; none where it is unknown.
    pub endpoint: Option<u32>,
    /// At least 1.
    pub attempt_no: i64,
    /// Seconds.
    pub start_ts: i64,
    /// Seconds.
    pub finish_ts: i64,
    /// None where no response came.
    pub status: Option<i64>,
}

/// Whether an attempt kept its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It did.
    Ok,
    /// It did not.
    TooEarly,
}

/// What the plan says of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// No sooner than this, in seconds; 0 for the first row of a delivery.
    pub earliest_ts: i64,
    /// `start_ts − earliest_ts`.
    pub scheduled_delta_s: i64,
    /// Negative is too early.
    pub verdict: Verdict,
}

/// A row of the report.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlanRow<'a> {
    /// The attempt.
    pub attempt_id: &'a str,
    /// Its endpoint.
    pub endpoint_id: &'a str,
    /// As in the ledger.
    pub attempt_no: i64,
    /// See [`Planned::earliest_ts`].
    pub earliest_ts: i64,
    /// See [`Planned::scheduled_delta_s`].
    pub scheduled_delta_s: i64,
    /// See [`Planned::verdict`].
    pub verdict: Verdict,
}

/// Over the planned rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Planned rows.
    pub attempts: u64,
    /// Admissible endpoints.
    pub endpoints: u64,
    /// Planned rows that kept their wait.
    pub ok: u64,
    /// Planned rows that did not.
    pub too_early: u64,
    /// Waited between attempts of a delivery, in seconds.
    pub backoff_s: i64,
}

/// Over the whole ledger and all endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Rows of the ledger.
    pub attempts: u64,
    /// Endpoints whose last row is a success.
    pub succeeded: u64,
    /// Endpoints whose last row is a failure.
    pub exhausted: u64,
    /// Endpoints that are not admissible or have no row.
    pub skipped: u64,
}

/// The figures of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Over the planned rows.
    pub totals: Totals,
    /// Over the ledger.
    pub counts: Counts,
    /// Whether any endpoint has more too-early rows than the contract's mark.
    pub over_dead_letter: bool,
    /// Nothing too early, and no endpoint over its mark.
    pub ok: bool,
}

/// FACTOR ^ e for e = 0 … 63, saturating: whatever the factor, further powers are saturated or still 1.
#[derive(Clone, Debug)]
pub struct Powers([i64; 64]);

impl Powers {
    /// The powers of a factor of at least 1.
    #[must_use]
    pub fn of(factor: i64) -> Self {
        let mut powers = [1_i64; 64];
        for e in 1..powers.len() {
            powers[e] = powers[e - 1].saturating_mul(factor);
        }
        Self(powers)
    }

    fn at(&self, exponent: i64) -> i64 {
        let [.., last] = self.0;
        usize::try_from(exponent)
            .ok()
            .and_then(|e| self.0.get(e))
            .copied()
            .unwrap_or(last)
    }
}

/// The wait of the retry round: min(`dispatch_gap_s`, `backoff_base_s` × FACTOR ^ (`attempt_no` − 1)), saturating. The
/// exponent is the judged row's own number; the gap is a cap, whatever its name suggests.
#[must_use]
pub fn capped_wait_s(endpoint: &Endpoint, powers: &Powers, attempt_no: i64) -> i64 {
    let backoff_s = endpoint.backoff_base_s.saturating_mul(powers.at(attempt_no - 1));
    backoff_s.min(endpoint.dispatch_gap_s)
}

/// The plan in the making.
#[derive(Debug)]
pub struct Planner {
    contract: RetryRoundContract,
    powers: Powers,
    lanes: Vec<Lane>,
    totals: Totals,
    /// Exact, whatever its size; cut to 64 bits at the end.
    backoff_s: i128,
    rows: u64,
}

/// An endpoint and how far its deliveries have come.
#[derive(Debug)]
struct Lane {
    endpoint: Endpoint,
    /// Rows of the delivery that is open; 0 when none is.
    count: i64,
    /// Where the row before it ended.
    finish_ts: i64,
    too_early: u64,
    last: Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    None,
    Success,
    Failure,
}

impl Planner {
    /// A plan over these endpoints, whose places rows refer to.
    #[must_use]
    pub fn new(contract: RetryRoundContract, endpoints: impl IntoIterator<Item = Endpoint>) -> Self {
        let lanes = endpoints.into_iter().map(|endpoint| Lane {
            endpoint,
            count: 0,
            finish_ts: 0,
            too_early: 0,
            last: Last::None,
        });
        Self {
            contract,
            powers: Powers::of(contract.backoff_factor),
            lanes: lanes.collect(),
            totals: Totals::default(),
            backoff_s: 0,
            rows: 0,
        }
    }

    /// Takes the next row of the ledger; `None` when it is not planned, because its endpoint is unknown or not
    /// admissible.
    pub fn row(&mut self, row: &Row) -> Option<Planned> {
        self.rows += 1;
        let lane = self.lanes.get_mut(usize::try_from(row.endpoint?).ok()?)?;
        if !admissible(lane.endpoint.state) {
            return None;
        }
        let opens = lane.count == 0;
        let earliest_ts = if opens {
            0
        } else {
            self.backoff_s += i128::from(row.start_ts.saturating_sub(lane.finish_ts));
            lane.finish_ts
                .saturating_add(capped_wait_s(&lane.endpoint, &self.powers, row.attempt_no))
                .saturating_add(self.contract.admit_slack_s)
        };
        let scheduled_delta_s = row.start_ts.saturating_sub(earliest_ts);
        let verdict = if scheduled_delta_s < 0 {
            Verdict::TooEarly
        } else {
            Verdict::Ok
        };
        self.totals.attempts += 1;
        match verdict {
            Verdict::Ok => self.totals.ok += 1,
            Verdict::TooEarly => {
                self.totals.too_early += 1;
                lane.too_early += 1;
            }
        }
        lane.close_or_go_on(row, success(&self.contract, row.status));
        Some(Planned {
            earliest_ts,
            scheduled_delta_s,
            verdict,
        })
    }

    /// Whether the rows of the endpoint at this place are planned.
    #[must_use]
    pub fn admits(&self, place: u32) -> bool {
        let lane = usize::try_from(place)
            .ok()
            .and_then(|place| self.lanes.get(place));
        lane.is_some_and(|lane| admissible(lane.endpoint.state))
    }

    /// The figures, once every row was taken.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let mut counts = Counts {
            attempts: self.rows,
            ..Counts::default()
        };
        let mut totals = self.totals;
        totals.backoff_s = clamp(self.backoff_s);
        let mut over_dead_letter = false;
        for lane in &self.lanes {
            totals.endpoints += u64::from(admissible(lane.endpoint.state));
            match lane.last {
                // An endpoint that is not admissible has no planned row.
                Last::None => counts.skipped += 1,
                Last::Success => counts.succeeded += 1,
                Last::Failure => counts.exhausted += 1,
            }
            over_dead_letter |= i128::from(lane.too_early) > i128::from(self.contract.dead_letter_after);
        }
        let ok = totals.too_early == 0 && !over_dead_letter;
        Figures {
            totals,
            counts,
            over_dead_letter,
            ok,
        }
    }
}

impl Lane {
    /// The boundary, by counting (I5): a success or the limit closes the delivery, and the next row opens another.
    fn close_or_go_on(&mut self, row: &Row, success: bool) {
        self.count += 1;
        if success || self.count >= self.endpoint.max_attempts {
            self.count = 0;
        }
        self.finish_ts = row.finish_ts;
        self.last = if success { Last::Success } else { Last::Failure };
    }
}

/// I4: an allow-list of one.
fn admissible(state: EndpointState) -> bool {
    state == EndpointState::Active
}

fn success(contract: &RetryRoundContract, status: Option<i64>) -> bool {
    let range = i64::from(contract.success_min)..=i64::from(contract.success_max);
    status.is_some_and(|status| range.contains(&status))
}

fn clamp(sum: i128) -> i64 {
    // Within 64 bits by then: the default is never taken.
    i64::try_from(sum.clamp(i64::MIN.into(), i64::MAX.into())).unwrap_or_default()
}
