//! The small texts within a contract: durations, factors, ratios, rates, statuses. Total functions over bounded input.

use crate::error::{ValueError, quoted};
use crate::model::{Factor, Rate, StatusSet};
use crate::units::Duration;

/// Names, durations and the like are short; a longer text is nonsense and is not scanned.
const MAX_TEXT: usize = 200;
/// More starts or attempts than any sender makes; it keeps every sum of counts far from overflow.
pub(crate) const MAX_COUNT: u32 = 1_000_000;
const MILLION: u64 = 1_000_000;
/// Largest first: a duration is written in falling units.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// A duration with units, as `250ms`, `5s`, `1m30s`, `10h`, `3d`; at most ten years (`3650d`).
///
/// # Errors
/// No unit, an unknown unit, units that do not fall (`30s1m`), a fraction, a sign, or more than ten years.
pub fn parse_duration(text: &str) -> Result<Duration, ValueError> {
    let wrong = |why: &str, right: &str| Err(ValueError::new(format!("{}, {why}", quoted(text)), right));
    let falling = "write whole numbers with falling units, as in \"1m30s\", \"250ms\" or \"3d\"";
    if text.is_empty() || text.len() > MAX_TEXT {
        return wrong("which is no duration", falling);
    }
    if text.starts_with('-') {
        return wrong(
            "a negative duration",
            "write a duration of zero or more, as in \"0s\"",
        );
    }
    let (mut rest, mut total, mut units) = (text, 0u64, UNITS.as_slice());
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let letters = after.bytes().take_while(u8::is_ascii_lowercase).count();
        let (unit, after) = after.split_at(letters);
        if digits == 0 || after.starts_with('.') {
            return wrong("which is no duration", falling);
        }
        if letters == 0 {
            let right = format!("write the unit: \"{text}s\" or \"{text}ms\"");
            return wrong("a number without a unit", &right);
        }
        let Some(place) = units.iter().position(|(name, _)| *name == unit) else {
            let known = UNITS.iter().any(|(name, _)| *name == unit);
            let why = if known {
                "whose units do not fall"
            } else {
                "whose unit is unknown"
            };
            return wrong(
                why,
                "the units are d, h, m, s and ms, in that order, each at most once",
            );
        };
        let ms = number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(units[place].1));
        total = match ms
            .and_then(|ms| total.checked_add(ms))
            .filter(|&t| t <= Duration::TEN_YEARS.as_ms())
        {
            Some(total) => total,
            None => return wrong("more than ten years", "write at most \"3650d\""),
        };
        units = &units[place + 1..];
        rest = after;
    }
    Ok(Duration::from_ms(total))
}

/// A decimal with at most `places` places, in units of 10^-places. No sign, no exponent.
fn parse_decimal(text: &str, places: u32) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |t: &str| !t.is_empty() && t.len() <= 12 && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > usize::try_from(places).ok()? {
        return None;
    }
    let missing = places - u32::try_from(part.len()).ok()?;
    let part = part
        .parse::<u64>()
        .ok()?
        .checked_mul(10u64.checked_pow(missing)?)?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(10u64.checked_pow(places)?)?
        .checked_add(part)
}

/// A decimal in units of 10^-places, without idle zeros.
fn write_decimal(value: u64, places: u32) -> String {
    let one = 10u64.pow(places);
    let (whole, part) = (value / one, value % one);
    if part == 0 {
        return whole.to_string();
    }
    let width = usize::try_from(places).unwrap_or(0);
    format!("{whole}.{part:0width$}").trim_end_matches('0').to_owned()
}

/// A factor: a decimal from 1 to 100 with at most six places.
///
/// # Errors
/// Anything else.
pub fn parse_factor(text: &str) -> Result<Factor, ValueError> {
    match parse_decimal(text, 6) {
        Some(ppm @ 1_000_000..=100_000_000) => Ok(Factor(ppm)),
        Some(_) => Err(ValueError::new(
            format!("{}, a factor out of range", quoted(text)),
            "write a factor from \"1\" to \"100\"",
        )),
        None => Err(ValueError::new(
            format!("{}, which is no factor", quoted(text)),
            "write a decimal from 1 to 100 with at most six places, as in \"4\" or \"1.5\"",
        )),
    }
}

impl std::fmt::Display for Factor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&write_decimal(self.0, 6))
    }
}

/// A ratio: a percentage above 0% and up to 100%, at most four places; in millionths.
///
/// # Errors
/// Anything else.
pub fn parse_ratio(text: &str) -> Result<u32, ValueError> {
    let ppm = text.strip_suffix('%').and_then(|number| parse_decimal(number, 4));
    match ppm
        .filter(|ppm| (1..=MILLION).contains(ppm))
        .and_then(|ppm| u32::try_from(ppm).ok())
    {
        Some(ppm) => Ok(ppm),
        None => Err(ValueError::new(
            format!("{}, which is no ratio", quoted(text)),
            "write a percentage above 0% and up to 100%, as in \"20%\" or \"12.5%\"",
        )),
    }
}

/// The percentage of so many millionths.
pub(crate) fn write_ratio(ppm: u32) -> String {
    format!("{}%", write_decimal(u64::from(ppm), 4))
}

/// A rate: `50/1s` is at most 50 starts in any window of one second; `none` is no limit.
///
/// # Errors
/// Anything else; no starts; a window of no length.
pub fn parse_rate(text: &str) -> Result<Option<Rate>, ValueError> {
    if text == "none" {
        return Ok(None);
    }
    let right = "write starts and a window, as in \"50/1s\", or \"none\"";
    let wrong = |why: &str| ValueError::new(format!("{}, {why}", quoted(text)), right);
    let (starts, window) = text.split_once('/').ok_or_else(|| wrong("which is no rate"))?;
    let starts = Some(starts)
        .filter(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|s| s.parse::<u32>().ok())
        .filter(|n| (1..=MAX_COUNT).contains(n))
        .ok_or_else(|| wrong("whose starts are not a number from 1 to 1000000"))?;
    let window = parse_duration(window).map_err(|_| wrong("whose window is no duration"))?;
    if window.is_zero() {
        return Err(wrong("whose window has no length"));
    }
    Ok(Some(Rate { starts, window }))
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.starts, self.window)
    }
}

/// One entry of a list of statuses: `410` or `200-299`.
///
/// # Errors
/// Anything else; beyond 100 to 599; the ends the wrong way round.
pub fn parse_statuses(text: &str) -> Result<(u16, u16), ValueError> {
    let wrong = |why: &str| {
        let right = "write a status or a range from 100 to 599, as in \"410\" or \"200-299\"";
        ValueError::new(format!("{}, {why}", quoted(text)), right)
    };
    let one = |t: &str| match t.len() {
        3 if t.bytes().all(|b| b.is_ascii_digit()) => {
            t.parse::<u16>().ok().filter(|s| (100..=599).contains(s))
        }
        _ => None,
    };
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (Some(low), Some(high)) = (one(low), one(high)) else {
        return Err(wrong("which is no status"));
    };
    if low > high {
        Err(wrong("a range that runs backwards"))
    } else {
        Ok((low, high))
    }
}

impl StatusSet {
    /// A set of these ranges, sorted; ranges that touch become one, so that a set has one form.
    ///
    /// # Errors
    /// Two ranges that overlap: a status named twice is a slip, and which one was meant is not guessed.
    pub fn from_ranges(mut ranges: Vec<(u16, u16)>) -> Result<Self, ValueError> {
        ranges.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1 => {
                    let text = write_range((low, high));
                    let found = format!("`{text}`, which overlaps `{}`", write_range(*last));
                    return Err(ValueError::new(found, "name each status once"));
                }
                Some(last) if low == last.1 + 1 => last.1 = high,
                _ => merged.push((low, high)),
            }
        }
        Ok(Self(merged))
    }
}

/// A range as the contract writes it.
pub(crate) fn write_range((low, high): (u16, u16)) -> String {
    if low == high {
        low.to_string()
    } else {
        format!("{low}-{high}")
    }
}

impl std::fmt::Display for StatusSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<_> = self.0.iter().map(|&range| write_range(range)).collect();
        f.pad(&all.join(", "))
    }
}

/// A name: one line of 1 to 200 bytes.
pub(crate) fn parse_name(text: &str) -> Result<String, ValueError> {
    if text.is_empty() || text.len() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(ValueError::new(
            format!("{}, which is no name", quoted(text)),
            "write one line of 1 to 200 bytes, as in \"acme-webhooks\"",
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_with_falling_units() {
        for (text, ms) in [
            ("0s", 0),
            ("250ms", 250),
            ("5s", 5000),
            ("1m30s", 90_000),
            ("10h", 36_000_000),
            ("3d", 259_200_000),
            ("2h8m", 7_680_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("90s", 90_000),
            ("3650d", 315_360_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_ms(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_reason() {
        for (text, why) in [
            ("5", "without a unit"),
            ("", "no duration"),
            ("s", "no duration"),
            ("1.5s", "no duration"),
            ("-5s", "negative"),
            ("30s1m", "do not fall"),
            ("1s1s", "do not fall"),
            ("5 s", "without a unit"),
            ("5sec", "unit is unknown"),
            ("5S", "without a unit"),
            ("3651d", "ten years"),
            ("99999999999999999999s", "ten years"),
            ("٣s", "no duration"),
        ] {
            let error = parse_duration(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(
            parse_duration(&"1".repeat(1000))
                .expect_err("long")
                .to_string()
                .len()
                < 300
        );
    }

    #[test]
    fn a_factor_has_six_places_and_lies_from_1_to_100() {
        for (text, ppm) in [
            ("1", 1_000_000),
            ("4", 4_000_000),
            ("1.5", 1_500_000),
            ("100", 100_000_000),
            ("1.000001", 1_000_001),
        ] {
            let factor = parse_factor(text).expect(text);
            assert_eq!(factor.millionths(), ppm);
            assert_eq!(factor.to_string(), text);
        }
        for text in [
            "0.999999",
            "100.000001",
            "0",
            "-2",
            "1.0000001",
            "2x",
            ".5",
            "2.",
            "1e1",
            "",
            "+2",
        ] {
            assert!(parse_factor(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_ratio_is_a_percentage_in_millionths() {
        for (text, ppm) in [
            ("20%", 200_000),
            ("12.5%", 125_000),
            ("100%", 1_000_000),
            ("0.0001%", 1),
        ] {
            assert_eq!(parse_ratio(text), Ok(ppm));
            assert_eq!(write_ratio(ppm), text);
        }
        for text in ["0%", "100.0001%", "20", "0.2", "%", "-5%"] {
            assert!(parse_ratio(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_is_starts_and_a_window() {
        let rate = parse_rate("50/1s").expect("a rate").expect("a limit");
        assert_eq!(
            (rate.starts, rate.window, rate.to_string().as_str()),
            (50, Duration::from_secs(1), "50/1s")
        );
        assert_eq!(parse_rate("none"), Ok(None));
        for text in [
            "0/1s",
            "50",
            "50/0s",
            "50/1",
            "/1s",
            "50/",
            "-1/1s",
            "1000001/1s",
            "unlimited",
        ] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_set_of_statuses_has_one_form() {
        let set = |texts: &[&str]| {
            StatusSet::from_ranges(texts.iter().map(|t| parse_statuses(t).expect(t)).collect())
        };
        assert_eq!(
            set(&["410", "200-204", "205-299"]).expect("a set").ranges(),
            [(200, 299), (410, 410)]
        );
        assert!(set(&["200-299", "204"]).is_err());
        for text in ["99", "600", "2xx", "299-200", "200-", "", "0200", "20-29"] {
            assert!(parse_statuses(text).is_err(), "{text}");
        }
    }
}
