//! The bodies a receiver can answer with: whole, drop by drop, or without an end.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Interval, interval};

/// Slow enough that no sender should wait for the end.
const DROP_EVERY: Duration = Duration::from_millis(200);
const ENDLESS_CHUNK: &[u8] = &[b'x'; 16 * 1024];

/// The body of an answer.
pub(super) enum AnswerBody {
    /// All at once.
    Whole(Option<Bytes>),
    /// A byte at a time, for ever.
    Drip(Interval),
    /// As fast as it is read, for ever.
    Endless,
}

impl AnswerBody {
    pub(super) const fn whole(text: &'static str) -> Self {
        Self::Whole(Some(Bytes::from_static(text.as_bytes())))
    }

    pub(super) fn drip() -> Self {
        Self::Drip(interval(DROP_EVERY))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(body) => Poll::Ready(body.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Drip(interval) => interval
                .poll_tick(cx)
                .map(|_| Some(Ok(Frame::data(Bytes::from_static(b"."))))),
            Self::Endless => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(ENDLESS_CHUNK))))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Drip(_) | Self::Endless => SizeHint::default(),
        }
    }
}
