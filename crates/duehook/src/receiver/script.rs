//! What a receiver answers: `500,500,200` answers the first two requests of a message with 500 and all later ones
//! with 200. Besides statuses: `hang`, `drip`, `endless`, `close`; and options, as in `503:retry-after=2:after=150ms`.

use contract::{Duration, parse_duration};
use hyper::StatusCode;
use std::str::FromStr;

/// A script has as many turns as a person types.
const MAX_TURNS: usize = 10_000;

/// What a receiver answers, request by request of one message; the last answer repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    first: Vec<Answer>,
    last: Answer,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// What kind.
    pub(crate) kind: Kind,
    /// How long the receiver thinks before it answers.
    pub(crate) delay: Duration,
    /// The Retry-After header.
    pub(crate) retry_after: Option<String>,
    /// As it was written.
    pub(crate) text: String,
}

/// The kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A status and a short body.
    Status(StatusCode),
    /// Nothing, for ever.
    Hang,
    /// 200 and a body that comes byte by byte, for ever.
    Drip,
    /// 200 and a body without end.
    Endless,
    /// The connection is closed without an answer.
    Close,
}

/// Why a text is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no answer: {right}")]
pub(crate) struct ScriptError {
    found: String,
    right: &'static str,
}

const RIGHT: &str = "write statuses from 200 to 599, `hang`, `drip`, `endless` or `close`, separated by commas, \
each with options as in `503:retry-after=2` or `200:after=150ms`";

impl Script {
    /// The answer to the request that came after `earlier` others of its message.
    pub(crate) fn answer(&self, earlier: usize) -> &Answer {
        self.first.get(earlier).unwrap_or(&self.last)
    }
}

impl Answer {
    /// The status that leaves with it.
    pub(crate) const fn status(&self) -> StatusCode {
        match self.kind {
            Kind::Status(status) => status,
            Kind::Hang | Kind::Drip | Kind::Endless | Kind::Close => StatusCode::OK,
        }
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut first = text
            .split(',')
            .take(MAX_TURNS)
            .map(str::parse)
            .collect::<Result<Vec<Answer>, _>>()?;
        let last = first.pop().ok_or(ScriptError {
            found: text.to_owned(),
            right: RIGHT,
        })?;
        Ok(Self { first, last })
    }
}

impl FromStr for Answer {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let text = text.trim();
        let wrong = |right| ScriptError {
            found: text.chars().take(60).collect(),
            right,
        };
        let mut parts = text.split(':');
        let kind = match parts.next().unwrap_or_default() {
            "hang" => Kind::Hang,
            "drip" => Kind::Drip,
            "endless" => Kind::Endless,
            "close" => Kind::Close,
            status => {
                let status = status.parse::<u16>().ok().filter(|s| (200..=599).contains(s));
                let status = status.and_then(|s| StatusCode::from_u16(s).ok());
                Kind::Status(status.ok_or_else(|| wrong(RIGHT))?)
            }
        };
        let mut answer = Self {
            kind,
            delay: Duration::ZERO,
            retry_after: None,
            text: text.to_owned(),
        };
        // A date holds colons, so that Retry-After takes the rest of the text.
        while let Some(option) = parts.next() {
            match option.split_once('=') {
                Some(("after", delay)) => {
                    answer.delay = parse_duration(delay)
                        .map_err(|_| wrong("`after=` takes a duration, as in `after=150ms`"))?;
                }
                Some(("retry-after", value)) => {
                    let rest: Vec<_> = std::iter::once(value).chain(parts.by_ref()).collect();
                    let (value, delay) = split_delay(&rest);
                    answer.retry_after = Some(value);
                    if let Some(delay) = delay {
                        answer.delay = parse_duration(delay)
                            .map_err(|_| wrong("`after=` takes a duration, as in `after=150ms`"))?;
                    }
                }
                _ => return Err(wrong(RIGHT)),
            }
        }
        Ok(answer)
    }
}

/// The Retry-After value and, if the last part is one, the delay behind it.
fn split_delay<'a>(parts: &[&'a str]) -> (String, Option<&'a str>) {
    match parts.split_last() {
        Some((last, before)) if !before.is_empty() && last.starts_with("after=") => {
            (before.join(":"), last.strip_prefix("after="))
        }
        _ => (parts.join(":"), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_repeats() {
        let script: Script = "500, 503,200".parse().expect("a script");
        let statuses: Vec<_> = (0..5).map(|n| script.answer(n).status().as_u16()).collect();
        assert_eq!(statuses, [500, 503, 200, 200, 200]);
    }

    #[test]
    fn options_are_read() {
        let answer: Answer = "503:retry-after=2:after=150ms".parse().expect("an answer");
        assert_eq!(answer.retry_after.as_deref(), Some("2"));
        assert_eq!(answer.delay, Duration::from_ms(150));
        let dated: Answer = "429:retry-after=Fri, 31 Dec 2027 23:59:59 GMT"
            .parse()
            .expect("an answer");
        assert_eq!(
            dated.retry_after.as_deref(),
            Some("Fri, 31 Dec 2027 23:59:59 GMT")
        );
        let answer: Answer = "hang:after=1s".parse().expect("an answer");
        assert_eq!((answer.kind, answer.delay), (Kind::Hang, Duration::from_secs(1)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "500,",
            "99",
            "600",
            "100",
            "abc",
            "200:later=1s",
            "200:after=5",
            "200:after",
        ] {
            let error = text.parse::<Script>().expect_err(text).to_string();
            assert!(error.contains("is no answer"), "{error}");
        }
    }
}
