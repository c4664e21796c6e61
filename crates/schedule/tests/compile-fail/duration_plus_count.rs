//! A count is no time.
fn main() {
    let _ = contract::Duration::from_secs(30) + contract::AttemptNo::new(3);
}
