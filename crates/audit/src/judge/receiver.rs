//! The receiver's own log: one JSON object a line (`duehook listen --log`). Other fields than those below are its own
//! affair.

use crate::facts::{FactsError, quoted, quoted_bytes};
use serde::Deserialize;
use std::io::BufRead;

/// A longer line was not written by a receiver.
const MAX_LINE_BYTES: usize = 1024 * 1024;
/// Beyond this a time is no time: the year 285 000.
const MAX_MS: f64 = 9e15;

/// One request as the receiver saw it, in whole microseconds of its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) line: u64,
    pub(super) attempt_id: String,
    pub(super) arrival_us: i64,
    pub(super) answered_us: Option<i64>,
}

#[derive(Deserialize)]
struct Line {
    attempt_id: Option<String>,
    arrival_ms: f64,
    #[serde(default)]
    answered_ms: Option<f64>,
}

/// Reads a log; `take` gets each request, with an empty attempt id where none was sent.
pub(super) fn read(
    name: &str,
    mut log: impl BufRead,
    mut take: impl FnMut(Seen) -> Result<(), FactsError>,
) -> Result<(), FactsError> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let mut limited = std::io::Read::take(&mut log, MAX_LINE_BYTES as u64 + 1);
        let read = limited
            .read_until(b'\n', &mut bytes)
            .map_err(|error| FactsError::io(name, error))?;
        if read == 0 {
            break;
        }
        if bytes.len() > MAX_LINE_BYTES {
            return Err(FactsError::new(
                name,
                Some(line),
                "a line of more than 1 MiB",
                "one JSON object a line",
            ));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        take(parse(name, line, &bytes)?)?;
    }
    Ok(())
}

fn parse(name: &str, line: u64, bytes: &[u8]) -> Result<Seen, FactsError> {
    let right =
        "an object with `attempt_id` (text or null), `arrival_ms` and `answered_ms` (Unix milliseconds)";
    let parsed: Line = serde_json::from_slice(bytes).map_err(|error| {
        FactsError::new(
            name,
            Some(line),
            format!("{} ({error})", quoted_bytes(bytes.trim_ascii())),
            right,
        )
    })?;
    let us = |ms: f64| {
        micros(ms)
            .ok_or_else(|| FactsError::new(name, Some(line), quoted(&ms.to_string()), "Unix milliseconds"))
    };
    Ok(Seen {
        line,
        attempt_id: parsed.attempt_id.unwrap_or_default(),
        arrival_us: us(parsed.arrival_ms)?,
        answered_us: parsed.answered_ms.map(us).transpose()?,
    })
}

#[allow(clippy::cast_possible_truncation)] // The range is checked, and the fraction of a microsecond is rounded.
fn micros(ms: f64) -> Option<i64> {
    ms.is_finite()
        .then_some(ms)
        .filter(|ms| ms.abs() < MAX_MS)
        .map(|ms| (ms * 1000.0).round() as i64)
}
