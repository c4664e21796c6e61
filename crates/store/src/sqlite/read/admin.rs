//! Reading applications, endpoints, contracts and tokens.

use crate::sqlite::codes;
use crate::sqlite::rows::{self, APP, ENDPOINT};
use crate::{App, AppKey, ContractKey, Endpoint, EndpointKey, Page, Result, StoredContract, Token};
use contract::ledger::EndpointEvent;
use contract::{AppId, EndpointId, Seq, TokenId};
use rusqlite::Connection;

/// The ends of a page over 16-byte ids, and the words that order it.
pub(super) struct Bounds {
    /// Behind this id.
    pub(super) after: [u8; 16],
    /// `> ? ORDER BY` or `< ? ORDER BY`, and how.
    pub(super) compare: &'static str,
    pub(super) order: &'static str,
    pub(super) limit: i64,
}

impl Bounds {
    pub(super) fn of<Id>(page: &Page<Id>, to_bits: impl Fn(&Id) -> u128) -> Self {
        let after = page.after.as_ref().map(to_bits);
        let (compare, order, open) = if page.newest_first {
            ("<", "DESC", u128::MAX)
        } else {
            (">", "ASC", 0)
        };
        // No id is all zeros or all ones: they carry a version in their bits.
        Self {
            after: rows::bits(after.unwrap_or(open)),
            compare,
            order,
            limit: i64::from(page.limit),
        }
    }
}

pub(in crate::sqlite) fn app(conn: &Connection, id_or_uid: &str) -> Result<Option<App>> {
    if let Ok(id) = id_or_uid.parse::<AppId>() {
        let sql = format!("SELECT {APP} FROM app WHERE id = ? AND deleted_at IS NULL");
        let found = rows::first(
            &mut *conn.prepare_cached(&sql)?,
            [rows::bits(id.bits())],
            rows::app,
        )?;
        if found.is_some() {
            return Ok(found);
        }
    }
    let sql = format!("SELECT {APP} FROM app WHERE uid = ? AND deleted_at IS NULL");
    rows::first(&mut *conn.prepare_cached(&sql)?, [id_or_uid], rows::app)
}

pub(in crate::sqlite) fn apps(conn: &Connection, page: &Page<AppId>) -> Result<Vec<App>> {
    let Bounds {
        after,
        compare,
        order,
        limit,
    } = Bounds::of(page, |id| id.bits());
    let sql = format!(
        "SELECT {APP} FROM app WHERE deleted_at IS NULL AND id {compare} ? ORDER BY id {order} LIMIT ?"
    );
    rows::all(&mut *conn.prepare_cached(&sql)?, (after, limit), rows::app)
}

pub(in crate::sqlite) fn endpoint(
    conn: &Connection,
    app: AppKey,
    id_or_uid: &str,
) -> Result<Option<Endpoint>> {
    if let Ok(id) = id_or_uid.parse::<EndpointId>() {
        let found = endpoint_by_id(conn, id)?.filter(|found| found.app == app);
        if found.is_some() {
            return Ok(found);
        }
    }
    let sql = format!("SELECT {ENDPOINT} FROM endpoint WHERE app = ? AND uid = ? AND state <> 5");
    rows::first(
        &mut *conn.prepare_cached(&sql)?,
        (app.0, id_or_uid),
        rows::endpoint,
    )
}

pub(in crate::sqlite) fn endpoint_by_key(conn: &Connection, key: EndpointKey) -> Result<Option<Endpoint>> {
    let sql = format!("SELECT {ENDPOINT} FROM endpoint WHERE key = ?");
    rows::first(&mut *conn.prepare_cached(&sql)?, [key.0], rows::endpoint)
}

pub(in crate::sqlite) fn endpoint_by_id(conn: &Connection, id: EndpointId) -> Result<Option<Endpoint>> {
    let sql = format!("SELECT {ENDPOINT} FROM endpoint WHERE id = ? AND state <> 5");
    rows::first(
        &mut *conn.prepare_cached(&sql)?,
        [rows::bits(id.bits())],
        rows::endpoint,
    )
}

pub(in crate::sqlite) fn endpoints(
    conn: &Connection,
    app: Option<AppKey>,
    page: &Page<EndpointId>,
) -> Result<Vec<Endpoint>> {
    let Bounds {
        after,
        compare,
        order,
        limit,
    } = Bounds::of(page, |id| id.bits());
    let tail = format!("state <> 5 AND id {compare} ? ORDER BY id {order} LIMIT ?");
    match app {
        Some(app) => {
            let sql = format!("SELECT {ENDPOINT} FROM endpoint WHERE app = ? AND {tail}");
            rows::all(
                &mut *conn.prepare_cached(&sql)?,
                (app.0, after, limit),
                rows::endpoint,
            )
        }
        None => {
            let sql = format!("SELECT {ENDPOINT} FROM endpoint WHERE {tail}");
            rows::all(&mut *conn.prepare_cached(&sql)?, (after, limit), rows::endpoint)
        }
    }
}

pub(in crate::sqlite) fn endpoints_to_serve(conn: &Connection) -> Result<Vec<Endpoint>> {
    let sql = format!(
        "SELECT {ENDPOINT} FROM endpoint WHERE state <> 5
             OR EXISTS (SELECT 1 FROM delivery WHERE delivery.state = 2 AND delivery.endpoint = endpoint.key)
             OR key IN (SELECT endpoint FROM attempt WHERE outcome = 2)
         ORDER BY key"
    );
    rows::all(&mut *conn.prepare_cached(&sql)?, [], rows::endpoint)
}

pub(in crate::sqlite) fn last_endpoint_event(
    conn: &Connection,
    endpoint: EndpointKey,
) -> Result<Option<EndpointEvent>> {
    let sql = "SELECT endpoint_event.seq, endpoint.id, endpoint_event.at, endpoint_event.state,
                   endpoint_event.why, endpoint_event.by
               FROM endpoint_event JOIN endpoint ON endpoint.key = endpoint_event.endpoint
               WHERE endpoint_event.endpoint = ? ORDER BY endpoint_event.seq DESC LIMIT 1";
    rows::first(&mut *conn.prepare_cached(sql)?, [endpoint.0], endpoint_event)
}

pub(super) fn endpoint_event(row: &rusqlite::Row<'_>) -> Result<EndpointEvent> {
    Ok(EndpointEvent {
        seq: Seq::new(codes::unsigned("seq", row.get(0)?)?),
        endpoint_id: EndpointId::from_bits(rows::id(row, 1)?).to_string(),
        at: rows::instant(row, 2)?,
        state: codes::to_endpoint_state(row.get(3)?)?,
        why: row.get(4)?,
        by: row.get(5)?,
    })
}

pub(in crate::sqlite) fn organisation_contract(conn: &Connection) -> Result<Option<ContractKey>> {
    let sql = "SELECT contract FROM meta";
    Ok(rows::first(&mut *conn.prepare_cached(sql)?, [], |row| {
        rows::maybe_contract(row, 0)
    })?
    .flatten())
}

pub(in crate::sqlite) fn app_contracts(conn: &Connection) -> Result<Vec<(AppKey, ContractKey)>> {
    let sql = "SELECT key, contract FROM app WHERE contract IS NOT NULL AND deleted_at IS NULL ORDER BY key";
    rows::all(&mut *conn.prepare_cached(sql)?, [], |row| {
        Ok((AppKey(row.get(0)?), ContractKey(row.get(1)?)))
    })
}

pub(in crate::sqlite) fn contract(conn: &Connection, key: ContractKey) -> Result<Option<StoredContract>> {
    let sql = "SELECT key, rev, canonical FROM contract WHERE key = ?";
    rows::first(&mut *conn.prepare_cached(sql)?, [key.0], |row| {
        Ok(StoredContract {
            key: ContractKey(row.get(0)?),
            rev: row.get(1)?,
            canonical: row.get(2)?,
        })
    })
}

pub(in crate::sqlite) fn tokens(conn: &Connection) -> Result<Vec<Token>> {
    let sql = "SELECT id, name, hash, created_at, revoked_at FROM token ORDER BY id";
    rows::all(&mut *conn.prepare_cached(sql)?, [], |row| {
        Ok(Token {
            id: TokenId::from_bits(rows::id(row, 0)?),
            name: row.get(1)?,
            hash: row.get(2)?,
            created_at: rows::instant(row, 3)?,
            revoked_at: rows::maybe_instant(row, 4)?,
        })
    })
}
