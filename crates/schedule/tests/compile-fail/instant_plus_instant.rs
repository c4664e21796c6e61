//! Two moments do not add up.
fn main() {
    let _ = contract::Instant::from_unix_ms(1) + contract::Instant::from_unix_ms(2);
}
