//! Is it up, how is it, and what did the audit find.

use crate::Verdict;
use crate::error::{ApiError, empty, json};
use crate::shared::Shared;
use axum::body::Body;
use axum::extract::State;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::Ordering;

type Answer = Result<Response<Body>, ApiError>;

/// For those who open the address in a browser.
pub(super) async fn root() -> Response<Body> {
    let mut response = Response::new(Body::from(
        "Duehook: outbound webhooks. The API lies under /api/v1; health under /health.\n",
    ));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// 204 while the process answers.
pub(super) async fn up() -> Response<Body> {
    empty(StatusCode::NO_CONTENT)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HealthOut {
    status: &'static str,
    store: &'static str,
    audit: &'static str,
    version: &'static str,
}

/// 200 while the store answers and the audit found nothing; 503 otherwise. What was not judged yet is not clean (I7):
/// it is said, and does not make the server unhealthy.
pub(super) async fn detailed(State(shared): State<Arc<Shared>>) -> Response<Body> {
    let store = shared.store.organisation_contract().await.is_ok();
    let verdict = shared.verdict.borrow().clone();
    let (audit, sound) = match verdict.as_deref() {
        None => ("not judged yet", true),
        Some(Verdict {
            unjudged: Some(_), ..
        }) => ("cannot judge", true),
        Some(Verdict { clean: true, .. }) => ("clean", true),
        Some(_) => ("breaches found", false),
    };
    let good = store && sound;
    let status = if good {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let out = HealthOut {
        status: if good { "ok" } else { "degraded" },
        store: if store { "ok" } else { "unavailable" },
        audit,
        version: env!("CARGO_PKG_VERSION"),
    };
    json(status, &out)
}

#[derive(Serialize)]
struct StatsOut {
    deliveries: DeliveriesOut,
    api: ApiOut,
}

#[derive(Serialize)]
struct DeliveriesOut {
    pending: u64,
    held: u64,
    sending: u64,
    succeeded: u64,
    dead: u64,
    cancelled: u64,
}

#[derive(Serialize)]
struct ApiOut {
    accepted: u64,
    connections: u64,
}

/// How many deliveries are in which state.
pub(super) async fn stats(State(shared): State<Arc<Shared>>) -> Answer {
    let counts = shared.store.counts().await?;
    let out = StatsOut {
        deliveries: DeliveriesOut {
            pending: counts.pending,
            held: counts.held,
            sending: counts.sending,
            succeeded: counts.succeeded,
            dead: counts.dead,
            cancelled: counts.cancelled,
        },
        api: ApiOut {
            accepted: shared.stats.accepted.load(Ordering::Relaxed),
            connections: shared.stats.connections.load(Ordering::Relaxed),
        },
    };
    Ok(json(StatusCode::OK, &out))
}

/// The audit's last word.
pub(super) async fn verdict(State(shared): State<Arc<Shared>>) -> Answer {
    let verdict = shared.verdict.borrow().clone();
    match verdict {
        Some(verdict) => Ok(json(StatusCode::OK, &*verdict)),
        None => Err(ApiError::coded(
            StatusCode::NOT_FOUND,
            "not_found",
            "the audit has not judged yet; ask again in a minute, or run `duehook audit`",
        )),
    }
}
