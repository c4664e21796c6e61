//! Endpoints by id alone, for people at a terminal: reading one, and changing its state with a reason.

use super::endpoint::change;
use super::endpoint_fields::partial;
use crate::error::{ApiError, json};
use crate::extract::{Ids, Raw};
use crate::fields::{Fields, object};
use crate::front::Call;
use crate::out::EndpointOut;
use crate::shared::Shared;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use contract::EndpointId;
use contract::ledger::EndpointState;
use http::{Response, StatusCode};
use std::sync::Arc;
use store::Endpoint;

type Answer = Result<Response<Body>, ApiError>;

pub(super) async fn read(State(shared): State<Arc<Shared>>, Ids(id): Ids<String>) -> Answer {
    Ok(json(
        StatusCode::OK,
        &EndpointOut::from(find(&shared, &id).await?),
    ))
}

pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(id): Ids<String>,
    Raw(body): Raw,
) -> Answer {
    let body = object(&body)?;
    let old = find(&shared, &id).await?;
    let mut fields = Fields::new(&body);
    let why = fields.text("why", 0, 1000).value();
    fields.finish()?;
    let asked = partial(&body, &old)?;
    let endpoint = change(&shared, &call, &old, asked, why.as_deref()).await?;
    Ok(json(StatusCode::OK, &EndpointOut::from(endpoint)))
}

/// The endpoint with an id, whatever its application.
pub(super) async fn find(shared: &Shared, id: &str) -> Result<Endpoint, ApiError> {
    let found = match id.parse::<EndpointId>() {
        Ok(id) => shared.store.endpoint_by_id(id).await?,
        Err(_) => None,
    };
    found
        .filter(|endpoint| endpoint.state != EndpointState::Deleted)
        .ok_or_else(|| ApiError::not_found("endpoint", id))
}
