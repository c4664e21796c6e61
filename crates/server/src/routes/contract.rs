//! Contracts at their levels: organisation, application, endpoint (spec/contract.md, Levels). A contract is taken
//! whole, and governs attempts scheduled from then on.

use crate::error::{ApiError, Issue, empty, json};
use crate::extract::{Ids, Raw};
use crate::fields::{Fields, object};
use crate::front::Call;
use crate::shared::Shared;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use contract::{Contract, ContractError};
use http::{Response, StatusCode};
use serde::Serialize;
use std::sync::Arc;
use store::{ContractKey, Level};

type Answer = Result<Response<Body>, ApiError>;

#[derive(Serialize)]
struct ContractOut {
    /// Where it is set: `organisation`, `app` or `endpoint`.
    level: &'static str,
    rev: String,
    name: String,
    toml: String,
}

pub(super) async fn read_organisation(State(shared): State<Arc<Shared>>) -> Answer {
    in_force(
        &shared,
        [("organisation", shared.store.organisation_contract().await?)],
    )
    .await
}

pub(super) async fn read_app(State(shared): State<Arc<Shared>>, Ids(app): Ids<String>) -> Answer {
    let app = shared.app(&app).await?;
    let organisation = shared.store.organisation_contract().await?;
    in_force(&shared, [("app", app.contract), ("organisation", organisation)]).await
}

pub(super) async fn read_endpoint(
    State(shared): State<Arc<Shared>>,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Answer {
    let app = shared.app(&app).await?;
    let endpoint = shared.endpoint(app.key, &endpoint).await?;
    let organisation = shared.store.organisation_contract().await?;
    let levels = [
        ("endpoint", endpoint.contract),
        ("app", app.contract),
        ("organisation", organisation),
    ];
    in_force(&shared, levels).await
}

/// The first level that has one.
async fn in_force<const N: usize>(
    shared: &Shared,
    levels: [(&'static str, Option<ContractKey>); N],
) -> Answer {
    let found = levels.into_iter().find_map(|(level, key)| Some((level, key?)));
    let Some((level, key)) = found else {
        return Err(ApiError::not_found("contract", "organisation"));
    };
    let stored = shared
        .store
        .contract(key)
        .await?
        .ok_or_else(|| ApiError::not_found("contract", level))?;
    let contract = Contract::from_canonical(&stored.canonical).map_err(|error| {
        tracing::error!(rev = stored.rev, %error, "a stored contract cannot be read");
        ApiError::coded(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            "the stored contract cannot be read; put a good one in its place",
        )
    })?;
    Ok(json(StatusCode::OK, &out(level, &contract)))
}

fn out(level: &'static str, contract: &Contract) -> ContractOut {
    ContractOut {
        level,
        rev: contract.rev(),
        name: contract.name.clone(),
        toml: contract.to_toml(),
    }
}

pub(super) async fn put_organisation(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Raw(body): Raw,
) -> Answer {
    put(&shared, &call, "organisation", Level::Organisation, &body).await
}

pub(super) async fn put_app(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(app): Ids<String>,
    Raw(body): Raw,
) -> Answer {
    let app = shared.app(&app).await?;
    put(&shared, &call, "app", Level::App(app.key), &body).await
}

pub(super) async fn put_endpoint(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, endpoint)): Ids<(String, String)>,
    Raw(body): Raw,
) -> Answer {
    let endpoint = super::endpoint::find(&shared, &app, &endpoint).await?;
    put(&shared, &call, "endpoint", Level::Endpoint(endpoint.key), &body).await
}

async fn put(shared: &Shared, call: &Call, name: &'static str, level: Level, body: &[u8]) -> Answer {
    let contract = read(body)?;
    let rev = contract.rev();
    let key = shared.store.put_contract(&rev, &contract.canonical()).await?;
    shared.store.set_contract(level, Some(key)).await?;
    tracing::info!(
        request_id = call.id(),
        by = call.by(),
        level = name,
        rev,
        "contract set"
    );
    Ok(json(StatusCode::OK, &out(name, &contract)))
}

/// The contract file's text, or `{"toml": "…"}`.
fn read(body: &[u8]) -> Result<Contract, ApiError> {
    let wrapped = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if !wrapped {
        return contract::parse_bytes(body, "contract").map_err(|error| refused(&error));
    }
    let map = object(body)?;
    let mut fields = Fields::new(&map);
    let toml = fields.text("toml", 1, contract::MAX_FILE_BYTES);
    let toml = fields.require("toml", toml).unwrap_or_default();
    fields.finish()?;
    contract::parse(&toml, "contract").map_err(|error| refused(&error))
}

fn refused(error: &ContractError) -> ApiError {
    let issue = |problem: &contract::Problem| {
        let line = problem
            .line
            .map_or_else(String::new, |line| format!("line {line}: "));
        let msg = format!("{line}found {}; {}", problem.found, problem.right);
        Issue::new("body", &format!("toml/{}", problem.clause), msg)
    };
    ApiError::Invalid(error.problems().iter().map(issue).collect())
}

pub(super) async fn delete_organisation() -> ApiError {
    ApiError::conflict(
        "the organisation's contract is the one every delivery falls back to; PUT another instead",
    )
}

pub(super) async fn delete_app(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(app): Ids<String>,
) -> Answer {
    let app = shared.app(&app).await?;
    clear(&shared, &call, Level::App(app.key)).await
}

pub(super) async fn delete_endpoint(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Answer {
    let endpoint = super::endpoint::find(&shared, &app, &endpoint).await?;
    clear(&shared, &call, Level::Endpoint(endpoint.key)).await
}

async fn clear(shared: &Shared, call: &Call, level: Level) -> Answer {
    shared.store.set_contract(level, None).await?;
    tracing::info!(request_id = call.id(), by = call.by(), ?level, "contract cleared");
    Ok(empty(StatusCode::NO_CONTENT))
}
