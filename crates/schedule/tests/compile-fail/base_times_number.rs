//! The same with a bare number.
fn main() {
    let base = contract::Duration::from_secs(30);
    let _ = base * 3;
}
