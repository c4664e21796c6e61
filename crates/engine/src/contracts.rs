//! The contracts in force: read once, kept parsed, found without touching the store.
//!
//! A contract comes from one level, whole (spec/contract.md, "Where a clause comes from"): `[retry]` and `[outcome]`
//! from message > endpoint > application > organisation, `[endpoint]` from endpoint > application > organisation.

use contract::Contract;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use store::{AppKey, ContractKey, Endpoint, Level, Page, Store, StoreError};

/// The page size when all applications are read.
const PAGE: u32 = 500;

/// A contract and its row.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) key: ContractKey,
    pub(crate) contract: Arc<Contract>,
}

/// What applications and the organisation say.
#[derive(Clone, Debug)]
struct Levels {
    organisation: ContractKey,
    apps: HashMap<AppKey, ContractKey>,
    throttles: HashMap<AppKey, u16>,
}

/// All contracts that were needed so far. There are few, and an attempt in flight may need any of them: none is
/// dropped.
#[derive(Debug)]
pub(crate) struct Contracts {
    known: RwLock<HashMap<ContractKey, Arc<Contract>>>,
    levels: RwLock<Levels>,
}

impl Contracts {
    /// Reads the levels. An organisation without a contract is given the default preset, in the store, where a
    /// person can see and change it.
    pub(crate) async fn load(store: &dyn Store) -> store::Result<Self> {
        let levels = read_levels(store).await?;
        let contracts = Self {
            known: RwLock::default(),
            levels: RwLock::new(levels),
        };
        contracts.learn_levels(store).await?;
        Ok(contracts)
    }

    /// Reads the levels again: one of them changed.
    pub(crate) async fn reload(&self, store: &dyn Store) -> store::Result<()> {
        let levels = read_levels(store).await?;
        *self.levels.write().unwrap_or_else(PoisonError::into_inner) = levels;
        self.learn_levels(store).await
    }

    async fn learn_levels(&self, store: &dyn Store) -> store::Result<()> {
        let keys: Vec<ContractKey> = {
            let levels = self.levels.read().unwrap_or_else(PoisonError::into_inner);
            let apps = levels.apps.values().copied();
            std::iter::once(levels.organisation).chain(apps).collect()
        };
        for key in keys {
            self.learn(store, key).await?;
        }
        Ok(())
    }

    /// A contract that was learnt.
    pub(crate) fn get(&self, key: ContractKey) -> Option<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let contract = Arc::clone(known.get(&key)?);
        Some(Known { key, contract })
    }

    /// A contract, read from the store when it is not known yet.
    pub(crate) async fn learn(&self, store: &dyn Store, key: ContractKey) -> store::Result<Known> {
        if let Some(known) = self.get(key) {
            return Ok(known);
        }
        let stored = store.contract(key).await?.ok_or_else(|| StoreError::Corrupt {
            reason: format!("contract row {} is referred to and missing", key.0),
            source: None,
        })?;
        let parsed = Contract::from_canonical(&stored.canonical).map_err(|error| StoreError::Corrupt {
            reason: format!("contract {} cannot be read", stored.rev),
            source: Some(Box::new(error)),
        })?;
        let contract = Arc::new(parsed);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(key, Arc::clone(&contract));
        Ok(Known { key, contract })
    }

    /// The contract that holds at an endpoint.
    pub(crate) async fn of_endpoint(&self, store: &dyn Store, endpoint: &Endpoint) -> store::Result<Known> {
        let key = {
            let levels = self.levels.read().unwrap_or_else(PoisonError::into_inner);
            let of_app = levels.apps.get(&endpoint.app).copied();
            endpoint.contract.or(of_app).unwrap_or(levels.organisation)
        };
        self.learn(store, key).await
    }

    /// The throttle that holds at an endpoint, in starts a second.
    pub(crate) fn throttle_of(&self, endpoint: &Endpoint) -> Option<u16> {
        let levels = self.levels.read().unwrap_or_else(PoisonError::into_inner);
        let of_app = levels.throttles.get(&endpoint.app).copied();
        endpoint.throttle_rate.or(of_app)
    }
}

async fn read_levels(store: &dyn Store) -> store::Result<Levels> {
    let organisation = match store.organisation_contract().await? {
        Some(key) => key,
        None => set_default(store).await?,
    };
    let apps = store.app_contracts().await?.into_iter().collect();
    let throttles = read_throttles(store).await?;
    Ok(Levels {
        organisation,
        apps,
        throttles,
    })
}

async fn read_throttles(store: &dyn Store) -> store::Result<HashMap<AppKey, u16>> {
    let mut throttles = HashMap::new();
    let mut after = None;
    loop {
        let page = Page {
            limit: PAGE,
            after,
            newest_first: false,
        };
        let apps = store.apps(page).await?;
        let Some(last) = apps.last() else {
            return Ok(throttles);
        };
        after = Some(last.id);
        let throttled = apps.iter().filter_map(|app| Some((app.key, app.throttle_rate?)));
        throttles.extend(throttled);
    }
}

async fn set_default(store: &dyn Store) -> store::Result<ContractKey> {
    let preset = contract::presets().first();
    let default = preset
        .and_then(|preset| preset.contract().ok())
        .ok_or_else(|| StoreError::Corrupt {
            reason: "the default contract that ships cannot be read".to_owned(),
            source: None,
        })?;
    let key = store.put_contract(&default.rev(), &default.canonical()).await?;
    store.set_contract(Level::Organisation, Some(key)).await?;
    tracing::info!(
        rev = default.rev(),
        "no contract was set: the default preset is in force"
    );
    Ok(key)
}
