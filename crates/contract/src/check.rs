//! Clauses that contradict each other make a contract unusable (spec/contract.md). Only what cannot be meant stands
//! here; what is legal but surely not meant is the warnings' part (`audit::waits`).

use crate::error::ValueError;
use crate::model::{
    Anchor, Backoff, Contract, EndpointClauses, Jitter, Law, OutcomeSets, RetryAfter, Segment, SimpleLaw,
    StatusSet,
};
use crate::text::write_range;
use crate::units::Duration;

/// Two clauses, or a clause and its own sense, that cannot both hold.
pub(crate) struct Contradiction {
    pub(crate) clause: String,
    pub(crate) error: ValueError,
}

/// Schedules and lists of segments are as long as a delivery has attempts, at most.
const MAX_LIST: usize = 10_000;

struct Clashes(Vec<Contradiction>);

impl Clashes {
    fn when(
        &mut self,
        wrong: bool,
        clause: impl Into<String>,
        found: impl Into<String>,
        right: impl Into<String>,
    ) {
        if wrong {
            self.0.push(Contradiction {
                clause: clause.into(),
                error: ValueError::new(found, right),
            });
        }
    }
}

/// Every contradiction in it; none in a sound contract.
pub(crate) fn contradictions(contract: &Contract) -> Vec<Contradiction> {
    let mut clashes = Clashes(Vec::new());
    let retry = &contract.retry;
    let zero_age = retry.max_age.is_some_and(Duration::is_zero);
    clashes.when(
        zero_age,
        "retry.max_age",
        "an age of 0s, at which every delivery is dead at once",
        "write a longer one, or \"none\"",
    );
    backoff(&mut clashes, &retry.backoff);
    jitter(&mut clashes, contract);
    retry_after(&mut clashes, retry.retry_after);
    outcome(&mut clashes, &contract.outcome);
    endpoint(&mut clashes, &contract.endpoint, &contract.outcome);
    clashes.0
}

fn backoff(clashes: &mut Clashes, backoff: &Backoff) {
    let Backoff { law, cap, floor } = backoff;
    if let Some(cap) = cap {
        clashes.when(
            floor > cap,
            "retry.backoff.floor",
            format!("a floor of {floor} above the cap of {cap}"),
            "lower the floor or raise the cap",
        );
    }
    match law {
        Law::Simple(law) => simple_law(clashes, "retry.backoff", law, *cap),
        Law::Segments(segments) => segments_law(clashes, segments, *cap),
    }
}

fn segments_law(clashes: &mut Clashes, segments: &[Segment], cap: Option<Duration>) {
    let path = "retry.backoff.segment";
    let length = segments.len();
    clashes.when(
        length == 0 || length > MAX_LIST,
        path,
        format!("{length} segments"),
        "write 1 to 10000 of them",
    );
    for (n, segment) in segments.iter().enumerate() {
        let path = format!("{path}.{}", n + 1);
        let last = n + 1 == length;
        clashes.when(
            last && segment.count.is_some(),
            &path,
            "a last segment with a count",
            "leave it open",
        );
        clashes.when(
            !last && segment.count.is_none(),
            &path,
            "a segment without a count",
            "only the last is open",
        );
        if let (SimpleLaw::Schedule { waits, .. }, Some(count)) = (&segment.law, segment.count) {
            clashes.when(
                usize::try_from(count) != Ok(waits.len()),
                format!("{path}.count"),
                format!("a count of {count} beside {} waits", waits.len()),
                "write as many waits as the count says, or leave the count out",
            );
        }
        simple_law(clashes, &path, &segment.law, cap);
    }
}

fn simple_law(clashes: &mut Clashes, path: &str, law: &SimpleLaw, cap: Option<Duration>) {
    let base = match law {
        SimpleLaw::Fixed { base } | SimpleLaw::Linear { base, .. } => base,
        SimpleLaw::Exponential { base, .. } | SimpleLaw::Polynomial { base, .. } => {
            clashes.when(
                base.is_zero(),
                format!("{path}.base"),
                "a base of 0s, which no growth makes longer",
                "write a longer base, or law = \"fixed\"",
            );
            base
        }
        SimpleLaw::Schedule { waits, .. } => {
            let length = waits.len();
            clashes.when(
                length == 0 || length > MAX_LIST,
                format!("{path}.waits"),
                format!("{length} waits"),
                "write 1 to 10000 of them",
            );
            match waits.iter().max() {
                Some(longest) => longest,
                None => return,
            }
        }
    };
    if let Some(cap) = cap {
        let key = if matches!(law, SimpleLaw::Schedule { .. }) {
            "waits"
        } else {
            "base"
        };
        clashes.when(
            *base > cap,
            format!("{path}.{key}"),
            format!("{base}, which is longer than the cap of {cap}"),
            "raise the cap, or write \"none\"",
        );
    }
}

fn jitter(clashes: &mut Clashes, contract: &Contract) {
    let retry = &contract.retry;
    clashes.when(
        retry.cap_after_jitter && retry.backoff.cap.is_none(),
        "retry.jitter.cap_after_jitter",
        "a cap after jitter where there is no cap",
        "leave it out, or write retry.backoff.cap",
    );
    if retry.jitter != Jitter::Decorrelated {
        return;
    }
    let kind = "retry.jitter.kind";
    let base = match &retry.backoff.law {
        Law::Simple(SimpleLaw::Schedule { .. }) | Law::Segments(_) => None,
        Law::Simple(
            SimpleLaw::Fixed { base }
            | SimpleLaw::Linear { base, .. }
            | SimpleLaw::Exponential { base, .. }
            | SimpleLaw::Polynomial { base, .. },
        ) => Some(*base),
    };
    clashes.when(
        base.is_none(),
        kind,
        "decorrelated jitter over a list of waits: it knows only a base and would never use the list",
        "choose another kind, or a law with a base",
    );
    clashes.when(
        base.is_some_and(Duration::is_zero),
        "retry.backoff.base",
        "a base of 0s, from which decorrelated jitter never grows",
        "write a longer base",
    );
    clashes.when(
        retry.anchor == Anchor::First,
        kind,
        "decorrelated jitter with anchor = \"first\": each wait builds on the one before, not on the first attempt",
        "choose another kind, or anchor = \"end\"",
    );
}

fn retry_after(clashes: &mut Clashes, rule: RetryAfter) {
    let max = match rule {
        RetryAfter::Ignore => return,
        RetryAfter::Floor { max } | RetryAfter::Replace { max } | RetryAfter::Bounded { max, .. } => max,
    };
    clashes.when(
        max.is_zero(),
        "retry.retry_after.max",
        "a maximum of 0s, which cuts every request to nothing",
        "write a longer one, or rule = \"ignore\"",
    );
}

fn outcome(clashes: &mut Clashes, outcome: &OutcomeSets) {
    clashes.when(
        outcome.success.ranges().is_empty(),
        "outcome.success",
        "an empty list: no answer would ever be a success",
        "write at least one status, as in [\"200-299\"]",
    );
    if let Some(both) = common(&outcome.success, &outcome.terminal) {
        clashes.when(
            true,
            "outcome.terminal",
            format!("`{both}`, which is a success too"),
            "name it in one list only",
        );
    }
}

fn endpoint(clashes: &mut Clashes, endpoint: &EndpointClauses, outcome: &OutcomeSets) {
    clashes.when(
        endpoint.timeout.is_zero(),
        "endpoint.timeout",
        "a timeout of 0s, in which no attempt can succeed",
        "write a longer one, as in \"15s\"",
    );
    clashes.when(
        endpoint.disable_after.is_some_and(Duration::is_zero),
        "endpoint.disable_after",
        "0s, after which every endpoint is disabled at its first failure",
        "write a longer one, or \"never\"",
    );
    if let Some(both) = common(&endpoint.disable_on, &outcome.success) {
        let found = format!("`{both}`, which is a success");
        clashes.when(
            true,
            "endpoint.disable_on",
            found,
            "a success cannot disable an endpoint: leave it out",
        );
    }
}

/// The first stretch of statuses that both sets name.
fn common(a: &StatusSet, b: &StatusSet) -> Option<String> {
    let pairs = a
        .ranges()
        .iter()
        .flat_map(|x| b.ranges().iter().map(move |y| (x.0.max(y.0), x.1.min(y.1))));
    pairs.into_iter().find(|(low, high)| low <= high).map(write_range)
}
