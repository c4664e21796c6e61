//! Applications: one for each customer of the sender.

use crate::error::{ApiError, empty, json};
use crate::extract::{Ids, Raw};
use crate::fields::{Fields, Given, object};
use crate::front::Call;
use crate::out::AppOut;
use crate::page::Listing;
use crate::query::Query;
use crate::shared::Shared;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use contract::AppId;
use http::{Response, StatusCode};
use serde_json::{Map, Value};
use std::sync::Arc;
use store::{App, AppFields, StoreError};

type Answer = Result<Response<Body>, ApiError>;

pub(super) async fn list(State(shared): State<Arc<Shared>>, query: Query) -> Answer {
    let listing = Listing::<AppId>::ordered(&query)?;
    let page = listing
        .collect(|page| shared.store.apps(page), |app| app.id, |_| true)
        .await?;
    Ok(json(StatusCode::OK, &page.map(AppOut::from)))
}

pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    query: Query,
    Raw(body): Raw,
) -> Answer {
    let get_if_exists = query.flag("get_if_exists", false)?;
    let fields = read_fields(&object(&body)?, None)?;
    let known = match (&fields.uid, get_if_exists) {
        (Some(uid), true) => shared.store.app(uid).await?,
        _ => None,
    };
    if let Some(app) = known {
        return Ok(json(StatusCode::OK, &AppOut::from(app)));
    }
    let uid = fields.uid.clone();
    match shared.store.create_app(fields, shared.now()).await {
        Ok(app) => {
            shared.apps.forget();
            tracing::info!(request_id = call.id(), by = call.by(), app = %app.id, "application created");
            Ok(json(StatusCode::CREATED, &AppOut::from(app)))
        }
        // Its twin was faster.
        Err(StoreError::Conflict { .. }) if get_if_exists => {
            let app = shared.app(uid.as_deref().unwrap_or_default()).await?;
            Ok(json(StatusCode::OK, &AppOut::from(app)))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn read(State(shared): State<Arc<Shared>>, Ids(app): Ids<String>) -> Answer {
    Ok(json(StatusCode::OK, &AppOut::from(shared.app(&app).await?)))
}

pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(id): Ids<String>,
    Raw(body): Raw,
) -> Answer {
    let body = object(&body)?;
    if let Some(app) = shared.store.app(&id).await? {
        let fields = read_fields(&body, Some(&app))?;
        return update(&shared, &app, fields).await;
    }
    let mut fields = read_fields(&body, None)?;
    fields.uid = Some(uid_of_path(&id, fields.uid, AppId::PREFIX, "application")?);
    let app = shared.store.create_app(fields, shared.now()).await?;
    shared.apps.forget();
    tracing::info!(request_id = call.id(), by = call.by(), app = %app.id, "application created");
    Ok(json(StatusCode::CREATED, &AppOut::from(app)))
}

pub(super) async fn patch(State(shared): State<Arc<Shared>>, Ids(id): Ids<String>, Raw(body): Raw) -> Answer {
    let body = object(&body)?;
    let app = shared.app(&id).await?;
    let mut fields = Fields::new(&body);
    let name = fields.text("name", 1, usize::MAX);
    if name == Given::Null {
        fields.wrong::<()>("name", "found null; a name cannot be cleared");
    }
    let uid = fields.uid("uid", AppId::PREFIX);
    let rate = fields.throttle_rate(true);
    let metadata = fields.metadata();
    fields.finish()?;
    let changed = AppFields {
        uid: uid.over(app.uid.clone()),
        name: name.over(Some(app.name.clone())).unwrap_or_default(),
        throttle_rate: rate.over(app.throttle_rate),
        metadata: metadata.over(Some(app.metadata.clone())).unwrap_or_default(),
    };
    update(&shared, &app, changed).await
}

async fn update(shared: &Shared, app: &App, fields: AppFields) -> Answer {
    let app = shared.store.update_app(app.key, fields, shared.now()).await?;
    shared.apps.forget();
    Ok(json(StatusCode::OK, &AppOut::from(app)))
}

pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(id): Ids<String>,
) -> Answer {
    let app = shared.app(&id).await?;
    shared.store.delete_app(app.key, call.by(), shared.now()).await?;
    shared.apps.forget();
    tracing::info!(request_id = call.id(), by = call.by(), app = %app.id, "application deleted");
    Ok(empty(StatusCode::NO_CONTENT))
}

/// `ApplicationIn`. On a replacement an absent uid keeps the old one: a PUT by uid must stay repeatable.
pub(super) fn read_fields(body: &Map<String, Value>, old: Option<&App>) -> Result<AppFields, ApiError> {
    let mut fields = Fields::new(body);
    let name = fields.text("name", 1, usize::MAX);
    let name = fields.require("name", name);
    let uid = fields.uid("uid", AppId::PREFIX);
    let rate = fields.throttle_rate(false);
    let metadata = fields.metadata();
    fields.finish()?;
    Ok(AppFields {
        uid: uid.over(old.and_then(|app| app.uid.clone())),
        name: name.unwrap_or_default(),
        throttle_rate: rate.value(),
        metadata: metadata.value().unwrap_or_default(),
    })
}

/// The uid that a PUT to an unknown path creates: the one in the path, which the body may repeat.
pub(super) fn uid_of_path(
    path: &str,
    body: Option<String>,
    prefix: &str,
    what: &'static str,
) -> Result<String, ApiError> {
    if path.starts_with(prefix) {
        return Err(ApiError::not_found(what, path));
    }
    if !crate::fields::is_name(path, crate::fields::NAME_CHARS) {
        return Err(ApiError::Invalid(vec![crate::error::Issue::new(
            "path",
            "uid",
            "a uid has 1 to 256 of the characters a-z A-Z 0-9 - _ .",
        )]));
    }
    match body {
        Some(uid) if uid != path => Err(ApiError::in_body(
            "uid",
            "there is nothing with the uid in the path yet, and the body names another; make them the same",
        )),
        _ => Ok(path.to_owned()),
    }
}
