//! Endpoints of an application, their state and their signing secrets.

use super::app::uid_of_path;
use super::endpoint_fields::{Asked, partial, secret as read_secret, whole};
use crate::error::{ApiError, empty, json};
use crate::extract::{Ids, Raw};
use crate::fields::{Fields, object};
use crate::front::Call;
use crate::out::EndpointOut;
use crate::page::Listing;
use crate::query::Query;
use crate::shared::Shared;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use contract::ledger::EndpointState;
use contract::{Duration, EndpointId};
use http::{Response, StatusCode};
use serde::Serialize;
use std::sync::Arc;
use store::{AppKey, Endpoint, Secret};

type Answer = Result<Response<Body>, ApiError>;

/// How long an old secret keeps signing when nothing is said, in seconds.
const GRACE_SECS: u64 = 86_400;
/// The longest it may.
const MOST_GRACE_SECS: u64 = 604_800;
/// Old secrets that may sign beside the current one.
const OLD_SECRETS: usize = 10;

pub(super) async fn list(State(shared): State<Arc<Shared>>, Ids(app): Ids<String>, query: Query) -> Answer {
    let listing = Listing::<EndpointId>::ordered(&query)?;
    let app = shared.app(&app).await?;
    let page = listing
        .collect(
            |page| shared.store.endpoints(Some(app.key), page),
            |endpoint| endpoint.id,
            |_| true,
        )
        .await?;
    Ok(json(StatusCode::OK, &page.map(EndpointOut::from)))
}

pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(app): Ids<String>,
    Raw(body): Raw,
) -> Answer {
    let body = object(&body)?;
    let app = shared.app(&app).await?;
    let asked = whole(&body, None)?;
    let endpoint = make(&shared, &call, app.key, asked).await?;
    Ok(json(StatusCode::CREATED, &EndpointOut::from(endpoint)))
}

async fn make(shared: &Shared, call: &Call, app: AppKey, asked: Asked) -> Result<Endpoint, ApiError> {
    let key = match asked.secret {
        Some(key) => key,
        None => crate::target::new_secret().map_err(|error| {
            tracing::error!(%error, "no random bytes for a secret");
            ApiError::coded(
                StatusCode::INTERNAL_SERVER_ERROR,
                "server_error",
                "no secret could be made; try again, or give one as `secret`",
            )
        })?,
    };
    let secret = Secret {
        key,
        expires_at: None,
    };
    let state = asked.state.unwrap_or(EndpointState::Active);
    let made = shared
        .store
        .create_endpoint(app, asked.fields, state, secret, call.by(), shared.now());
    let endpoint = made.await?;
    tracing::info!(request_id = call.id(), by = call.by(), endpoint = %endpoint.id, state = %state, "endpoint created");
    Ok(endpoint)
}

pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Answer {
    let endpoint = find(&shared, &app, &endpoint).await?;
    Ok(json(StatusCode::OK, &EndpointOut::from(endpoint)))
}

pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, id)): Ids<(String, String)>,
    Raw(body): Raw,
) -> Answer {
    let body = object(&body)?;
    let app = shared.app(&app).await?;
    if let Some(old) = shared.store.endpoint(app.key, &id).await? {
        let asked = whole(&body, Some(&old))?;
        let endpoint = change(&shared, &call, &old, asked, None).await?;
        return Ok(json(StatusCode::OK, &EndpointOut::from(endpoint)));
    }
    let mut asked = whole(&body, None)?;
    asked.fields.uid = Some(uid_of_path(
        &id,
        asked.fields.uid,
        EndpointId::PREFIX,
        "endpoint",
    )?);
    let endpoint = make(&shared, &call, app.key, asked).await?;
    Ok(json(StatusCode::CREATED, &EndpointOut::from(endpoint)))
}

pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, id)): Ids<(String, String)>,
    Raw(body): Raw,
) -> Answer {
    let body = object(&body)?;
    let old = find(&shared, &app, &id).await?;
    let asked = partial(&body, &old)?;
    let endpoint = change(&shared, &call, &old, asked, None).await?;
    Ok(json(StatusCode::OK, &EndpointOut::from(endpoint)))
}

/// Changes fields, then the state. To an inactive state it is the other way round, so that nothing is sent to a new
/// URL in between; either half can be repeated by the same call.
pub(super) async fn change(
    shared: &Shared,
    call: &Call,
    old: &Endpoint,
    asked: Asked,
    why: Option<&str>,
) -> Result<Endpoint, ApiError> {
    let state = asked.state.filter(|state| *state != old.state);
    let mut endpoint = None;
    if let Some(state) = state.filter(|state| *state != EndpointState::Active) {
        endpoint = Some(set_state(shared, call, old, state, why).await?);
    }
    if asked.fields != fields_of(old) {
        let updated = shared
            .store
            .update_endpoint(old.key, asked.fields, shared.now())
            .await?;
        tracing::info!(request_id = call.id(), by = call.by(), endpoint = %old.id, "endpoint changed");
        endpoint = Some(updated);
    }
    if state == Some(EndpointState::Active) {
        endpoint = Some(set_state(shared, call, old, EndpointState::Active, why).await?);
    }
    Ok(endpoint.unwrap_or_else(|| old.clone()))
}

async fn set_state(
    shared: &Shared,
    call: &Call,
    endpoint: &Endpoint,
    state: EndpointState,
    why: Option<&str>,
) -> Result<Endpoint, ApiError> {
    let why = why.unwrap_or("through the API");
    let changed = shared
        .store
        .set_endpoint_state(endpoint.key, state, why, call.by(), shared.now())
        .await?;
    tracing::info!(request_id = call.id(), by = call.by(), endpoint = %endpoint.id, state = %state, "endpoint state");
    Ok(changed)
}

pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, id)): Ids<(String, String)>,
) -> Answer {
    let endpoint = find(&shared, &app, &id).await?;
    set_state(&shared, &call, &endpoint, EndpointState::Deleted, None).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

#[derive(Serialize)]
struct SecretOut {
    key: String,
}

pub(super) async fn secret(
    State(shared): State<Arc<Shared>>,
    Ids((app, id)): Ids<(String, String)>,
) -> Answer {
    let endpoint = find(&shared, &app, &id).await?;
    let current = endpoint.secrets.into_iter().next();
    let key = current
        .map(|secret| secret.key)
        .ok_or_else(|| ApiError::not_found("secret of endpoint", &id))?;
    Ok(json(StatusCode::OK, &SecretOut { key }))
}

pub(super) async fn rotate(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, id)): Ids<(String, String)>,
    Raw(body): Raw,
) -> Answer {
    let body = if body.is_empty() {
        serde_json::Map::new()
    } else {
        object(&body)?
    };
    let endpoint = find(&shared, &app, &id).await?;
    let mut fields = Fields::new(&body);
    let key = read_secret(&mut fields, "key").value();
    let grace = fields
        .number("gracePeriodSeconds", 0, MOST_GRACE_SECS)
        .value()
        .unwrap_or(GRACE_SECS);
    fields.finish()?;
    let key = match key {
        Some(key) => key,
        None => crate::target::new_secret().map_err(|error| {
            tracing::error!(%error, "no random bytes for a secret");
            ApiError::coded(
                StatusCode::INTERNAL_SERVER_ERROR,
                "server_error",
                "no secret could be made; try again",
            )
        })?,
    };
    let now = shared.now();
    let mut secrets = vec![Secret {
        key: key.clone(),
        expires_at: None,
    }];
    for old in endpoint.secrets {
        let ends = old.expires_at.unwrap_or(now + Duration::from_secs(grace));
        if ends > now && old.key != key {
            secrets.push(Secret {
                key: old.key,
                expires_at: Some(ends),
            });
        }
    }
    if secrets.len() > OLD_SECRETS + 1 {
        return Err(ApiError::coded(
            StatusCode::BAD_REQUEST,
            "limit_reached",
            "ten old secrets still sign; wait for one to end, or rotate with a shorter `gracePeriodSeconds`",
        ));
    }
    shared.store.set_secrets(endpoint.key, secrets, now).await?;
    tracing::info!(request_id = call.id(), by = call.by(), endpoint = %endpoint.id, "secret rotated");
    Ok(empty(StatusCode::NO_CONTENT))
}

/// The endpoint a path names.
pub(super) async fn find(shared: &Shared, app: &str, endpoint: &str) -> Result<Endpoint, ApiError> {
    let app = shared.app(app).await?;
    shared.endpoint(app.key, endpoint).await
}

/// What an update would replace.
pub(super) fn fields_of(endpoint: &Endpoint) -> store::EndpointFields {
    store::EndpointFields {
        uid: endpoint.uid.clone(),
        url: endpoint.url.clone(),
        description: endpoint.description.clone(),
        event_types: endpoint.event_types.clone(),
        channels: endpoint.channels.clone(),
        throttle_rate: endpoint.throttle_rate,
        metadata: endpoint.metadata.clone(),
        headers: endpoint.headers.clone(),
    }
}
