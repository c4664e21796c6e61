//! What the audit says at the end. Every figure is counted, none is a constant (I8).

use super::Options;
use super::finding::{Finding, Findings, Kind};
use contract::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format's name and version.
const FORMAT: &str = "duehook-audit/1";

/// How much was judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// Messages.
    pub messages: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// Attempts.
    pub attempts: u64,
    /// Events of those deliveries.
    pub delivery_events: u64,
    /// Changes of endpoints' states.
    pub endpoint_events: u64,
    /// Events of nodes and clocks.
    pub node_events: u64,
    /// Contracts.
    pub contracts: u64,
    /// Requests in receivers' logs.
    pub receiver_lines: u64,
}

/// The report of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// `duehook-audit/1`.
    pub format: String,
    /// No breach was found.
    pub ok: bool,
    /// As of when, in Unix milliseconds.
    pub as_of: Instant,
    /// Only what happened since then, in Unix milliseconds.
    pub since: Option<Instant>,
    /// How much was judged.
    pub judged: Judged,
    /// Breaches by kind; only kinds that were found.
    pub counts: BTreeMap<Kind, u64>,
    /// Breaches in all; more than are listed, where there are very many.
    pub found: u64,
    /// The breaches.
    pub findings: Vec<Finding>,
    /// SHA-256 of every file that was judged.
    pub inputs: BTreeMap<String, String>,
}

impl Report {
    pub(super) fn new(
        options: Options,
        as_of: Instant,
        judged: Judged,
        inputs: BTreeMap<String, String>,
        findings: Findings,
    ) -> Self {
        let found = findings.counts.values().sum();
        Self {
            format: FORMAT.to_owned(),
            ok: found == 0,
            as_of,
            since: options.since,
            judged,
            counts: findings.counts,
            found,
            findings: findings.listed,
            inputs,
        }
    }

    /// The kinds that were found.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.counts.keys().copied()
    }
}
