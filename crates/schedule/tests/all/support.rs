//! A contract to change, and short names for units.

use contract::{Contract, Duration, Instant, RetryNo};

/// The worked contract of spec/contract.md, less its jitter and limits of pace.
const WORKED: &str = r#"
contract = 1
name = "worked"
[retry]
max_attempts = 8
max_age = "3d"
anchor = "end"
slack = "0s"
late_after = "30s"
[retry.backoff]
law = "exponential"
base = "30s"
factor = "4"
cap = "10h"
floor = "0s"
[retry.jitter]
kind = "none"
[retry.retry_after]
rule = "floor"
max = "24h"
[outcome]
success = ["200-299"]
terminal = ["410"]
[endpoint]
min_gap = "0s"
rate = "none"
in_flight = 8
timeout = "15s"
disable_after = "5d"
disable_on = ["410"]
"#;

const LAW: &str = "law = \"exponential\"\nbase = \"30s\"\nfactor = \"4\"\ncap = \"10h\"\nfloor = \"0s\"";

/// The worked contract with some lines replaced. A line that is not there is a fault of the test.
pub(crate) fn worked(changes: &[(&str, &str)]) -> Contract {
    let text = changes.iter().fold(WORKED.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    contract::parse(&text, "worked.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// The worked contract with another `[retry.backoff]`.
pub(crate) fn with_law(law: &str) -> Contract {
    worked(&[
        (LAW, law),
        ("max_attempts = 8", "max_attempts = 10000"),
        ("\"3d\"", "\"none\""),
    ])
}

/// The first waits of its law, in milliseconds; `None` where the schedule has stopped.
pub(crate) fn waits(contract: &Contract, count: u32) -> Vec<Option<u64>> {
    (1..=count)
        .map(|n| law_wait(contract, n).map(Duration::as_ms))
        .collect()
}

pub(crate) fn law_wait(contract: &Contract, n: u32) -> Option<Duration> {
    schedule::law::wait(&contract.retry, RetryNo::new(n)).wait()
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_ms(ms)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn at(ms: i64) -> Instant {
    Instant::from_unix_ms(ms)
}
