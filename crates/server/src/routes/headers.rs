//! Custom request headers of an endpoint. Those that look like credentials are named and not shown.

use super::endpoint::{fields_of, find};
use super::endpoint_fields::custom_headers;
use crate::error::{ApiError, empty, json};
use crate::extract::{Ids, Raw};
use crate::fields::{Fields, Given, object};
use crate::front::Call;
use crate::shared::Shared;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Endpoint;

type Answer = Result<Response<Body>, ApiError>;

#[derive(Serialize)]
struct HeadersOut {
    headers: BTreeMap<String, String>,
    sensitive: Vec<String>,
}

pub(super) async fn read(State(shared): State<Arc<Shared>>, Ids((app, id)): Ids<(String, String)>) -> Answer {
    let endpoint = find(&shared, &app, &id).await?;
    let (hidden, headers): (BTreeMap<_, _>, _) = endpoint
        .headers
        .into_iter()
        .partition(|(name, _)| is_sensitive(name));
    let sensitive = hidden.into_keys().collect();
    Ok(json(StatusCode::OK, &HeadersOut { headers, sensitive }))
}

pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, id)): Ids<(String, String)>,
    Raw(body): Raw,
) -> Answer {
    let body = object(&body)?;
    let endpoint = find(&shared, &app, &id).await?;
    let mut fields = Fields::new(&body);
    let headers = custom_headers(&mut fields);
    let headers = fields.require("headers", headers);
    fields.finish()?;
    store_headers(&shared, &call, &endpoint, headers.unwrap_or_default()).await
}

pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, id)): Ids<(String, String)>,
    Raw(body): Raw,
) -> Answer {
    let body = object(&body)?;
    let endpoint = find(&shared, &app, &id).await?;
    let mut headers = endpoint.headers.clone();
    let mut fields = Fields::new(&body);
    match fields.raw("headers") {
        Given::Absent | Given::Null => {}
        Given::Value(Value::Object(changes)) => {
            for (name, value) in changes {
                merge(&mut fields, &mut headers, name, value);
            }
        }
        Given::Value(_) => {
            fields.wrong::<()>("headers", "expected a map from header name to text or null");
        }
    }
    if let Given::Value(Value::Array(names)) = fields.raw("deleteHeaders") {
        for name in names.iter().filter_map(Value::as_str) {
            headers.retain(|known, _| !known.eq_ignore_ascii_case(name));
        }
    }
    fields.finish()?;
    store_headers(&shared, &call, &endpoint, headers).await
}

fn merge(fields: &mut Fields<'_>, headers: &mut BTreeMap<String, String>, name: &str, value: &Value) {
    let field = format!("headers/{name}");
    match value {
        Value::Null => headers.retain(|known, _| !known.eq_ignore_ascii_case(name)),
        Value::String(text) => match crate::target::check_header(name, text) {
            Ok(()) => {
                headers.retain(|known, _| !known.eq_ignore_ascii_case(name));
                headers.insert(name.to_owned(), text.clone());
            }
            Err(why) => {
                fields.wrong::<()>(&field, why);
            }
        },
        _ => {
            fields.wrong::<()>(&field, "expected a text, or null to delete the header");
        }
    }
}

async fn store_headers(
    shared: &Shared,
    call: &Call,
    endpoint: &Endpoint,
    headers: BTreeMap<String, String>,
) -> Answer {
    let fields = store::EndpointFields {
        headers,
        ..fields_of(endpoint)
    };
    shared
        .store
        .update_endpoint(endpoint.key, fields, shared.now())
        .await?;
    tracing::info!(request_id = call.id(), by = call.by(), endpoint = %endpoint.id, "headers changed");
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Names whose values are credentials in most systems.
fn is_sensitive(name: &str) -> bool {
    const WORDS: [&str; 7] = [
        "authorization",
        "cookie",
        "api-key",
        "apikey",
        "token",
        "secret",
        "password",
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}
