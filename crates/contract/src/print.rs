//! A contract as a file again: complete, in the order of the spec, so that it can be edited and read back.

use crate::canonical::{anchor_word, direction_word, then_word};
use crate::model::{Contract, Jitter, Law, RetryAfter, Segment, SimpleLaw, StatusSet};
use crate::parse::LANGUAGE;
use crate::text::{write_range, write_ratio};
use crate::units::Duration;
use std::fmt::{Display, Write};

/// Lines of a TOML file. Writing into a String cannot fail, so that its result is let go.
struct Lines(String);

impl Lines {
    fn table(&mut self, name: &str) {
        let _ = write!(self.0, "\n[{name}]\n");
    }
    fn bare(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.0, "{key} = {value}");
    }
    fn text(&mut self, key: &str, value: impl Display) {
        // A JSON string is a TOML basic string, and knows how to escape.
        let _ = writeln!(self.0, "{key} = {}", serde_json::Value::String(value.to_string()));
    }
    fn texts(&mut self, key: &str, values: impl Iterator<Item = String>) {
        let all: Vec<_> = values.map(|value| format!("\"{value}\"")).collect();
        let _ = writeln!(self.0, "{key} = [{}]", all.join(", "));
    }
    fn limit(&mut self, key: &str, value: Option<Duration>, absent: &str) {
        match value {
            Some(value) => self.text(key, value),
            None => self.text(key, absent),
        }
    }
    fn statuses(&mut self, key: &str, set: &StatusSet) {
        self.texts(key, set.ranges().iter().map(|&range| write_range(range)));
    }
}

impl Contract {
    /// The contract as a complete file. Reading it gives the same contract back.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let Self {
            name,
            retry,
            outcome,
            endpoint,
        } = self;
        let mut out = Lines(String::new());
        out.bare("contract", LANGUAGE);
        out.text("name", name);
        out.table("retry");
        out.bare("max_attempts", retry.max_attempts);
        out.limit("max_age", retry.max_age, "none");
        out.text("anchor", anchor_word(retry.anchor));
        out.text("slack", retry.slack);
        out.text("late_after", retry.late_after);
        out.table("retry.backoff");
        match &retry.backoff.law {
            Law::Simple(law) => write_law(&mut out, law, true),
            Law::Segments(_) => out.text("law", "segments"),
        }
        out.limit("cap", retry.backoff.cap, "none");
        out.text("floor", retry.backoff.floor);
        if let Law::Segments(segments) = &retry.backoff.law {
            segments
                .iter()
                .for_each(|segment| write_segment(&mut out, segment));
        }
        out.table("retry.jitter");
        write_jitter(&mut out, retry.jitter);
        if retry.cap_after_jitter {
            out.bare("cap_after_jitter", true);
        }
        out.table("retry.retry_after");
        write_retry_after(&mut out, retry.retry_after);
        out.table("outcome");
        out.statuses("success", &outcome.success);
        out.statuses("terminal", &outcome.terminal);
        out.table("endpoint");
        out.text("min_gap", endpoint.min_gap);
        match endpoint.rate {
            Some(rate) => out.text("rate", rate),
            None => out.text("rate", "none"),
        }
        out.bare("in_flight", endpoint.in_flight);
        out.text("timeout", endpoint.timeout);
        out.limit("disable_after", endpoint.disable_after, "never");
        out.statuses("disable_on", &endpoint.disable_on);
        out.0
    }
}

fn write_segment(out: &mut Lines, segment: &Segment) {
    out.table("[retry.backoff.segment]");
    write_law(out, &segment.law, segment.count.is_none());
    if let Some(count) = segment.count {
        out.bare("count", count);
    }
}

/// `last` where nothing follows the law: a schedule then says what follows.
fn write_law(out: &mut Lines, law: &SimpleLaw, last: bool) {
    match law {
        SimpleLaw::Fixed { base } => {
            out.text("law", "fixed");
            out.text("base", base);
        }
        SimpleLaw::Linear { base, step } => {
            out.text("law", "linear");
            out.text("base", base);
            out.text("step", step);
        }
        SimpleLaw::Exponential { base, factor } => {
            out.text("law", "exponential");
            out.text("base", base);
            out.text("factor", factor);
        }
        SimpleLaw::Polynomial { base, power } => {
            out.text("law", "polynomial");
            out.text("base", base);
            out.bare("power", power);
        }
        SimpleLaw::Schedule { waits, then } => {
            out.text("law", "schedule");
            out.texts("waits", waits.iter().map(ToString::to_string));
            if last {
                out.text("then", then_word(*then));
            }
        }
    }
}

fn write_jitter(out: &mut Lines, jitter: Jitter) {
    match jitter {
        Jitter::None => out.text("kind", "none"),
        Jitter::Full => out.text("kind", "full"),
        Jitter::Equal => out.text("kind", "equal"),
        Jitter::Decorrelated => out.text("kind", "decorrelated"),
        Jitter::Proportional { ratio_ppm, direction } => {
            out.text("kind", "proportional");
            out.text("ratio", write_ratio(ratio_ppm));
            out.text("direction", direction_word(direction));
        }
    }
}

fn write_retry_after(out: &mut Lines, rule: RetryAfter) {
    match rule {
        RetryAfter::Ignore => out.text("rule", "ignore"),
        RetryAfter::Floor { max } => {
            out.text("rule", "floor");
            out.text("max", max);
        }
        RetryAfter::Replace { max } => {
            out.text("rule", "replace");
            out.text("max", max);
        }
        RetryAfter::Bounded { max, times } => {
            out.text("rule", "bounded");
            out.text("max", max);
            out.bare("times", times);
        }
    }
}
