//! `endpoints.tsv` (spec/retry-round.md): `endpoint_id state max_attempts backoff_base_s dispatch_gap_s`.
//!
//! Held in memory as a whole: endpoints are what a round may hold.

use crate::error::{FactsError, quoted};
use crate::hash::{FastBuild, Hashed, Sha256Hex, fast, sha256_hex};
use crate::table::{self, BOM, Columns, without_cr};
use contract::ledger::EndpointState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::path::Path;

const COLUMNS: Columns = &[
    "endpoint_id",
    "state",
    "max_attempts",
    "backoff_base_s",
    "dispatch_gap_s",
];

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its id, not empty.
    pub id: Box<str>,
    /// `active`, `draining` or `disabled`.
    pub state: EndpointState,
    /// At least 1.
    pub max_attempts: i64,
    /// Seconds, at least 0.
    pub backoff_base_s: i64,
    /// Seconds, at least 0.
    pub dispatch_gap_s: i64,
}

/// The endpoints of a round, in the order of the file.
#[derive(Debug)]
pub struct Endpoints {
    /// Each of them.
    pub list: Vec<Endpoint>,
    /// SHA-256 of the file.
    pub sha256: Sha256Hex,
}

/// From an endpoint's id to its place in the list. Asked once a row, so it compares hashes first and words then.
#[derive(Debug, Default)]
pub struct EndpointIndex {
    by_hash: HashMap<u64, (u32, Box<[u8]>), BuildHasherDefault<Hashed>>,
    /// Those whose hash another one has: as good as none.
    others: HashMap<Box<[u8]>, u32, FastBuild>,
}

impl EndpointIndex {
    /// The place of an id; none where it is unknown.
    #[must_use]
    #[inline]
    pub fn place(&self, id: &[u8]) -> Option<u32> {
        match self.by_hash.get(&fast(id)) {
            Some((place, known)) if same(known, id) => Some(*place),
            Some(_) => self.others.get(id).copied(),
            None => None,
        }
    }

    fn add(&mut self, id: &[u8], place: u32) {
        match self.by_hash.entry(fast(id)) {
            Entry::Vacant(free) => {
                free.insert((place, id.into()));
            }
            Entry::Occupied(_) => {
                self.others.insert(id.into(), place);
            }
        }
    }
}

/// Equality of short texts, a word at a time.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    let (words_a, rest_a) = a.as_chunks::<8>();
    let (words_b, rest_b) = b.as_chunks::<8>();
    a.len() == b.len() && words_a.iter().eq(words_b) && rest_a.iter().eq(rest_b)
}

impl Endpoints {
    /// Reads a file; `name` is what errors call it.
    ///
    /// # Errors
    /// The first thing that is wrong in it.
    pub fn read(path: &Path, name: &str) -> Result<Self, FactsError> {
        let bytes = std::fs::read(path).map_err(|error| FactsError::unreadable(name, error))?;
        Self::parse(&bytes, name)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// The first thing that is wrong in them.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Self, FactsError> {
        if let Some(error) = table::not_text(name, bytes) {
            return Err(error);
        }
        let text = bytes.strip_prefix(BOM).unwrap_or(bytes);
        let mut lines = text
            .split_inclusive(|byte| *byte == b'\n')
            .zip(1..)
            .map(|(line, n)| {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                (without_cr(line), n)
            });
        let Some((header, _)) = lines.next() else {
            return Err(table::empty(name, COLUMNS));
        };
        table::header(name, header, COLUMNS)?;
        let mut list = Vec::new();
        let mut seen: HashMap<Box<str>, u64, FastBuild> = HashMap::default();
        for (line, n) in lines {
            let endpoint = row(name, line).map_err(|error| error.at(n, line))?;
            if let Some(first) = seen.insert(endpoint.id.clone(), n) {
                let found = format!(
                    "{} a second time; it is in line {first} already",
                    quoted(endpoint.id.as_bytes())
                );
                let error = FactsError::new(name, found, "write each endpoint once").in_column("endpoint_id");
                return Err(error.at(n, line));
            }
            list.push(endpoint);
        }
        Ok(Self {
            list,
            sha256: sha256_hex(bytes),
        })
    }

    /// The way from ids to places.
    #[must_use]
    pub fn index(&self) -> EndpointIndex {
        let mut index = EndpointIndex::default();
        for (endpoint, place) in self.list.iter().zip(0..) {
            index.add(endpoint.id.as_bytes(), place);
        }
        index
    }
}

fn row(name: &str, line: &[u8]) -> Result<Endpoint, FactsError> {
    let cells: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    let [id, state, max_attempts, backoff_base_s, dispatch_gap_s] = cells[..] else {
        return Err(table::wrong_width(name, line, COLUMNS));
    };
    if id.is_empty() {
        return Err(FactsError::new(name, "an empty id", "write the endpoint's id").in_column("endpoint_id"));
    }
    let id = String::from_utf8_lossy(id).into();
    Ok(Endpoint {
        id,
        state: state_of(name, state)?,
        max_attempts: at_least(name, "max_attempts", max_attempts, 1)?,
        backoff_base_s: at_least(name, "backoff_base_s", backoff_base_s, 0)?,
        dispatch_gap_s: at_least(name, "dispatch_gap_s", dispatch_gap_s, 0)?,
    })
}

fn state_of(name: &str, word: &[u8]) -> Result<EndpointState, FactsError> {
    match word {
        b"active" => Ok(EndpointState::Active),
        b"draining" => Ok(EndpointState::Draining),
        b"disabled" => Ok(EndpointState::Disabled),
        other => {
            let found = format!("{}, an unknown state", quoted(other));
            Err(FactsError::new(name, found, "write active, draining or disabled").in_column("state"))
        }
    }
}

fn at_least(name: &str, column: &'static str, text: &[u8], least: i64) -> Result<i64, FactsError> {
    table::integer(text)
        .filter(|n| *n >= least)
        .ok_or_else(|| table::wrong_integer(name, column, text, Some(least), ""))
}
