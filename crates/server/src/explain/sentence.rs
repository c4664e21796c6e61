//! The sentences of [`super::explain`]. Each names what happened last, the law behind the wait, and what comes next.

use super::Facts;
use crate::spoken;
use contract::ledger::{AttemptRecord, DeadReason, EndpointState, Outcome};
use contract::model::{Jitter, Law, SimpleLaw};
use contract::{Contract, Duration, Instant};
use store::DeliveryState;

/// Why the delivery is where it is.
pub(super) fn of(facts: &Facts<'_>) -> String {
    match facts.delivery.state {
        DeliveryState::Pending if facts.endpoint.state != EndpointState::Active => held(facts),
        DeliveryState::Pending => pending(facts),
        DeliveryState::Sending => sending(facts),
        DeliveryState::Succeeded => succeeded(facts),
        DeliveryState::Dead => dead(facts),
        DeliveryState::Cancelled => cancelled(facts),
    }
}

/// `7 min 12 s`: the two largest units; `250 ms` below a second.
#[must_use]
pub fn human(span: Duration) -> String {
    let ms = span.as_ms();
    if ms < 1000 {
        return format!("{ms} ms");
    }
    let mut rest = ms / 1000;
    let mut parts = Vec::new();
    for (unit, size) in [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)] {
        if rest >= size {
            parts.push(format!("{} {unit}", rest / size));
            rest %= size;
        }
    }
    // A wait of 1.5 s must not read as 1 s.
    if ms < 60_000 && !ms.is_multiple_of(1000) {
        parts.push(format!("{} ms", ms % 1000));
    }
    parts.truncate(2);
    parts.join(" ")
}

fn held(facts: &Facts<'_>) -> String {
    let state = facts.endpoint.state;
    let since = facts.change.map_or_else(String::new, |change| {
        let why = change.why.as_deref().filter(|why| !why.is_empty());
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        format!(" since {} (by {}{why})", spoken(change.at, facts.now), change.by)
    });
    let made = match facts.delivery.attempts {
        0 => "nothing was sent yet".to_owned(),
        n => format!("{n}{} made", attempts_of(facts)),
    };
    let next = match state {
        EndpointState::Draining => format!(
            "it goes on when the endpoint is active again: `duehook endpoint activate {}`",
            facts.endpoint.id
        ),
        _ => "it will be dead, redrivable, as soon as the engine gets to it".to_owned(),
    };
    format!("held: endpoint is {state}{since}; {made}; {next}")
}

fn pending(facts: &Facts<'_>) -> String {
    let due = facts
        .delivery
        .due_at
        .map_or_else(|| "it has no due time".to_owned(), |due| due_text(due, facts.now));
    match facts.attempts.last().map(|attempt| &attempt.record) {
        Some(last) => {
            let wait = facts.delivery.wait.map_or_else(String::new, |wait| {
                let wait = wait_text(facts, wait);
                format!("; {wait}{}", asked_for_more(facts, last))
            });
            format!("{}{wait}; {due}", attempt_text(facts, last))
        }
        None => format!("no attempt yet; {due}"),
    }
}

fn due_text(due: Instant, now: Instant) -> String {
    let at = spoken(due, now);
    if due > now {
        format!("due {at}, in {}", human(due.since(now)))
    } else {
        format!(
            "due since {at}, for {}: it waits for a free place (pace, attempts in flight, or the server is down)",
            human(now.since(due))
        )
    }
}

fn sending(facts: &Facts<'_>) -> String {
    let of = of_max(facts);
    facts.attempts.last().map_or_else(
        || "an attempt is being sent".to_owned(),
        |last| {
            let record = &last.record;
            let since = spoken(record.started_at, facts.now);
            let timeout = facts.contract.map_or_else(String::new, |contract| {
                format!(
                    "; it ends after {} at the latest",
                    human(contract.endpoint.timeout)
                )
            });
            format!(
                "attempt {}{of} is being sent since {since}{timeout}",
                record.attempt_no
            )
        },
    )
}

fn succeeded(facts: &Facts<'_>) -> String {
    let Some(last) = facts.attempts.last().map(|attempt| &attempt.record) else {
        return "delivered".to_owned();
    };
    let end = last.ended_at.unwrap_or(last.started_at);
    let status = last
        .status
        .map_or_else(String::new, |status| format!(" answered {status}"));
    format!(
        "delivered: attempt {}{}{status} at {}, {} after the delivery was opened",
        last.attempt_no,
        of_max(facts),
        spoken(end, facts.now),
        human(end.since(facts.delivery.opened_at)),
    )
}

fn dead(facts: &Facts<'_>) -> String {
    let made = facts.delivery.attempts;
    let reason = facts.delivery.reason.as_deref().unwrap_or_default();
    let last = facts.attempts.last().map(|attempt| &attempt.record);
    let last = last.map_or_else(|| "nothing was sent".to_owned(), |last| attempt_text(facts, last));
    let (id, endpoint) = (facts.message.id, facts.endpoint.id);
    let again = format!("redrive with `duehook redrive {id} {endpoint}`");
    let activate = format!("activate it and {again}");
    let (why, next) = match DeadReason::from_word(reason) {
        Some(DeadReason::MaxAttempts) => (format!("{made}{} made", attempts_of(facts)), again),
        Some(DeadReason::MaxAge) => {
            let age = facts.contract.and_then(|contract| contract.retry.max_age);
            let age = age.map_or_else(|| "its longest age".to_owned(), human);
            (
                format!("another attempt would come later than {age} after it was opened"),
                again,
            )
        }
        Some(DeadReason::Terminal) => ("the contract does not retry this answer".to_owned(), again),
        Some(DeadReason::ScheduleEnd) => ("the schedule of the contract ends here".to_owned(), again),
        Some(DeadReason::EndpointDisabled) => ("the endpoint was disabled".to_owned(), activate),
        Some(DeadReason::EndpointDeleted) => (
            "the endpoint was deleted".to_owned(),
            "send the message to another endpoint".to_owned(),
        ),
        None => (reason.to_owned(), again),
    };
    format!("dead: {why}; {last}; {next}")
}

fn cancelled(facts: &Facts<'_>) -> String {
    let reason = facts
        .delivery
        .reason
        .as_deref()
        .filter(|reason| !reason.is_empty());
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let at = facts
        .delivery
        .closed_at
        .map_or_else(String::new, |at| format!(" at {}", spoken(at, facts.now)));
    format!("cancelled{at}{reason}; {} made", plural(facts.delivery.attempts))
}

/// `attempt 3 of 8 failed with 503 at 21:03:04`.
fn attempt_text(facts: &Facts<'_>, last: &AttemptRecord) -> String {
    let end = spoken(last.ended_at.unwrap_or(last.started_at), facts.now);
    let error = last.error.as_deref().filter(|error| !error.is_empty());
    let what = match last.outcome {
        None => "is being sent".to_owned(),
        Some(Outcome::Succeeded) => "succeeded".to_owned(),
        Some(Outcome::Failed) => match (last.status, error) {
            (Some(status), _) => format!("failed with {status}"),
            (None, Some(error)) => format!("failed ({error})"),
            (None, None) => "failed".to_owned(),
        },
        Some(Outcome::TimedOut) => "timed out".to_owned(),
        Some(Outcome::Refused) => {
            let error = error.map_or_else(String::new, |error| format!(" ({error})"));
            format!("was refused by our own guard{error}")
        }
        Some(Outcome::Interrupted) => "was interrupted by a crash and ended".to_owned(),
    };
    format!("attempt {}{} {what} at {end}", last.attempt_no, of_max(facts))
}

fn of_max(facts: &Facts<'_>) -> String {
    facts.contract.map_or_else(String::new, |contract| {
        format!(" of {}", contract.retry.max_attempts)
    })
}

fn attempts_of(facts: &Facts<'_>) -> String {
    format!("{} attempts", of_max(facts))
}

fn plural(attempts: u32) -> String {
    if attempts == 1 {
        "1 attempt".to_owned()
    } else {
        format!("{attempts} attempts")
    }
}

/// The law behind a wait, with its numbers: `exponential 30 s × 4² = 8 min`.
fn wait_text(facts: &Facts<'_>, wait: Duration) -> String {
    let Some(contract) = facts.contract else {
        return format!("waits {}", human(wait));
    };
    let retry = facts.delivery.attempts;
    let law = law_text(&contract.retry.backoff.law, retry);
    let result = human(wait);
    if contract.retry.jitter != Jitter::None {
        return format!("{law}, drawn with {} jitter: {result}", jitter_word(contract));
    }
    let capped = contract.retry.backoff.cap == Some(wait);
    let how = if capped { ", at the cap:" } else { " =" };
    if law.ends_with(&result) {
        law
    } else {
        format!("{law}{how} {result}")
    }
}

const fn jitter_word(contract: &Contract) -> &'static str {
    match contract.retry.jitter {
        Jitter::None => "no",
        Jitter::Full => "full",
        Jitter::Equal => "equal",
        Jitter::Proportional { .. } => "proportional",
        Jitter::Decorrelated => "decorrelated",
    }
}

/// The formula of retry n, not its result: that is in the records.
fn law_text(law: &Law, retry: u32) -> String {
    let Law::Simple(law) = law else {
        return format!("segments, retry {retry}");
    };
    let before = retry.saturating_sub(1);
    match law {
        SimpleLaw::Fixed { base } => format!("fixed {}", human(*base)),
        SimpleLaw::Linear { base, step } => format!("linear {} + {} × {before}", human(*base), human(*step)),
        SimpleLaw::Exponential { base, factor } => {
            let factor = decimal(factor.millionths());
            format!("exponential {} × {factor}{}", human(*base), superscript(before))
        }
        SimpleLaw::Polynomial { base, power } => {
            format!(
                "polynomial {} × {retry}{}",
                human(*base),
                superscript(u32::from(*power))
            )
        }
        SimpleLaw::Schedule { .. } => format!("schedule, entry {retry}"),
    }
}

/// Millionths as a decimal: `1.5`.
fn decimal(millionths: u64) -> String {
    let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{}", format!("{rest:06}").trim_end_matches('0'))
}

fn superscript(n: u32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |c: char| {
        c.to_digit(10)
            .and_then(|d| DIGITS.get(usize::try_from(d).ok()?))
            .copied()
    };
    n.to_string().chars().filter_map(digit).collect()
}

/// Said where the due time is later than wait and slack explain: the receiver asked for it.
fn asked_for_more(facts: &Facts<'_>, last: &AttemptRecord) -> String {
    let (Some(raw), Some(due), Some(wait), Some(contract)) = (
        last.retry_after.as_deref(),
        facts.delivery.due_at,
        facts.delivery.wait,
        facts.contract,
    ) else {
        return String::new();
    };
    let end = last.ended_at.unwrap_or(last.started_at);
    if due > end + wait + contract.retry.slack {
        format!(
            ", and the receiver asked for more (Retry-After: {})",
            crate::error::shorten(raw)
        )
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_their_two_largest_units() {
        for (ms, text) in [
            (0, "0 ms"),
            (250, "250 ms"),
            (1_500, "1 s 500 ms"),
            (30_000, "30 s"),
            (432_000, "7 min 12 s"),
            (7_680_000, "2 h 8 min"),
            (259_200_000, "3 d"),
            (90_061_000, "1 d 1 h"),
        ] {
            assert_eq!(human(Duration::from_ms(ms)), text);
        }
    }

    #[test]
    fn the_law_is_shown_with_its_numbers() {
        let contract = contract::preset("default").unwrap().contract().unwrap();
        assert_eq!(law_text(&contract.retry.backoff.law, 3), "exponential 30 s × 4²");
        assert_eq!(decimal(1_500_000), "1.5");
        assert_eq!(superscript(12), "¹²");
    }
}
