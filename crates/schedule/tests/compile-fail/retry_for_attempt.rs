//! Retry n is the wait after attempt n: an attempt's number is not a retry's.
fn law(retry: &contract::model::Retry) -> schedule::LawWait {
    schedule::law::wait(retry, contract::AttemptNo::new(3))
}
fn main() {}
