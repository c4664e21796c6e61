//! Writing applications, endpoints, contracts by level and tokens: the rows, the endpoint events they owe, and the
//! registry beside them.

use super::codes;
use super::fault::{Outcome, is_taken};
use super::registry::Target;
use super::rows::{self, list_text, map_text, secrets_text};
use super::writer::Work;
use crate::{
    App, AppFields, AppKey, Change, ContractKey, Endpoint, EndpointFields, EndpointKey, Level, Secret,
    StoreError, Token,
};
use contract::ledger::EndpointState;
use contract::{AppId, EndpointId, Instant, TokenId};
use rusqlite::OptionalExtension;

fn not_found(what: &'static str, key: i64) -> StoreError {
    StoreError::NotFound {
        what,
        found: key.to_string(),
    }
}

/// A uid that is taken is the caller's; any other error is the database's.
fn or_taken<T>(result: rusqlite::Result<T>, what: &'static str, uid: Option<&str>) -> Outcome<T> {
    result.map_err(|error| match uid {
        Some(uid) if is_taken(&error) => StoreError::Conflict {
            what,
            found: uid.to_owned(),
        }
        .into(),
        _ => error.into(),
    })
}

/// The time part of a new id.
fn id_ms(now: Instant) -> u64 {
    u64::try_from(now.as_unix_ms()).unwrap_or(0)
}

fn read_app(work: &Work<'_>, key: AppKey) -> Outcome<App> {
    let sql = format!(
        "SELECT {} FROM app WHERE key = ? AND deleted_at IS NULL",
        rows::APP
    );
    let found = rows::first(&mut *work.conn.prepare_cached(&sql)?, [key.0], rows::app)?;
    found.ok_or_else(|| not_found("application", key.0).into())
}

fn read_endpoint(work: &Work<'_>, key: EndpointKey) -> Outcome<Endpoint> {
    let sql = format!(
        "SELECT {} FROM endpoint WHERE key = ? AND state <> 5",
        rows::ENDPOINT
    );
    let found = rows::first(&mut *work.conn.prepare_cached(&sql)?, [key.0], rows::endpoint)?;
    found.ok_or_else(|| not_found("endpoint", key.0).into())
}

pub(super) fn create_app(work: &mut Work<'_>, fields: &AppFields, now: Instant) -> Outcome<App> {
    let inserted = work
        .conn
        .prepare_cached(
            "INSERT INTO app (id, uid, name, throttle_rate, metadata, created_at, updated_at)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            rows::bits(AppId::at_unix_ms(id_ms(now)).bits()),
            &fields.uid,
            &fields.name,
            fields.throttle_rate,
            map_text(&fields.metadata),
            now.as_unix_ms(),
            now.as_unix_ms(),
        ));
    or_taken(inserted, "application uid", fields.uid.as_deref())?;
    let app = read_app(work, AppKey(work.conn.last_insert_rowid()))?;
    work.known.add_app(app.key, None);
    Ok(app)
}

pub(super) fn update_app(work: &mut Work<'_>, key: AppKey, fields: &AppFields, now: Instant) -> Outcome<App> {
    let updated = work
        .conn
        .prepare_cached(
            "UPDATE app SET uid = ?, name = ?, throttle_rate = ?, metadata = ?, updated_at = ?
             WHERE key = ? AND deleted_at IS NULL",
        )?
        .execute((
            &fields.uid,
            &fields.name,
            fields.throttle_rate,
            map_text(&fields.metadata),
            now.as_unix_ms(),
            key.0,
        ));
    or_taken(updated, "application uid", fields.uid.as_deref())?;
    let app = read_app(work, key)?;
    // Its throttle rate acts on its endpoints.
    for endpoint in work.known.targets_of(key) {
        work.changes.push(Change::Endpoint(endpoint));
    }
    Ok(app)
}

pub(super) fn delete_app(work: &mut Work<'_>, key: AppKey, by: &str, now: Instant) -> Outcome<()> {
    read_app(work, key)?;
    for endpoint in work.known.targets_of(key) {
        set_endpoint_state(
            work,
            endpoint,
            EndpointState::Deleted,
            "application deleted",
            by,
            now,
        )?;
    }
    work.conn
        .prepare_cached("UPDATE app SET deleted_at = ? WHERE key = ?")?
        .execute((now.as_unix_ms(), key.0))?;
    work.known.remove_app(key);
    Ok(())
}

/// A new endpoint, with the state and the secret it begins with.
pub(super) struct NewEndpoint {
    pub(super) app: AppKey,
    pub(super) fields: EndpointFields,
    pub(super) state: EndpointState,
    pub(super) secret: Secret,
    pub(super) by: String,
    pub(super) now: Instant,
}

pub(super) fn create_endpoint(work: &mut Work<'_>, new: &NewEndpoint) -> Outcome<Endpoint> {
    if work.known.app(new.app).is_none() {
        return Err(not_found("application", new.app.0).into());
    }
    let fields = &new.fields;
    let inserted = work
        .conn
        .prepare_cached(
            "INSERT INTO endpoint (id, app, uid, url, description, state, event_types, channels, throttle_rate,
                 metadata, headers, secrets, created_at, updated_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            rows::bits(EndpointId::at_unix_ms(id_ms(new.now)).bits()),
            new.app.0,
            &fields.uid,
            &fields.url,
            &fields.description,
            codes::endpoint_state(new.state),
            list_text(fields.event_types.as_deref()),
            list_text(fields.channels.as_deref()),
            fields.throttle_rate,
            map_text(&fields.metadata),
            map_text(&fields.headers),
            secrets_text(std::slice::from_ref(&new.secret)),
            new.now.as_unix_ms(),
            new.now.as_unix_ms(),
        ));
    or_taken(inserted, "endpoint uid", fields.uid.as_deref())?;
    let key = EndpointKey(work.conn.last_insert_rowid());
    write_event(work, key, new.state, "created", &new.by, new.now)?;
    registered(work, key)
}

/// Reads an endpoint back and tells the registry and everyone who listens.
fn registered(work: &mut Work<'_>, key: EndpointKey) -> Outcome<Endpoint> {
    let endpoint = read_endpoint(work, key)?;
    let pending = work.known.target(key).map_or(0, |target| target.pending);
    work.known.put_target(
        key,
        Target {
            app: endpoint.app,
            state: endpoint.state,
            event_types: endpoint.event_types.clone(),
            channels: endpoint.channels.clone(),
            contract: endpoint.contract,
            failing: endpoint.failing_since.is_some(),
            pending,
        },
    );
    work.changes.push(Change::Endpoint(key));
    Ok(endpoint)
}

pub(super) fn update_endpoint(
    work: &mut Work<'_>,
    key: EndpointKey,
    fields: &EndpointFields,
    now: Instant,
) -> Outcome<Endpoint> {
    let updated = work
        .conn
        .prepare_cached(
            "UPDATE endpoint SET uid = ?, url = ?, description = ?, event_types = ?, channels = ?,
                 throttle_rate = ?, metadata = ?, headers = ?, updated_at = ?
             WHERE key = ? AND state <> 5",
        )?
        .execute((
            &fields.uid,
            &fields.url,
            &fields.description,
            list_text(fields.event_types.as_deref()),
            list_text(fields.channels.as_deref()),
            fields.throttle_rate,
            map_text(&fields.metadata),
            map_text(&fields.headers),
            now.as_unix_ms(),
            key.0,
        ));
    or_taken(updated, "endpoint uid", fields.uid.as_deref())?;
    registered(work, key)
}

pub(super) fn set_secrets(
    work: &mut Work<'_>,
    key: EndpointKey,
    secrets: &[Secret],
    now: Instant,
) -> Outcome<()> {
    let sql = "UPDATE endpoint SET secrets = ?, updated_at = ? WHERE key = ? AND state <> 5";
    let changed = work
        .conn
        .prepare_cached(sql)?
        .execute((secrets_text(secrets), now.as_unix_ms(), key.0))?;
    if changed == 0 {
        return Err(not_found("endpoint", key.0).into());
    }
    work.changes.push(Change::Endpoint(key));
    Ok(())
}

/// Writes the state and its event; the same state again writes nothing. `Deleted` is final.
pub(super) fn set_endpoint_state(
    work: &mut Work<'_>,
    key: EndpointKey,
    state: EndpointState,
    why: &str,
    by: &str,
    now: Instant,
) -> Outcome<Endpoint> {
    let mut endpoint = read_endpoint(work, key)?;
    if endpoint.state == state {
        return Ok(endpoint);
    }
    endpoint.state = state;
    endpoint.updated_at = now;
    if state == EndpointState::Active {
        endpoint.failing_since = None;
    }
    work.conn
        .prepare_cached("UPDATE endpoint SET state = ?, updated_at = ?, failing_since = ? WHERE key = ?")?
        .execute((
            codes::endpoint_state(state),
            now.as_unix_ms(),
            endpoint.failing_since.map(Instant::as_unix_ms),
            key.0,
        ))?;
    write_event(work, key, state, why, by, now)?;
    if let Some(mut target) = work.known.target(key).cloned() {
        target.state = state;
        target.failing = endpoint.failing_since.is_some();
        work.known.put_target(key, target);
    }
    work.changes.push(Change::Endpoint(key));
    Ok(endpoint)
}

fn write_event(
    work: &mut Work<'_>,
    key: EndpointKey,
    state: EndpointState,
    why: &str,
    by: &str,
    at: Instant,
) -> Outcome<()> {
    let seq = work.next_seq();
    work.conn
        .prepare_cached(
            "INSERT INTO endpoint_event (seq, endpoint, at, state, why, by) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            seq,
            key.0,
            at.as_unix_ms(),
            codes::endpoint_state(state),
            Some(why).filter(|why| !why.is_empty()),
            by,
        ))?;
    Ok(())
}

pub(super) fn set_failing_since(
    work: &mut Work<'_>,
    key: EndpointKey,
    since: Option<Instant>,
) -> Outcome<()> {
    let sql = "UPDATE endpoint SET failing_since = ? WHERE key = ? AND failing_since IS NOT ?";
    let ms = since.map(Instant::as_unix_ms);
    work.conn.prepare_cached(sql)?.execute((ms, key.0, ms))?;
    if let Some(target) = work.known.target_mut(key) {
        target.failing = since.is_some();
    }
    Ok(())
}

pub(super) fn put_contract(work: &Work<'_>, rev: &str, canonical: &str) -> Outcome<ContractKey> {
    let sql = "SELECT key, canonical FROM contract WHERE rev = ?";
    let known = work
        .conn
        .prepare_cached(sql)?
        .query_row([rev], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    if let Some((key, text)) = known {
        if text != canonical {
            return Err(StoreError::Conflict {
                what: "contract revision",
                found: rev.to_owned(),
            }
            .into());
        }
        return Ok(ContractKey(key));
    }
    work.conn
        .prepare_cached("INSERT INTO contract (rev, canonical) VALUES (?, ?)")?
        .execute((rev, canonical))?;
    Ok(ContractKey(work.conn.last_insert_rowid()))
}

pub(super) fn set_contract(work: &mut Work<'_>, level: Level, contract: Option<ContractKey>) -> Outcome<()> {
    if let Some(key) = contract
        && !work
            .conn
            .prepare_cached("SELECT 1 FROM contract WHERE key = ?")?
            .exists([key.0])?
    {
        return Err(not_found("contract", key.0).into());
    }
    let value = contract.map(|contract| contract.0);
    match level {
        Level::Organisation => {
            work.conn
                .prepare_cached("UPDATE meta SET contract = ?")?
                .execute([value])?;
            work.known.organisation = contract;
            work.changes.push(Change::Contracts);
        }
        Level::App(key) => {
            read_app(work, key)?;
            work.conn
                .prepare_cached("UPDATE app SET contract = ? WHERE key = ?")?
                .execute((value, key.0))?;
            if let Some(group) = work.known.app_mut(key) {
                group.contract = contract;
            }
            work.changes.push(Change::Contracts);
        }
        Level::Endpoint(key) => {
            read_endpoint(work, key)?;
            let sql = "UPDATE endpoint SET contract = ? WHERE key = ?";
            work.conn.prepare_cached(sql)?.execute((value, key.0))?;
            registered(work, key)?;
        }
    }
    Ok(())
}

pub(super) fn put_token(work: &Work<'_>, token: &Token) -> Outcome<()> {
    let inserted = work
        .conn
        .prepare_cached("INSERT INTO token (id, name, hash, created_at, revoked_at) VALUES (?, ?, ?, ?, ?)")?
        .execute((
            rows::bits(token.id.bits()),
            &token.name,
            &token.hash[..],
            token.created_at.as_unix_ms(),
            token.revoked_at.map(Instant::as_unix_ms),
        ));
    or_taken(inserted, "token", Some(&token.id.to_string())).map(drop)
}

/// A token that was revoked before keeps its first time.
pub(super) fn revoke_token(work: &Work<'_>, id: TokenId, now: Instant) -> Outcome<()> {
    let sql = "UPDATE token SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?";
    let revoked = work
        .conn
        .prepare_cached(sql)?
        .execute((now.as_unix_ms(), rows::bits(id.bits())))?;
    if revoked == 0 {
        return Err(StoreError::NotFound {
            what: "token",
            found: id.to_string(),
        }
        .into());
    }
    Ok(())
}
