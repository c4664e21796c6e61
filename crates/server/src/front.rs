//! What stands before every route: the request id, the token, the trailing slash, the log line, and a wall that a
//! fault in a handler cannot pass.

use crate::auth::Caller;
use crate::error::{ApiError, shorten};
use crate::shared::Shared;
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::Router;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tower::ServiceExt;

const REQUEST_ID: &str = "x-request-id";
const LONGEST_REQUEST_ID: usize = 128;

/// Who calls, and under which request id: every handler that changes something logs both.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The token's owner.
    pub(crate) caller: Caller,
    /// The id, also in the answer's header.
    pub(crate) request_id: HeaderValue,
}

impl Call {
    /// The request id as a log field.
    pub(crate) fn id(&self) -> &str {
        self.request_id.to_str().unwrap_or_default()
    }

    /// The caller's name, as it stands in the ledger.
    pub(crate) fn by(&self) -> &str {
        &self.caller.name
    }
}

/// The routes and what stands before them.
pub(crate) struct Front {
    shared: Arc<Shared>,
    routes: Router,
    next_id: AtomicU64,
    /// Tells the ids of this process from another's.
    id_prefix: u64,
}

impl Front {
    pub(crate) fn new(shared: Arc<Shared>, routes: Router) -> Self {
        let start = shared.now().as_unix_ms();
        Self {
            shared,
            routes,
            next_id: AtomicU64::new(1),
            id_prefix: u64::try_from(start).unwrap_or(0),
        }
    }

    /// Answers one request, whatever happens within.
    pub(crate) async fn answer(&self, mut request: Request<Body>) -> Response<Body> {
        let request_id = self.request_id(request.headers());
        let (method, path) = (request.method().clone(), request.uri().clone());
        trim_slash(&mut request);
        let mut response = match self.admit(&mut request, &request_id) {
            Ok(()) => guarded(self.routes.clone().oneshot(request)).await,
            Err(error) => error.into_response(),
        };
        let status = response.status();
        response.headers_mut().insert(REQUEST_ID, request_id.clone());
        self.shared.stats.answered(status);
        let id = request_id.to_str().unwrap_or_default();
        let (status, path) = (status.as_u16(), shorten(path.path()));
        match status {
            500.. => tracing::error!(request_id = id, %method, path, status, "answered"),
            400.. => tracing::info!(request_id = id, %method, path, status, "refused"),
            _ => tracing::debug!(request_id = id, %method, path, status, "answered"),
        }
        response
    }

    /// Health and metrics need no token, everything else does.
    fn admit(&self, request: &mut Request<Body>, request_id: &HeaderValue) -> Result<(), ApiError> {
        let open = matches!(
            request.uri().path(),
            "/" | "/metrics" | "/health" | "/api/v1/health" | "/api/v1/health/ping"
        );
        if open {
            return Ok(());
        }
        let caller = self.shared.tokens.caller(request.headers())?;
        request.extensions_mut().insert(Call {
            caller,
            request_id: request_id.clone(),
        });
        Ok(())
    }

    /// The caller's own id when it is short and printable, else one of ours.
    fn request_id(&self, headers: &HeaderMap) -> HeaderValue {
        let given = headers.get(REQUEST_ID).filter(|value| {
            let bytes = value.as_bytes();
            (1..=LONGEST_REQUEST_ID).contains(&bytes.len())
                && bytes
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':'))
        });
        given.cloned().unwrap_or_else(|| {
            let n = self.next_id.fetch_add(1, Ordering::Relaxed);
            let text = format!("req_{:x}_{n:x}", self.id_prefix);
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("req_0"))
        })
    }
}

/// `/app/` is `/app`.
fn trim_slash(request: &mut Request<Body>) {
    let path = request.uri().path();
    if path.len() < 2 || !path.ends_with('/') {
        return;
    }
    let trimmed = path.trim_end_matches('/');
    let text = request
        .uri()
        .query()
        .map_or_else(|| trimmed.to_owned(), |query| format!("{trimmed}?{query}"));
    if let Ok(uri) = text.parse::<Uri>() {
        *request.uri_mut() = uri;
    }
}

/// A panic in a handler answers 500 and harms no other call.
async fn guarded<E>(answer: impl Future<Output = Result<Response<Body>, E>>) -> Response<Body> {
    let mut answer = std::pin::pin!(answer);
    let polled = std::future::poll_fn(|cx| {
        match std::panic::catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
            Ok(std::task::Poll::Pending) => std::task::Poll::Pending,
            Ok(std::task::Poll::Ready(done)) => std::task::Poll::Ready(done.ok()),
            Err(_) => std::task::Poll::Ready(None),
        }
    });
    polled.await.unwrap_or_else(|| {
        tracing::error!("a handler failed; this is a fault of the server");
        ApiError::coded(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            "a fault of the server; its log tells more under this request id",
        )
        .into_response()
    })
}
