//! Counters of the API itself, for `/metrics` and the statistics route. Relaxed: they are read for people.

use std::sync::atomic::{AtomicU64, Ordering};

/// Since this process started.
#[derive(Default)]
pub(crate) struct Stats {
    /// Messages acknowledged with 202.
    pub(crate) accepted: AtomicU64,
    /// Calls answered, by class of status: 1xx to 5xx.
    answered: [AtomicU64; 5],
    /// Connections open now.
    pub(crate) connections: AtomicU64,
}

impl Stats {
    /// Counts an answer.
    pub(crate) fn answered(&self, status: http::StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.answered.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many answers of each class.
    pub(crate) fn by_class(&self) -> [(&'static str, u64); 5] {
        let read = |class: usize| self.answered[class].load(Ordering::Relaxed);
        [
            ("1xx", read(0)),
            ("2xx", read(1)),
            ("3xx", read(2)),
            ("4xx", read(3)),
            ("5xx", read(4)),
        ]
    }
}
