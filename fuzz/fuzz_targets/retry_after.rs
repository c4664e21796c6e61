//! A Retry-After header: absent or a wait, never a panic; no rule lets a wait pass its `max`; and the auditor, which
//! has a reader and a rule of its own, says the same.
#![no_main]

use contract::{Duration, Instant, model::RetryAfter};
use libfuzzer_sys::fuzz_target;
use schedule::retry_after::{combine, parse};

fuzz_target!(|input: (&str, i64, u64, u64, u64, u32)| {
    let (header, ended, law, drawn, max, times) = input;
    let asked = parse(header, Instant::from_unix_ms(ended));
    assert_eq!(
        asked,
        audit::waits::parse_retry_after(header, Instant::from_unix_ms(ended))
    );
    let (law, drawn, max) = (
        Duration::from_ms(law),
        Duration::from_ms(drawn),
        Duration::from_ms(max),
    );
    assert_eq!(combine(RetryAfter::Ignore, law, drawn, asked), drawn);
    let floor = combine(RetryAfter::Floor { max }, law, drawn, asked);
    assert!(floor >= drawn && floor <= drawn.max(max));
    let replaced = combine(RetryAfter::Replace { max }, law, drawn, asked);
    assert!(asked.is_none() || replaced <= max);
    let bounded = combine(RetryAfter::Bounded { max, times }, law, drawn, asked);
    assert!(asked.is_none() || bounded >= law);
    for rule in [
        RetryAfter::Floor { max },
        RetryAfter::Replace { max },
        RetryAfter::Bounded { max, times },
    ] {
        assert_eq!(
            combine(rule, law, drawn, asked),
            audit::waits::combine(rule, law, drawn, asked)
        );
    }
});
