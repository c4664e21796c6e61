//! Turns: threads that work out of order, and hand in in order.

use std::sync::{Condvar, Mutex, PoisonError};

/// A thing that is visited by ticket 0, 1, 2, … in this order, whatever thread holds the ticket.
pub(crate) struct Turns<T> {
    inner: Mutex<Inner<T>>,
    moved: Condvar,
}

struct Inner<T> {
    next: u64,
    closed: bool,
    value: T,
}

impl<T> Turns<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            inner: Mutex::new(Inner {
                next: 0,
                closed: false,
                value,
            }),
            moved: Condvar::new(),
        }
    }

    /// Waits for this ticket's turn and visits. `None` when the turns were closed: a thread died, and with it a turn.
    pub(crate) fn visit<R>(&self, ticket: u64, visit: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        while inner.next != ticket && !inner.closed {
            inner = self.moved.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        if inner.closed {
            return None;
        }
        let result = visit(&mut inner.value);
        inner.next += 1;
        self.moved.notify_all();
        Some(result)
    }

    /// Lets nobody wait any more.
    pub(crate) fn close(&self) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.moved.notify_all();
    }

    pub(crate) fn into_inner(self) -> T {
        self.inner
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .value
    }
}
