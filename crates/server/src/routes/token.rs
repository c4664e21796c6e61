//! API tokens: made, listed, revoked. A token's text is answered once, when it is made.

use crate::auth::new_token;
use crate::error::{ApiError, empty, json};
use crate::extract::{Ids, Raw};
use crate::fields::{Fields, object};
use crate::front::Call;
use crate::shared::Shared;
use crate::time::Time;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use contract::TokenId;
use http::{Response, StatusCode};
use serde::Serialize;
use std::sync::Arc;
use store::Token;

type Answer = Result<Response<Body>, ApiError>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenOut {
    id: TokenId,
    name: String,
    created_at: Time,
    revoked_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl TokenOut {
    fn new(row: Token, token: Option<String>) -> Self {
        Self {
            id: row.id,
            name: row.name,
            created_at: Time(row.created_at),
            revoked_at: row.revoked_at.map(Time),
            token,
        }
    }
}

#[derive(Serialize)]
struct TokensOut {
    data: Vec<TokenOut>,
}

pub(super) async fn list(State(shared): State<Arc<Shared>>) -> Answer {
    let tokens = shared.store.tokens().await?.into_iter();
    let data = tokens.map(|row| TokenOut::new(row, None)).collect();
    Ok(json(StatusCode::OK, &TokensOut { data }))
}

pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Raw(body): Raw,
) -> Answer {
    let body = object(&body)?;
    let mut fields = Fields::new(&body);
    let name = fields.text("name", 1, 100);
    let name = fields.require("name", name).unwrap_or_default();
    fields.finish()?;
    let made = new_token(&name, shared.now()).map_err(|error| {
        tracing::error!(%error, "no random bytes for a token");
        ApiError::coded(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            "no token could be made; try again",
        )
    })?;
    shared.store.put_token(made.row.clone()).await?;
    shared.tokens.reload(&*shared.store).await?;
    tracing::info!(request_id = call.id(), by = call.by(), token = %made.row.id, name, "token created");
    Ok(json(
        StatusCode::CREATED,
        &TokenOut::new(made.row, Some(made.text)),
    ))
}

pub(super) async fn revoke(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(id): Ids<String>,
) -> Answer {
    let Ok(token) = id.parse::<TokenId>() else {
        return Err(ApiError::not_found("token", &id));
    };
    shared.store.revoke_token(token, shared.now()).await?;
    shared.tokens.reload(&*shared.store).await?;
    tracing::info!(request_id = call.id(), by = call.by(), %token, "token revoked");
    Ok(empty(StatusCode::NO_CONTENT))
}
