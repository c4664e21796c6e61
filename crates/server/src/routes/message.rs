//! Messages: accepting them (the hot path: no store read, no rewriting of the payload) and reading them.

use super::app::read_fields;
use super::message_in::MessageIn;
use crate::error::{ApiError, Issue, json};
use crate::extract::{Ids, Raw};
use crate::fields::Given;
use crate::front::Call;
use crate::out::MessageOut;
use crate::page::{ListOut, Listing};
use crate::query::Query;
use crate::shared::Shared;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use contract::MessageId;
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{AppKey, Message, NewMessage, StoreError};

type Answer = Result<Response<Body>, ApiError>;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const KEY_CHARS: usize = 256;

pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<Call>,
    Ids(app): Ids<String>,
    query: Query,
    headers: HeaderMap,
    Raw(body): Raw,
) -> Answer {
    let with_content = query.flag("with_content", true)?;
    let message = MessageIn::parse(&body)?;
    let key = idempotency_key(&headers)?;
    let app_key = match shared.app_key(&app).await? {
        Some(key) => key,
        None => make_app(&shared, &call, &app, message.application.as_ref()).await?,
    };
    let now = shared.reading();
    let message = NewMessage {
        id: MessageId::at_unix_ms(u64::try_from(now.wall.as_unix_ms()).unwrap_or(0)),
        app: app_key,
        event_id: message.event_id,
        event_type: message.event_type,
        channels: message.channels,
        payload: message.payload,
        contract: None,
        idempotency_key: key,
        now,
    };
    match shared.engine.accept(message).await {
        Ok(accepted) => {
            shared.stats.accepted.fetch_add(1, Ordering::Relaxed);
            Ok(json(
                StatusCode::ACCEPTED,
                &MessageOut::new(&accepted.message, with_content),
            ))
        }
        Err(StoreError::NotFound { .. }) => {
            shared.apps.forget();
            Err(ApiError::not_found("application", &app))
        }
        Err(error) => Err(error.into()),
    }
}

/// The caller's key. It is compared together with the application; the body is not.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .ok()
        .filter(|text| (1..=KEY_CHARS).contains(&text.len()));
    text.map(|text| Some(text.to_owned())).ok_or_else(|| {
        let msg = "1 to 256 printable ASCII characters";
        ApiError::Invalid(vec![Issue::new("header", IDEMPOTENCY_KEY, msg)])
    })
}

/// A message may bring its application along: it is made when the path names none.
async fn make_app(
    shared: &Shared,
    call: &Call,
    path: &str,
    given: Option<&Map<String, Value>>,
) -> Result<AppKey, ApiError> {
    let Some(given) = given else {
        return Err(ApiError::not_found("application", path));
    };
    let fields = read_fields(given, None).map_err(within_application)?;
    let wrong =
        |kind, msg: &str| ApiError::Invalid(vec![Issue::of_kind(kind, "body", "application/uid", msg)]);
    match fields.uid.as_deref() {
        None => {
            return Err(wrong(
                "application_uid_missing",
                "`application` must have a `uid`",
            ));
        }
        Some(uid) if uid != path => {
            return Err(wrong(
                "application_uid_mismatch",
                "`application.uid` must equal the application in the path",
            ));
        }
        Some(_) => {}
    }
    match shared.store.create_app(fields, shared.now()).await {
        Ok(app) => {
            shared.apps.forget();
            tracing::info!(request_id = call.id(), by = call.by(), app = %app.id, "application created with a message");
            Ok(app.key)
        }
        // Its twin was faster.
        Err(StoreError::Conflict { .. }) => Ok(shared.app(path).await?.key),
        Err(error) => Err(error.into()),
    }
}

fn within_application(error: ApiError) -> ApiError {
    match error {
        ApiError::Invalid(mut issues) => {
            for issue in &mut issues {
                issue.loc.insert(1, "application".to_owned());
            }
            ApiError::Invalid(issues)
        }
        other => other,
    }
}

pub(super) async fn list(State(shared): State<Arc<Shared>>, Ids(app): Ids<String>, query: Query) -> Answer {
    let with_content = query.flag("with_content", true)?;
    let listing = Listing::<MessageId>::by_time(&query, shared.now())?;
    let wants = Wants::read(&query);
    let app = shared.app(&app).await?;
    let page = listing
        .collect(
            |page| shared.store.messages(app.key, page),
            |message| message.id,
            |message| wants.takes(message),
        )
        .await?;
    let ListOut {
        data,
        iterator,
        prev_iterator,
        done,
    } = page;
    let data: Vec<MessageOut<'_>> = data
        .iter()
        .map(|message| MessageOut::new(message, with_content))
        .collect();
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

pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Ids((app, id)): Ids<(String, String)>,
    query: Query,
) -> Answer {
    let with_content = query.flag("with_content", true)?;
    let message = find(&shared, &app, &id).await?;
    Ok(json(StatusCode::OK, &MessageOut::new(&message, with_content)))
}

/// The message a path names.
pub(super) async fn find(shared: &Shared, app: &str, id: &str) -> Result<Message, ApiError> {
    let app = shared.app(app).await?;
    let found = shared.store.message(app.key, id).await?;
    found.ok_or_else(|| ApiError::not_found("message", id))
}

/// The filters `channel` and `event_types`.
pub(super) struct Wants {
    channel: Given<String>,
    event_types: Option<Vec<String>>,
}

impl Wants {
    pub(super) fn read(query: &Query) -> Self {
        let channel = query.text("channel").filter(|text| !text.is_empty());
        let types = query.list("event_types");
        Self {
            channel: channel.map_or(Given::Absent, |text| Given::Value(text.to_owned())),
            event_types: types.map(|types| types.into_iter().map(str::to_owned).collect()),
        }
    }

    /// True when nothing is filtered.
    pub(super) fn everything(&self) -> bool {
        self.channel == Given::Absent && self.event_types.is_none()
    }

    pub(super) fn takes(&self, message: &Message) -> bool {
        let channel = match &self.channel {
            Given::Value(wanted) => message.channels.as_ref().is_some_and(|all| all.contains(wanted)),
            Given::Absent | Given::Null => true,
        };
        channel
            && self
                .event_types
                .as_ref()
                .is_none_or(|all| all.contains(&message.event_type))
    }
}
