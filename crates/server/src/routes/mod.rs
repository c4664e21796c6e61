//! The table of routes. One file a resource; each handler reads, asks the store or the engine, and answers.

mod app;
mod attempt;
mod contract;
mod delivery;
mod endpoint;
mod endpoint_fields;
mod headers;
mod health;
mod message;
mod message_in;
mod metrics;
mod own_endpoint;
mod token;

use crate::error::ApiError;
use crate::shared::Shared;
use axum::Router;
use axum::routing::{get, post};
use http::{Method, StatusCode, Uri};
use std::sync::Arc;

/// Every route.
pub(crate) fn all(shared: Arc<Shared>) -> Router {
    Router::new()
        .nest("/api/v1", svix())
        .nest("/api/v1/duehook", own())
        .route("/health", get(health::detailed))
        .route("/metrics", get(metrics::text))
        .route("/", get(health::root))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(shared)
}

/// What Svix clients call.
fn svix() -> Router<Arc<Shared>> {
    Router::new()
        .route("/health", get(health::up))
        .route("/health/ping", get(health::up))
        .route("/app", get(app::list).post(app::create))
        .route(
            "/app/{app}",
            get(app::read).put(app::put).patch(app::patch).delete(app::delete),
        )
        .route("/app/{app}/endpoint", get(endpoint::list).post(endpoint::create))
        .route(
            "/app/{app}/endpoint/{endpoint}",
            get(endpoint::read)
                .put(endpoint::put)
                .patch(endpoint::patch)
                .delete(endpoint::delete),
        )
        .route(
            "/app/{app}/endpoint/{endpoint}/headers",
            get(headers::read).put(headers::put).patch(headers::patch),
        )
        .route("/app/{app}/endpoint/{endpoint}/secret", get(endpoint::secret))
        .route(
            "/app/{app}/endpoint/{endpoint}/secret/rotate",
            post(endpoint::rotate),
        )
        .route("/app/{app}/msg", get(message::list).post(message::create))
        .route("/app/{app}/msg/{msg}", get(message::read))
        .route("/app/{app}/attempt/msg/{msg}", get(attempt::of_message))
        .route(
            "/app/{app}/attempt/endpoint/{endpoint}",
            get(attempt::of_endpoint),
        )
        .route("/app/{app}/msg/{msg}/attempt", get(attempt::of_message))
        .route("/app/{app}/msg/{msg}/attempt/{attempt}", get(attempt::read))
        .route("/app/{app}/msg/{msg}/endpoint", get(delivery::list))
        .route(
            "/app/{app}/msg/{msg}/endpoint/{endpoint}/resend",
            post(delivery::resend),
        )
}

/// What Svix has no word for.
fn own() -> Router<Arc<Shared>> {
    Router::new()
        .route(
            "/contract",
            get(contract::read_organisation)
                .put(contract::put_organisation)
                .delete(contract::delete_organisation),
        )
        .route(
            "/app/{app}/contract",
            get(contract::read_app)
                .put(contract::put_app)
                .delete(contract::delete_app),
        )
        .route(
            "/app/{app}/endpoint/{endpoint}/contract",
            get(contract::read_endpoint)
                .put(contract::put_endpoint)
                .delete(contract::delete_endpoint),
        )
        .route("/app/{app}/msg/{msg}/explain", get(delivery::explain_in_app))
        .route("/app/{app}/msg/{msg}/redrive", post(delivery::redrive_in_app))
        .route(
            "/app/{app}/endpoint/{endpoint}/redrive",
            post(delivery::redrive_endpoint_in_app),
        )
        .route("/msg/{msg}/explain", get(delivery::explain))
        .route("/msg/{msg}/redrive", post(delivery::redrive))
        .route(
            "/endpoint/{endpoint}",
            get(own_endpoint::read).patch(own_endpoint::patch),
        )
        .route("/endpoint/{endpoint}/redrive", post(delivery::redrive_endpoint))
        .route("/token", get(token::list).post(token::create))
        .route("/token/{token}", axum::routing::delete(token::revoke))
        .route("/stats", get(health::stats))
        .route("/audit", get(health::verdict))
}

async fn unknown(method: Method, uri: Uri) -> ApiError {
    let path = crate::error::shorten(uri.path());
    ApiError::coded(
        StatusCode::NOT_FOUND,
        "not_found",
        format!("there is no route `{method} {path}`; the API lies under /api/v1"),
    )
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path = crate::error::shorten(uri.path());
    ApiError::coded(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("`{path}` does not take {method}; the `Allow` header lists what it takes"),
    )
}
