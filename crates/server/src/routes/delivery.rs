//! Deliveries of a message: where each stands, why, and a new one by hand (resend, redrive). A resend repeats
//! whatever its state; a redrive takes only what is dead.

use super::message::find;
use crate::error::{ApiError, json};
use crate::explain::explain as explain_message;
use crate::extract::{Ids, Raw};
use crate::fields::{Fields, Given, object};
use crate::front::Call;
use crate::out::MessageEndpointOut;
use crate::page::{ListOut, Listing};
use crate::query::Query;
use crate::shared::Shared;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use contract::ledger::EndpointState;
use contract::{EndpointId, MessageId};
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Delivery, DeliveryState, Endpoint, Message, Redrive};
use tokio::task::JoinSet;

type Answer = Result<Response<Body>, ApiError>;

/// Dead deliveries redriven by one call when nothing is said; the answer says whether there are more.
const BULK: u64 = 10_000;
const MOST_BULK: u64 = 100_000;
/// Redriven at once: enough to share a commit, few enough to leave the store to others.
const BATCH: usize = 256;

pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Ids((app, msg)): Ids<(String, String)>,
    query: Query,
) -> Answer {
    let listing = Listing::<EndpointId>::ordered(&query)?;
    let expanded = query.flag("expanded_statuses", false)?;
    let message = find(&shared, &app, &msg).await?;
    let latest = latest(shared.store.deliveries(message.id).await?);
    let page = listing.cut(latest, |delivery| delivery.endpoint_id);
    let mut data = Vec::with_capacity(page.data.len());
    for delivery in page.data {
        if let Some(endpoint) = shared.store.endpoint_by_key(delivery.endpoint).await? {
            data.push(MessageEndpointOut::new(endpoint, delivery, expanded));
        }
    }
    let ListOut {
        iterator,
        prev_iterator,
        done,
        ..
    } = page;
    Ok(json(
        StatusCode::OK,
        &ListOut {
            data,
            iterator,
            prev_iterator,
            done,
        },
    ))
}

/// The last delivery of each endpoint.
fn latest(deliveries: Vec<Delivery>) -> Vec<Delivery> {
    let mut by_endpoint: BTreeMap<EndpointId, Delivery> = BTreeMap::new();
    for delivery in deliveries {
        let known = by_endpoint.get(&delivery.endpoint_id);
        if known.is_none_or(|known| known.delivery_no < delivery.delivery_no) {
            by_endpoint.insert(delivery.endpoint_id, delivery);
        }
    }
    by_endpoint.into_values().collect()
}

#[derive(Serialize)]
struct Nothing {}

pub(super) async fn resend(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, msg, endpoint)): Ids<(String, String, String)>,
) -> Answer {
    let message = find(&shared, &app, &msg).await?;
    let endpoint = shared.endpoint(message.app, &endpoint).await?;
    must_have_payload(&message)?;
    must_take(&endpoint)?;
    let redrive = Redrive {
        message: message.id,
        endpoint: endpoint.key,
        now: shared.now(),
    };
    let opened = shared.store.redrive(redrive).await?;
    tracing::info!(request_id = call.id(), by = call.by(), message = %message.id, endpoint = %endpoint.id,
        delivery_no = opened.delivery_no.get(), "resent by hand");
    Ok(json(StatusCode::ACCEPTED, &Nothing {}))
}

fn must_have_payload(message: &Message) -> Result<(), ApiError> {
    if message.payload.is_some() {
        return Ok(());
    }
    Err(ApiError::coded(
        StatusCode::BAD_REQUEST,
        "missing_payload",
        "the payload was erased, so it cannot be sent again; send a new message",
    ))
}

/// A draining endpoint holds a new delivery; a disabled one would kill it at once.
fn must_take(endpoint: &Endpoint) -> Result<(), ApiError> {
    match endpoint.state {
        EndpointState::Active | EndpointState::Draining => Ok(()),
        EndpointState::Disabled | EndpointState::Deleted => Err(ApiError::conflict(format!(
            "endpoint `{}` is {}; activate it first (`duehook endpoint activate {}`)",
            endpoint.id, endpoint.state, endpoint.id
        ))),
    }
}

pub(super) async fn explain_in_app(
    State(shared): State<Arc<Shared>>,
    Ids((app, msg)): Ids<(String, String)>,
    query: Query,
) -> Answer {
    let message = find(&shared, &app, &msg).await?;
    explained(&shared, &message, &query).await
}

pub(super) async fn explain(
    State(shared): State<Arc<Shared>>,
    Ids(msg): Ids<String>,
    query: Query,
) -> Answer {
    let message = by_id(&shared, &msg).await?;
    explained(&shared, &message, &query).await
}

async fn explained(shared: &Shared, message: &Message, query: &Query) -> Answer {
    let endpoint = match query.text("endpoint").filter(|id| !id.is_empty()) {
        Some(id) => Some(shared.endpoint(message.app, id).await?.key),
        None => None,
    };
    let explained = explain_message(&*shared.store, message, endpoint, shared.now()).await?;
    Ok(json(StatusCode::OK, &explained))
}

async fn by_id(shared: &Shared, id: &str) -> Result<Message, ApiError> {
    let found = match id.parse::<MessageId>() {
        Ok(id) => shared.store.message_by_id(id).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| ApiError::not_found("message", id))
}

pub(super) async fn redrive_in_app(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, msg)): Ids<(String, String)>,
    Raw(body): Raw,
) -> Answer {
    let message = find(&shared, &app, &msg).await?;
    redrive_message(&shared, &call, &message, &optional(&body)?).await
}

pub(super) async fn redrive(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(msg): Ids<String>,
    Raw(body): Raw,
) -> Answer {
    let message = by_id(&shared, &msg).await?;
    redrive_message(&shared, &call, &message, &optional(&body)?).await
}

/// A body that may be left out.
fn optional(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        Ok(Map::new())
    } else {
        object(body)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Redriven {
    endpoint_id: EndpointId,
    delivery_no: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Skipped {
    endpoint_id: EndpointId,
    why: String,
}

#[derive(Serialize)]
struct RedriveOut {
    redriven: Vec<Redriven>,
    skipped: Vec<Skipped>,
}

async fn redrive_message(
    shared: &Shared,
    call: &Call,
    message: &Message,
    body: &Map<String, Value>,
) -> Answer {
    let mut fields = Fields::new(body);
    let endpoint = fields.text("endpoint", 1, 256);
    fields.finish()?;
    must_have_payload(message)?;
    let only = match endpoint {
        Given::Value(id) => Some(shared.endpoint(message.app, &id).await?.key),
        Given::Absent | Given::Null => None,
    };
    let mut out = RedriveOut {
        redriven: Vec::new(),
        skipped: Vec::new(),
    };
    for delivery in latest(shared.store.deliveries(message.id).await?) {
        if only.is_some_and(|only| only != delivery.endpoint) {
            continue;
        }
        match redrive_one(shared, &delivery).await? {
            Ok(opened) => {
                tracing::info!(request_id = call.id(), by = call.by(), message = %message.id,
                    endpoint = %opened.endpoint_id, delivery_no = opened.delivery_no.get(), "redriven");
                out.redriven.push(Redriven {
                    endpoint_id: opened.endpoint_id,
                    delivery_no: opened.delivery_no.get(),
                });
            }
            Err(why) => out.skipped.push(Skipped {
                endpoint_id: delivery.endpoint_id,
                why,
            }),
        }
    }
    if only.is_some() && out.redriven.is_empty() {
        let why = out.skipped.pop().map_or_else(
            || "the message was never due at this endpoint; resend it there instead".to_owned(),
            |skipped| skipped.why,
        );
        return Err(ApiError::conflict(why));
    }
    Ok(json(StatusCode::ACCEPTED, &out))
}

/// Opens the next delivery where the last one is dead; else says why not.
async fn redrive_one(shared: &Shared, delivery: &Delivery) -> Result<Result<Delivery, String>, ApiError> {
    if delivery.state != DeliveryState::Dead {
        let state = crate::explain::state_word(delivery.state);
        return Ok(Err(format!(
            "its delivery {} is {state}, not dead; a resend repeats it all the same",
            delivery.delivery_no
        )));
    }
    let Some(endpoint) = shared.store.endpoint_by_key(delivery.endpoint).await? else {
        return Ok(Err("its endpoint is gone".to_owned()));
    };
    if !matches!(endpoint.state, EndpointState::Active | EndpointState::Draining) {
        return Ok(Err(format!(
            "its endpoint is {}; activate it first",
            endpoint.state
        )));
    }
    let redrive = Redrive {
        message: delivery.message,
        endpoint: delivery.endpoint,
        now: shared.now(),
    };
    Ok(Ok(shared.store.redrive(redrive).await?))
}

pub(super) async fn redrive_endpoint_in_app(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids((app, id)): Ids<(String, String)>,
    Raw(body): Raw,
) -> Answer {
    let endpoint = super::endpoint::find(&shared, &app, &id).await?;
    redrive_dead(&shared, &call, &endpoint, &optional(&body)?).await
}

pub(super) async fn redrive_endpoint(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(id): Ids<String>,
    Raw(body): Raw,
) -> Answer {
    let endpoint = super::own_endpoint::find(&shared, &id).await?;
    redrive_dead(&shared, &call, &endpoint, &optional(&body)?).await
}

#[derive(Serialize)]
struct BulkOut {
    redriven: u64,
    done: bool,
}

async fn redrive_dead(
    shared: &Arc<Shared>,
    call: &Call,
    endpoint: &Endpoint,
    body: &Map<String, Value>,
) -> Answer {
    let mut fields = Fields::new(body);
    let limit = fields.number("limit", 1, MOST_BULK).value().unwrap_or(BULK);
    fields.finish()?;
    must_take(endpoint)?;
    let mut out = BulkOut {
        redriven: 0,
        done: false,
    };
    let mut after = None;
    while out.redriven < limit && !out.done {
        let room = usize::try_from(limit - out.redriven)
            .unwrap_or(usize::MAX)
            .min(BATCH);
        let dead = shared.store.dead(endpoint.key, after, room).await?;
        out.done = dead.len() < room;
        after = dead.last().map(|delivery| delivery.key).or(after);
        let mut opening = JoinSet::new();
        for delivery in dead {
            let shared = Arc::clone(shared);
            let redrive = Redrive {
                message: delivery.message,
                endpoint: endpoint.key,
                now: shared.now(),
            };
            opening.spawn(async move { shared.store.redrive(redrive).await });
        }
        while let Some(opened) = opening.join_next().await {
            match opened {
                Ok(opened) => opened.map(|_| out.redriven += 1)?,
                Err(error) => tracing::error!(%error, "a redrive failed"),
            }
        }
    }
    tracing::info!(request_id = call.id(), by = call.by(), endpoint = %endpoint.id, redriven = out.redriven, "redriven in bulk");
    Ok(json(StatusCode::ACCEPTED, &out))
}
