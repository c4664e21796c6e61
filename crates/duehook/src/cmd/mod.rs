//! One file a command.

pub(crate) mod appraise;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod completions;
pub(crate) mod contract;
pub(crate) mod demo;
pub(crate) mod drill;
pub(crate) mod endpoint;
pub(crate) mod explain;
pub(crate) mod health;
pub(crate) mod ledger;
pub(crate) mod listen;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod redrive;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod token;
pub(crate) mod verify;
