//! `channels.json` (spec/queue-round.md): `{"name": {"enabled": true}, …}`, nothing more and nothing twice.

use crate::error::FactsError;
use crate::hash::{Sha256Hex, sha256_hex};
use crate::table::{self, BOM};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

const RIGHT: &str = "write {\"name\": {\"enabled\": true}, …}";

/// The channels of a round.
#[derive(Debug)]
pub struct Channels {
    /// Whether each is enabled, by name.
    pub enabled: BTreeMap<String, bool>,
    /// SHA-256 of the file.
    pub sha256: Sha256Hex,
}

impl Channels {
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
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(FactsError::new(name, "an empty file", RIGHT));
        }
        if let Some(error) = table::not_text(name, bytes) {
            return Err(error);
        }
        let text = bytes.strip_prefix(BOM).unwrap_or(bytes);
        let Listed(enabled) = serde_json::from_slice(text).map_err(|error| {
            let n = u64::try_from(error.line()).unwrap_or(0).max(1);
            let line = text
                .split(|byte| *byte == b'\n')
                .nth(error.line().saturating_sub(1))
                .unwrap_or_default();
            FactsError::new(name, plain(&error), RIGHT).at(n, table::without_cr(line))
        })?;
        Ok(Self {
            enabled,
            sha256: sha256_hex(bytes),
        })
    }
}

/// The reason without its place, which is told apart.
pub(crate) fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Channel {
    enabled: bool,
}

struct Listed(BTreeMap<String, bool>);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ListedVisitor)
    }
}

struct ListedVisitor;

impl<'de> Visitor<'de> for ListedVisitor {
    type Value = Listed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of channels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Listed, A::Error> {
        let mut enabled = BTreeMap::new();
        while let Some((name, channel)) = map.next_entry::<String, Channel>()? {
            if enabled.contains_key(&name) {
                return Err(A::Error::custom(format_args!(
                    "the channel `{name}` a second time"
                )));
            }
            enabled.insert(name, channel.enabled);
        }
        Ok(Listed(enabled))
    }
}
