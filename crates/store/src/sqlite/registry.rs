//! What the writer knows without asking the database: endpoints and what they want, contracts by level, the node and
//! its boot, the last seq, the counts. Loaded at the start and after a commit that failed; changed only by the
//! writer, together with the rows it mirrors. It is the authority for "is this endpoint `active`" (I4), since
//! no other writer exists.

use super::codes;
use super::fault::{Fault, Outcome};
use crate::{AppKey, ContractKey, Counts, DeliveryKey, EndpointKey};
use contract::ledger::EndpointState;
use rusqlite::{Connection, OptionalExtension};
use std::collections::{BTreeMap, HashMap, HashSet};

/// An endpoint, as far as writing needs it.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) app: AppKey,
    pub(super) state: EndpointState,
    pub(super) event_types: Option<Vec<String>>,
    pub(super) channels: Option<Vec<String>>,
    pub(super) contract: Option<ContractKey>,
    pub(super) failing: bool,
    pub(super) pending: i64,
}

impl Target {
    /// An endpoint that names channels gets only messages that name one of them.
    fn takes(&self, channels: Option<&[String]>) -> bool {
        self.state != EndpointState::Deleted
            && match (&self.channels, channels) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(wanted), Some(named)) => named.iter().any(|channel| wanted.contains(channel)),
            }
    }
}

/// An application, as far as writing needs it.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) contract: Option<ContractKey>,
    /// Endpoints that want every type.
    any: Vec<EndpointKey>,
    by_type: HashMap<String, Vec<EndpointKey>>,
}

/// Deliveries by what became of them; the pending ones are counted at their endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) sending: i64,
    pub(super) succeeded: i64,
    pub(super) dead: i64,
    pub(super) cancelled: i64,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Registry {
    pub(super) seq: i64,
    pub(super) organisation: Option<ContractKey>,
    pub(super) tally: Tally,
    /// The node that runs on this store, after `node_up`, and the boot it runs in.
    pub(super) node: Option<Node>,
    apps: HashMap<AppKey, Group>,
    targets: BTreeMap<EndpointKey, Target>,
    /// Claims that a compiled-in fault keeps to itself; empty without it.
    pub(super) in_hand: HashSet<DeliveryKey>,
}

/// The node that owns the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) key: i64,
    pub(super) boot: i64,
}

impl Registry {
    /// Reads it from the database. The node stays: it is a fact of this process.
    pub(super) fn load(conn: &Connection, node: Option<Node>) -> Outcome<Self> {
        let mut found = Self {
            node,
            ..Self::default()
        };
        let sql = "SELECT seq, contract, succeeded, dead, cancelled FROM meta";
        (found.seq, found.organisation, found.tally) = conn.query_row(sql, [], |row| {
            let tally = Tally {
                sending: 0,
                succeeded: row.get(2)?,
                dead: row.get(3)?,
                cancelled: row.get(4)?,
            };
            Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?.map(ContractKey), tally))
        })?;
        found.tally.sending = conn.query_row(
            "SELECT count(*) FROM attempt JOIN delivery ON delivery.key = attempt.delivery
             WHERE attempt.outcome = 2 AND delivery.state = 3",
            [],
            |row| row.get(0),
        )?;
        found.load_apps(conn)?;
        found.load_targets(conn)?;
        Ok(found)
    }

    fn load_apps(&mut self, conn: &Connection) -> Outcome<()> {
        let mut statement = conn.prepare("SELECT key, contract FROM app WHERE deleted_at IS NULL")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let contract = row.get::<_, Option<i64>>(1)?.map(ContractKey);
            self.add_app(AppKey(row.get(0)?), contract);
        }
        Ok(())
    }

    fn load_targets(&mut self, conn: &Connection) -> Outcome<()> {
        let sql = "SELECT key, app, state, event_types, channels, contract, failing_since IS NOT NULL FROM endpoint";
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let target = Target {
                app: AppKey(row.get(1)?),
                state: codes::to_endpoint_state(row.get(2)?)?,
                event_types: super::rows::list(row.get(3)?)?,
                channels: super::rows::list(row.get(4)?)?,
                contract: row.get::<_, Option<i64>>(5)?.map(ContractKey),
                failing: row.get(6)?,
                pending: 0,
            };
            self.put_target(EndpointKey(row.get(0)?), target);
        }
        // The partial index alone: what waits, not what was ever done.
        let mut statement =
            conn.prepare("SELECT endpoint, count(*) FROM delivery WHERE state = 2 GROUP BY endpoint")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.count_pending(EndpointKey(row.get(0)?), row.get(1)?);
        }
        Ok(())
    }

    pub(super) fn add_app(&mut self, app: AppKey, contract: Option<ContractKey>) {
        self.apps.entry(app).or_default().contract = contract;
    }

    pub(super) fn remove_app(&mut self, app: AppKey) {
        self.apps.remove(&app);
    }

    pub(super) fn app(&self, app: AppKey) -> Option<&Group> {
        self.apps.get(&app)
    }

    pub(super) fn app_mut(&mut self, app: AppKey) -> Option<&mut Group> {
        self.apps.get_mut(&app)
    }

    pub(super) fn target(&self, endpoint: EndpointKey) -> Option<&Target> {
        self.targets.get(&endpoint)
    }

    pub(super) fn target_mut(&mut self, endpoint: EndpointKey) -> Option<&mut Target> {
        self.targets.get_mut(&endpoint)
    }

    /// The endpoints of an application, deleted ones left out.
    pub(super) fn targets_of(&self, app: AppKey) -> Vec<EndpointKey> {
        let of_app = |(key, target): (&EndpointKey, &Target)| {
            (target.app == app && target.state != EndpointState::Deleted).then_some(*key)
        };
        self.targets.iter().filter_map(of_app).collect()
    }

    /// Adds an endpoint or replaces it, with what it wants.
    pub(super) fn put_target(&mut self, key: EndpointKey, target: Target) {
        if let Some(old) = self.targets.remove(&key) {
            self.unlist(key, &old);
        }
        if target.state != EndpointState::Deleted
            && let Some(group) = self.apps.get_mut(&target.app)
        {
            match &target.event_types {
                None => insert_sorted(&mut group.any, key),
                Some(types) => {
                    for name in types {
                        insert_sorted(group.by_type.entry(name.clone()).or_default(), key);
                    }
                }
            }
        }
        self.targets.insert(key, target);
    }

    fn unlist(&mut self, key: EndpointKey, old: &Target) {
        let Some(group) = self.apps.get_mut(&old.app) else {
            return;
        };
        group.any.retain(|listed| *listed != key);
        for name in old.event_types.iter().flatten() {
            if let Some(listed) = group.by_type.get_mut(name) {
                listed.retain(|listed| *listed != key);
                if listed.is_empty() {
                    group.by_type.remove(name);
                }
            }
        }
    }

    /// Who wants a message, oldest endpoint first; `None` for an unknown application.
    pub(super) fn wanted_by(
        &self,
        app: AppKey,
        event_type: &str,
        channels: Option<&[String]>,
    ) -> Option<Vec<EndpointKey>> {
        let group = self.apps.get(&app)?;
        let typed = group.by_type.get(event_type).map_or(&[][..], Vec::as_slice);
        let takes = |key: &&EndpointKey| self.targets.get(key).is_some_and(|target| target.takes(channels));
        let mut wanted: Vec<EndpointKey> = group.any.iter().chain(typed).filter(takes).copied().collect();
        wanted.sort_unstable();
        Some(wanted)
    }

    /// The contract in force: the message's, else its endpoint's, application's, organisation's.
    pub(super) fn contract_for(
        &self,
        message: Option<ContractKey>,
        app: AppKey,
        endpoint: EndpointKey,
    ) -> Option<ContractKey> {
        message
            .or_else(|| self.targets.get(&endpoint).and_then(|target| target.contract))
            .or_else(|| self.apps.get(&app).and_then(|group| group.contract))
            .or(self.organisation)
    }

    /// May this endpoint be sent to? An allow-list: a state added later sends nothing (I4).
    pub(super) fn may_send(&self, endpoint: EndpointKey) -> bool {
        let state = self.targets.get(&endpoint).map(|target| target.state);
        if cfg!(feature = "bug-draining-let-through") {
            return state.is_some_and(|state| state != EndpointState::Disabled);
        }
        state == Some(EndpointState::Active)
    }

    pub(super) fn count_pending(&mut self, endpoint: EndpointKey, more: i64) {
        if let Some(target) = self.targets.get_mut(&endpoint) {
            target.pending += more;
        }
    }

    /// The counts as people see them.
    pub(super) fn counts(&self) -> Counts {
        let known = |n: i64| u64::try_from(n).unwrap_or(0);
        let mut counts = Counts {
            sending: known(self.tally.sending),
            succeeded: known(self.tally.succeeded),
            dead: known(self.tally.dead),
            cancelled: known(self.tally.cancelled),
            ..Counts::default()
        };
        for target in self.targets.values() {
            if target.state == EndpointState::Active {
                counts.pending += known(target.pending);
            } else {
                counts.held += known(target.pending);
            }
        }
        counts
    }

    /// Writes down what is kept once a commit.
    pub(super) fn save(&self, conn: &Connection) -> rusqlite::Result<()> {
        conn.prepare_cached("UPDATE meta SET seq = ?, succeeded = ?, dead = ?, cancelled = ?")?
            .execute((
                self.seq,
                self.tally.succeeded,
                self.tally.dead,
                self.tally.cancelled,
            ))?;
        Ok(())
    }
}

fn insert_sorted(list: &mut Vec<EndpointKey>, key: EndpointKey) {
    if let Err(at) = list.binary_search(&key) {
        list.insert(at, key);
    }
}

/// The number of a boot id, made when it is new.
pub(super) fn boot_key(conn: &Connection, id: &str) -> rusqlite::Result<i64> {
    let known = conn
        .query_row("SELECT key FROM boot WHERE id = ?", [id], |row| row.get(0))
        .optional()?;
    if let Some(key) = known {
        return Ok(key);
    }
    conn.execute("INSERT INTO boot (id) VALUES (?)", [id])?;
    Ok(conn.last_insert_rowid())
}

/// The counts of a store that somebody else writes to.
pub(super) fn count(conn: &Connection) -> crate::Result<Counts> {
    match Registry::load(conn, None) {
        Ok(known) => Ok(known.counts()),
        Err(Fault::Store(error)) => Err(error),
        Err(Fault::Sqlite(error)) => Err(error.into()),
    }
}
