//! Reading a JSON body field by field: every problem is collected, and nothing is used until all of it is right
//! (nothing half-stored). Unknown fields are ignored: newer clients send more.

use crate::error::{ApiError, Issue, shorten};
use contract::Instant;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Longest event type and longest uid.
pub(crate) const NAME_CHARS: usize = 256;
/// Longest channel.
const CHANNEL_CHARS: usize = 128;
/// Most channels of a message or an endpoint.
const CHANNELS: usize = 10;
/// Most event types of an endpoint: far beyond any real list, so that one row stays small.
const EVENT_TYPES: usize = 1000;
/// Metadata in all, keys and values.
const METADATA_BYTES: usize = 4096;

/// A field as it was given. PATCH tells the three apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given<T> {
    /// Not there (or wrong, and already complained of).
    Absent,
    /// `null`.
    Null,
    /// There.
    Value(T),
}

impl<T> Given<T> {
    /// The value, if there is one.
    pub(crate) fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// A partial change: absent keeps, `null` clears.
    pub(crate) fn over(self, old: Option<T>) -> Option<T> {
        match self {
            Self::Absent => old,
            Self::Null => None,
            Self::Value(value) => Some(value),
        }
    }
}

/// A JSON object being read, with what was wrong so far.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    issues: Vec<Issue>,
}

impl<'a> Fields<'a> {
    /// Starts reading.
    pub(crate) const fn new(map: &'a Map<String, Value>) -> Self {
        Self {
            map,
            issues: Vec::new(),
        }
    }

    /// Ends reading: all problems at once.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        if self.issues.is_empty() {
            Ok(())
        } else {
            Err(ApiError::Invalid(self.issues))
        }
    }

    /// Complains of a field.
    pub(crate) fn wrong<T>(&mut self, field: &str, msg: impl Into<String>) -> Given<T> {
        self.issues.push(Issue::new("body", field, msg));
        Given::Absent
    }

    /// Complains of a field with a closer word.
    pub(crate) fn wrong_kind<T>(&mut self, kind: &'static str, field: &str, msg: &str) -> Given<T> {
        self.issues.push(Issue::of_kind(kind, "body", field, msg));
        Given::Absent
    }

    /// Whatever stands there.
    pub(crate) fn raw(&self, field: &str) -> Given<&'a Value> {
        match self.map.get(field) {
            None => Given::Absent,
            Some(Value::Null) => Given::Null,
            Some(value) => Given::Value(value),
        }
    }

    /// The first of two names that is there: a field and its older alias.
    pub(crate) fn either(&self, field: &'a str, alias: &'a str) -> &'a str {
        if !self.map.contains_key(field) && self.map.contains_key(alias) {
            alias
        } else {
            field
        }
    }

    /// A field that must be there: says so when it is absent or `null`.
    pub(crate) fn require<T>(&mut self, field: &str, given: Given<T>) -> Option<T> {
        let missing = !self.map.contains_key(field) || self.map.get(field).is_some_and(Value::is_null);
        if missing {
            self.wrong::<T>(field, "field required");
        }
        given.value()
    }

    fn convert<T>(&mut self, field: &str, due: &str, read: impl FnOnce(&'a Value) -> Option<T>) -> Given<T> {
        match self.raw(field) {
            Given::Absent => Given::Absent,
            Given::Null => Given::Null,
            Given::Value(value) => match read(value) {
                Some(read) => Given::Value(read),
                None => {
                    let found = shorten(&value.to_string());
                    self.wrong(field, format!("found {found}; expected {due}"))
                }
            },
        }
    }

    /// A text within a length in characters.
    pub(crate) fn text(&mut self, field: &str, least: usize, most: usize) -> Given<String> {
        let due = format!("a text of {least} to {most} characters");
        self.convert(field, &due, |value| {
            let text = value.as_str()?;
            (least..=most)
                .contains(&text.chars().count())
                .then(|| text.to_owned())
        })
    }

    /// A name of letters, digits, `-`, `_` and `.`.
    pub(crate) fn name(&mut self, field: &str) -> Given<String> {
        let due = "1 to 256 of the characters a-z A-Z 0-9 - _ .";
        self.convert(field, due, |value| {
            value
                .as_str()
                .filter(|text| is_name(text, NAME_CHARS))
                .map(str::to_owned)
        })
    }

    /// The caller's own name for a thing; must not look like an id of that kind.
    pub(crate) fn uid(&mut self, field: &str, prefix: &str) -> Given<String> {
        match self.name(field) {
            Given::Value(uid) if uid.starts_with(prefix) => {
                let msg = format!("a uid must not begin with `{prefix}`: that is how our ids begin");
                self.wrong_kind("invalid_uid_prefix", field, &msg)
            }
            given => given,
        }
    }

    /// True or false.
    pub(crate) fn flag(&mut self, field: &str) -> Given<bool> {
        self.convert(field, "true or false", Value::as_bool)
    }

    /// A whole number within bounds.
    pub(crate) fn number(&mut self, field: &str, least: u64, most: u64) -> Given<u64> {
        let due = format!("a whole number from {least} to {most}");
        self.convert(field, &due, |value| {
            value.as_u64().filter(|n| (least..=most).contains(n))
        })
    }

    /// Starts a second; in a partial change zero clears it.
    pub(crate) fn throttle_rate(&mut self, zero_clears: bool) -> Given<u16> {
        let field = self.either("throttleRate", "rateLimit");
        match self.number(field, u64::from(!zero_clears), u64::from(u16::MAX)) {
            Given::Value(0) | Given::Null => Given::Null,
            Given::Value(n) => u16::try_from(n).map_or(Given::Absent, Given::Value),
            Given::Absent => Given::Absent,
        }
    }

    /// A map of texts, limited in all.
    pub(crate) fn metadata(&mut self) -> Given<BTreeMap<String, String>> {
        let map = self.texts("metadata");
        if let Given::Value(map) = &map {
            let bytes: usize = map.iter().map(|(key, value)| key.len() + value.len()).sum();
            if bytes > METADATA_BYTES {
                return self.wrong(
                    "metadata",
                    format!("{bytes} bytes; keys and values together may have {METADATA_BYTES}"),
                );
            }
        }
        map
    }

    /// A map of texts.
    pub(crate) fn texts(&mut self, field: &str) -> Given<BTreeMap<String, String>> {
        self.convert(field, "a map from text to text", |value| {
            let entries = value.as_object()?.iter();
            entries
                .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect()
        })
    }

    /// A list of event types that filters an endpoint. An empty list clears it in a partial change.
    pub(crate) fn event_types(&mut self, empty_clears: bool) -> Given<Vec<String>> {
        let field = self.either("eventTypes", "filterTypes");
        let due = "different event types, each 1 to 256 of a-z A-Z 0-9 - _ .";
        self.list(field, due, EVENT_TYPES, empty_clears, |text| {
            is_name(text, NAME_CHARS)
        })
    }

    /// A list of channels. An empty list clears it in a partial change.
    pub(crate) fn channels(&mut self, empty_clears: bool) -> Given<Vec<String>> {
        let due = "1 to 10 different channels, each 1 to 128 of a-z A-Z 0-9 - _ . : +";
        self.list("channels", due, CHANNELS, empty_clears, is_channel)
    }

    fn list(
        &mut self,
        field: &str,
        due: &str,
        most: usize,
        empty_clears: bool,
        good: impl Fn(&str) -> bool,
    ) -> Given<Vec<String>> {
        let due = if empty_clears {
            due.to_owned()
        } else {
            format!("{due}; or null for no filter, instead of an empty list")
        };
        let read = self.convert(field, &due, |value| {
            let texts: Option<Vec<String>> = value
                .as_array()?
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect();
            texts.filter(|texts| {
                let different: BTreeSet<&String> = texts.iter().collect();
                texts.len() <= most
                    && different.len() == texts.len()
                    && (empty_clears || !texts.is_empty())
                    && texts.iter().all(|text| good(text))
            })
        });
        match read {
            Given::Value(texts) if texts.is_empty() => Given::Null,
            read => read,
        }
    }
}

/// Letters, digits, `-`, `_` and `.`, within a length.
pub(crate) fn is_name(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// What a channel may be called.
pub(crate) fn is_channel(text: &str) -> bool {
    (1..=CHANNEL_CHARS).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'+'))
}

/// RFC 3339 to a moment, rounded down to the millisecond.
pub(crate) fn parse_time(text: &str) -> Option<Instant> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Instant::from_unix_ms(
        time.as_nanosecond().div_euclid(1_000_000).try_into().ok()?,
    ))
}

/// A body that must be one JSON object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => {
            let found = shorten(&other.to_string());
            Err(ApiError::in_body(
                "",
                format!("found {found}; the body must be a JSON object"),
            ))
        }
        Err(_) if body.iter().all(u8::is_ascii_whitespace) => {
            Err(ApiError::in_body("", "the body is empty; send a JSON object"))
        }
        Err(error) => Err(ApiError::unreadable(format!(
            "the body is not JSON ({error}); send a JSON object"
        ))),
    }
}
