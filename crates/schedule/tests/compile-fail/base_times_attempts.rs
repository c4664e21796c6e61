//! The classic: the base multiplied by the attempts, which is neither exponential nor any law of the contract.
fn main() {
    let base = contract::Duration::from_secs(30);
    let attempts = contract::AttemptNo::new(3);
    let _ = base * attempts;
}
