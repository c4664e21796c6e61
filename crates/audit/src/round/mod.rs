//! The two file rounds, derived again from contract and facts (spec/retry-round.md, spec/queue-round.md), with readers of
//! their own: a judge is worth something only as long as it shares nothing with what it judges (I8).

mod chunks;
mod lines;
pub mod queue;
pub mod retry;
mod table;
mod unique;

/// A sum or product cut to 64 bits: integers saturate, nothing wraps.
fn cut(wide: i128) -> i64 {
    i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
}
