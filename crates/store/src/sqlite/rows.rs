//! Rows into the types of `model`, and their parts into columns.

use super::codes::{self, unsigned, wait};
use crate::{App, AppKey, ContractKey, Due, Endpoint, EndpointKey, Message, Result, Secret, StoreError};
use bytes::Bytes;
use contract::{AppId, BootInstant, EndpointId, Instant, MessageId};
use rusqlite::Row;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A list of texts as its column holds it: JSON.
pub(super) fn list_text(list: Option<&[String]>) -> Option<String> {
    list.map(|list| serde_json::Value::from(list.to_vec()).to_string())
}

pub(super) fn list(text: Option<String>) -> Result<Option<Vec<String>>> {
    text.map(|text| json(&text)).transpose()
}

pub(super) fn map_text(map: &BTreeMap<String, String>) -> String {
    let entries = map.iter().map(|(key, value)| (key.clone(), value.clone().into()));
    serde_json::Value::Object(entries.collect()).to_string()
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt {
        reason: format!("a column of JSON cannot be read: {error}"),
        source: Some(Box::new(error)),
    })
}

/// Secrets as their column holds them: `[[key, expires_at], …]`.
pub(super) fn secrets_text(secrets: &[Secret]) -> String {
    let pairs = secrets.iter().map(|secret| {
        let expires = secret.expires_at.map(Instant::as_unix_ms);
        serde_json::json!([secret.key, expires])
    });
    serde_json::Value::Array(pairs.collect()).to_string()
}

fn secrets(text: &str) -> Result<Vec<Secret>> {
    let pairs: Vec<(String, Option<i64>)> = json(text)?;
    let secret = |(key, expires): (String, Option<i64>)| Secret {
        key,
        expires_at: expires.map(Instant::from_unix_ms),
    };
    Ok(pairs.into_iter().map(secret).collect())
}

pub(super) fn bits(id: u128) -> [u8; 16] {
    id.to_be_bytes()
}

pub(super) fn id(row: &Row<'_>, at: usize) -> Result<u128> {
    Ok(u128::from_be_bytes(row.get::<_, [u8; 16]>(at)?))
}

pub(super) fn instant(row: &Row<'_>, at: usize) -> Result<Instant> {
    Ok(Instant::from_unix_ms(row.get(at)?))
}

pub(super) fn maybe_instant(row: &Row<'_>, at: usize) -> Result<Option<Instant>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(Instant::from_unix_ms))
}

pub(super) fn maybe_contract(row: &Row<'_>, at: usize) -> Result<Option<ContractKey>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(ContractKey))
}

fn throttle(row: &Row<'_>, at: usize) -> Result<Option<u16>> {
    let rate: Option<i64> = row.get(at)?;
    rate.map(|rate| u16::try_from(rate).map_err(|_| codes::damaged("throttle_rate", rate)))
        .transpose()
}

/// The columns that [`app`] reads.
pub(super) const APP: &str = "key, id, uid, name, throttle_rate, metadata, contract, created_at, updated_at";

pub(super) fn app(row: &Row<'_>) -> Result<App> {
    Ok(App {
        key: AppKey(row.get(0)?),
        id: AppId::from_bits(id(row, 1)?),
        uid: row.get(2)?,
        name: row.get(3)?,
        throttle_rate: throttle(row, 4)?,
        metadata: json(&row.get::<_, String>(5)?)?,
        contract: maybe_contract(row, 6)?,
        created_at: instant(row, 7)?,
        updated_at: instant(row, 8)?,
    })
}

/// The columns that [`endpoint`] reads.
pub(super) const ENDPOINT: &str = "key, id, app, uid, url, description, state, event_types, channels, \
     throttle_rate, metadata, headers, secrets, contract, failing_since, created_at, updated_at";

pub(super) fn endpoint(row: &Row<'_>) -> Result<Endpoint> {
    Ok(Endpoint {
        key: EndpointKey(row.get(0)?),
        id: EndpointId::from_bits(id(row, 1)?),
        app: AppKey(row.get(2)?),
        uid: row.get(3)?,
        url: row.get(4)?,
        description: row.get(5)?,
        state: codes::to_endpoint_state(row.get(6)?)?,
        event_types: list(row.get(7)?)?,
        channels: list(row.get(8)?)?,
        throttle_rate: throttle(row, 9)?,
        metadata: json(&row.get::<_, String>(10)?)?,
        headers: json(&row.get::<_, String>(11)?)?,
        secrets: secrets(&row.get::<_, String>(12)?)?,
        contract: maybe_contract(row, 13)?,
        failing_since: maybe_instant(row, 14)?,
        created_at: instant(row, 15)?,
        updated_at: instant(row, 16)?,
    })
}

/// The columns that [`message`] reads.
pub(super) const MESSAGE: &str = "message.id, message.app, message.event_id, message.event_type, \
     message.channels, message.payload, message.contract, message.accepted_at";
/// How many they are.
pub(super) const MESSAGE_COLUMNS: usize = 8;

/// Reads a message from the columns at `at` and behind.
pub(super) fn message(row: &Row<'_>, at: usize) -> Result<Message> {
    Ok(Message {
        id: MessageId::from_bits(id(row, at)?),
        app: AppKey(row.get(at + 1)?),
        event_id: row.get(at + 2)?,
        event_type: row.get(at + 3)?,
        channels: list(row.get(at + 4)?)?,
        payload: row.get::<_, Option<Vec<u8>>>(at + 5)?.map(Bytes::from),
        contract: maybe_contract(row, at + 6)?,
        accepted_at: instant(row, at + 7)?,
    })
}

/// The columns that [`due`] reads, [`MESSAGE`] first.
pub(super) const DUE: &str = "delivery.key, delivery.endpoint, delivery.delivery_no, delivery.opened_at, \
     delivery.first_started_at, delivery.attempts, delivery.due_at, delivery.due_mono, delivery.due_boot, \
     delivery.wait_ms, delivery.retry, delivery.trigger";
/// How many both are.
pub(super) const DUE_COLUMNS: usize = MESSAGE_COLUMNS + 12;

/// Reads a waiting delivery, its message's columns first. `boot` is the boot whose clock runs now.
pub(super) fn due(row: &Row<'_>, boot: i64) -> Result<Due> {
    const AT: usize = MESSAGE_COLUMNS;
    let due_mono: Option<i64> = row.get(AT + 7)?;
    let same_boot = row.get::<_, Option<i64>>(AT + 8)? == Some(boot);
    let due_boot = due_mono
        .filter(|_| same_boot)
        .map(|ms| unsigned("due_mono", ms))
        .transpose()?;
    Ok(Due {
        key: crate::DeliveryKey(row.get(AT)?),
        endpoint: EndpointKey(row.get(AT + 1)?),
        message: Arc::new(message(row, 0)?),
        delivery_no: codes::delivery_no(row.get(AT + 2)?)?,
        opened_at: instant(row, AT + 3)?,
        first_started_at: maybe_instant(row, AT + 4)?,
        attempts: codes::small("attempts", row.get(AT + 5)?)?,
        due_at: instant(row, AT + 6)?,
        due_boot: due_boot.map(BootInstant::from_ms),
        wait: wait(row.get(AT + 9)?)?,
        retry: maybe_contract(row, AT + 10)?,
        trigger: codes::to_trigger(row.get(AT + 11)?)?,
    })
}

/// All rows of a query, through a reader of rows.
pub(super) fn all<T>(
    statement: &mut rusqlite::Statement<'_>,
    params: impl rusqlite::Params,
    read: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The first row of a query.
pub(super) fn first<T>(
    statement: &mut rusqlite::Statement<'_>,
    params: impl rusqlite::Params,
    read: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}
