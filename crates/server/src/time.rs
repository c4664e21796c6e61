//! Moments as text: RFC 3339 in UTC with milliseconds, as Svix clients read them; and a shorter form for sentences.

use contract::Instant;
use serde::{Serialize, Serializer};

/// `2026-01-31T12:00:00.123Z`.
#[must_use]
pub fn rfc3339(at: Instant) -> String {
    format!("{:.3}", timestamp(at))
}

/// `2026-01-31 12:00:00 UTC`; on the day of `now` the time alone: `12:00:00`.
#[must_use]
pub fn spoken(at: Instant, now: Instant) -> String {
    let text = rfc3339(at);
    let (date, time) = (&text[..10], &text[11..19]);
    if rfc3339(now).starts_with(date) {
        time.to_owned()
    } else {
        format!("{date} {time} UTC")
    }
}

fn timestamp(at: Instant) -> jiff::Timestamp {
    // Beyond the years that have a text form, the nearest one that has.
    jiff::Timestamp::from_millisecond(at.as_unix_ms()).unwrap_or(if at.as_unix_ms() < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    })
}

/// A moment in a JSON body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Instant);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.3}", timestamp(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_clients_read_it() {
        let at = Instant::from_unix_ms(1_614_265_330_007);
        assert_eq!(rfc3339(at), "2021-02-25T15:02:10.007Z");
        assert_eq!(rfc3339(Instant::from_unix_ms(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(spoken(at, at), "15:02:10");
        assert_eq!(spoken(at, Instant::from_unix_ms(0)), "2021-02-25 15:02:10 UTC");
        assert!(rfc3339(Instant::MAX).starts_with("9999-"));
    }
}
