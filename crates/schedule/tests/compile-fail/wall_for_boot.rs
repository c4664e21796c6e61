//! A reading of one clock is not one of the other.
fn main() {
    let _ = schedule::Moment { wall: contract::BootInstant::from_ms(1), boot: contract::BootInstant::from_ms(1) };
}
