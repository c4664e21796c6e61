//! What answers look like: the Svix bodies, each field that a typed client requires always there.

use crate::time::Time;
use bytes::Bytes;
use contract::ledger::{EndpointState, Outcome, Trigger};
use contract::{AppId, EndpointId, MessageId};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use store::{App, Attempt, Delivery, DeliveryState, Endpoint, Message};

/// An application.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppOut {
    id: AppId,
    uid: Option<String>,
    name: String,
    throttle_rate: Option<u16>,
    metadata: BTreeMap<String, String>,
    created_at: Time,
    updated_at: Time,
}

impl From<App> for AppOut {
    fn from(app: App) -> Self {
        Self {
            id: app.id,
            uid: app.uid,
            name: app.name,
            throttle_rate: app.throttle_rate,
            metadata: app.metadata,
            created_at: Time(app.created_at),
            updated_at: Time(app.updated_at),
        }
    }
}

/// An endpoint, with our `state` beside the `disabled` of Svix.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointOut {
    id: EndpointId,
    uid: Option<String>,
    url: String,
    description: String,
    /// True exactly when the state is `disabled`.
    disabled: bool,
    state: EndpointState,
    event_types: Option<Vec<String>>,
    /// The older name of the same.
    filter_types: Option<Vec<String>>,
    channels: Option<Vec<String>>,
    throttle_rate: Option<u16>,
    /// The older name of the same.
    rate_limit: Option<u16>,
    metadata: BTreeMap<String, String>,
    /// Every answer failed since then; absent while the endpoint is healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<Time>,
    version: u8,
    created_at: Time,
    updated_at: Time,
}

impl From<Endpoint> for EndpointOut {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            id: endpoint.id,
            uid: endpoint.uid,
            url: endpoint.url,
            description: endpoint.description,
            disabled: endpoint.state == EndpointState::Disabled,
            state: endpoint.state,
            filter_types: endpoint.event_types.clone(),
            event_types: endpoint.event_types,
            channels: endpoint.channels,
            throttle_rate: endpoint.throttle_rate,
            rate_limit: endpoint.throttle_rate,
            metadata: endpoint.metadata,
            failing_since: endpoint.failing_since.map(Time),
            version: 1,
            created_at: Time(endpoint.created_at),
            updated_at: Time(endpoint.updated_at),
        }
    }
}

/// A message. The payload is the stored text, never written anew.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageOut<'a> {
    id: MessageId,
    event_id: Option<&'a str>,
    event_type: &'a str,
    channels: Option<&'a [String]>,
    payload: &'a RawValue,
    timestamp: Time,
}

impl<'a> MessageOut<'a> {
    /// With the payload, or with `{}` in its place.
    pub(crate) fn new(message: &'a Message, with_content: bool) -> Self {
        let payload = match &message.payload {
            _ if !with_content => nothing(),
            Some(payload) => payload_text(payload),
            None => expired(),
        };
        Self {
            id: message.id,
            event_id: message.event_id.as_deref(),
            event_type: &message.event_type,
            channels: message.channels.as_deref(),
            payload,
            timestamp: Time(message.accepted_at),
        }
    }
}

fn payload_text(payload: &Bytes) -> &RawValue {
    // What was accepted was one JSON object; a store that gives back anything else is answered as erased.
    serde_json::from_slice(payload).unwrap_or_else(|_| expired())
}

fn expired() -> &'static RawValue {
    literal(r#"{"expired":true}"#)
}

fn nothing() -> &'static RawValue {
    literal("{}")
}

fn literal(text: &'static str) -> &'static RawValue {
    // Both texts above are JSON.
    serde_json::from_str(text).unwrap_or(RawValue::NULL)
}

/// One attempt.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptOut<'a> {
    id: &'a str,
    msg_id: &'a str,
    endpoint_id: &'a str,
    url: &'a str,
    response: Cow<'a, str>,
    response_status_code: u16,
    response_duration_ms: u64,
    status: u8,
    status_text: &'static str,
    trigger_type: u8,
    timestamp: Time,
    /// Ours: which delivery of the message to the endpoint, and which attempt of it.
    delivery_no: u32,
    attempt_no: u32,
    /// Ours: when it was due.
    due_at: Time,
    /// Ours: how it ended, as the ledger says it.
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<MessageOut<'a>>,
}

/// What an attempt is shown with.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// The endpoint's URL.
    pub(crate) url: &'a str,
    /// With the answer's body.
    pub(crate) with_content: bool,
    /// The message itself, if asked for, and whether with its payload.
    pub(crate) msg: Option<&'a Message>,
}

impl<'a> AttemptOut<'a> {
    pub(crate) fn new(attempt: &'a Attempt, shown: Shown<'a>) -> Self {
        let record = &attempt.record;
        let (status, status_text) = match record.outcome {
            Some(Outcome::Succeeded) => (0, "success"),
            Some(_) => (2, "fail"),
            None => (3, "sending"),
        };
        let response = if !shown.with_content {
            Cow::Borrowed("{}")
        } else if record.status.is_none() {
            Cow::Borrowed(record.error.as_deref().unwrap_or_default())
        } else {
            String::from_utf8_lossy(&attempt.response)
        };
        Self {
            id: &record.attempt_id,
            msg_id: &record.message_id,
            endpoint_id: &record.endpoint_id,
            url: shown.url,
            response,
            response_status_code: record.status.unwrap_or(0),
            response_duration_ms: record
                .ended_at
                .map_or(0, |end| end.since(record.started_at).as_ms()),
            status,
            status_text,
            trigger_type: match record.trigger {
                Trigger::Scheduled => 0,
                Trigger::Manual => 1,
            },
            timestamp: Time(record.started_at),
            delivery_no: record.delivery_no.get(),
            attempt_no: record.attempt_no.get(),
            due_at: Time(record.due_at),
            outcome: record.outcome,
            msg: shown
                .msg
                .map(|message| MessageOut::new(message, shown.with_content)),
        }
    }
}

/// The state of a message at one endpoint, as Svix numbers it; 4 (canceled) is shown as 0 to clients that do not
/// know it.
pub(crate) const fn delivery_status(delivery: &Delivery, expanded: bool) -> (u8, &'static str) {
    match delivery.state {
        DeliveryState::Succeeded => (0, "success"),
        DeliveryState::Pending if delivery.attempts > 0 => (1, "pending"),
        DeliveryState::Dead => (2, "fail"),
        DeliveryState::Pending | DeliveryState::Sending => (3, "sending"),
        DeliveryState::Cancelled if expanded => (4, "canceled"),
        DeliveryState::Cancelled => (0, "success"),
    }
}

/// An endpoint of one message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageEndpointOut {
    #[serde(flatten)]
    endpoint: EndpointOut,
    status: u8,
    status_text: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt: Option<Time>,
    /// Ours: which delivery this is, and why it is final.
    delivery_no: u32,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl MessageEndpointOut {
    pub(crate) fn new(endpoint: Endpoint, delivery: Delivery, expanded: bool) -> Self {
        let (status, status_text) = delivery_status(&delivery, expanded);
        Self {
            endpoint: endpoint.into(),
            status,
            status_text,
            next_attempt: delivery.due_at.map(Time),
            delivery_no: delivery.delivery_no.get(),
            attempts: delivery.attempts,
            reason: delivery.reason,
        }
    }
}
