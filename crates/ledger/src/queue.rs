//! `queue.jsonl` (spec/queue-round.md), line by line: `{"id", "channel", "attempts", "received_at_value"}`.
//!
//! Items are independent: a line that cannot be read is handed over as malformed, with its number and what is wrong,
//! and the reading goes on.

use crate::channels::plain;
use crate::error::{FactsError, quoted};
use crate::hash::{FastBuild, Sha256Hex, hex};
use crate::table::{self, BOM, without_cr};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

/// A longer line is malformed, whatever it holds.
const MAX_LINE: u64 = 1024 * 1024;

/// A waiting item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Its id, unique in the queue.
    pub id: Cow<'a, str>,
    /// Its channel.
    pub channel: Cow<'a, str>,
    /// Attempts already made, at least 0.
    pub attempts: i64,
    /// When it was received, in the contract's unit.
    pub received_at_value: i64,
}

/// A line of the queue.
#[derive(Debug)]
pub enum Line<'a> {
    /// An item.
    Item(Item<'a>),
    /// What is wrong with it.
    Malformed(FactsError),
}

/// Reads the file at `path`, which errors call `name`, and hands over every line that is not blank, with its number.
/// The result is the SHA-256 of the file.
///
/// # Errors
/// The file cannot be read, or what `each` failed with.
pub fn scan<E: From<FactsError>>(
    path: &Path,
    name: &str,
    progress: &dyn Fn(u64),
    each: impl FnMut(u64, Line<'_>) -> Result<(), E>,
) -> Result<Sha256Hex, E> {
    let unreadable = |error| FactsError::unreadable(name, error);
    let file = File::open(path).map_err(unreadable)?;
    read(BufReader::with_capacity(256 * 1024, file), name, progress, each)
}

/// Reads from any source, as [`scan`] does from a file.
///
/// # Errors
/// The source cannot be read, or what `each` failed with.
pub fn read<E: From<FactsError>>(
    mut source: impl BufRead,
    name: &str,
    progress: &dyn Fn(u64),
    mut each: impl FnMut(u64, Line<'_>) -> Result<(), E>,
) -> Result<Sha256Hex, E> {
    let mut hash = Sha256::new();
    let mut first_lines: HashMap<Box<str>, u64, FastBuild> = HashMap::default();
    let mut bytes = Vec::new();
    let mut number = 0;
    let unreadable = |error| FactsError::unreadable(name, error);
    loop {
        bytes.clear();
        let read = source
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut bytes)
            .map_err(unreadable)?;
        if read == 0 {
            return Ok(hex(hash));
        }
        number += 1;
        progress(u64::try_from(read).unwrap_or(0));
        hash.update(&bytes);
        let mut text = bytes.as_slice();
        if number == 1 {
            text = text.strip_prefix(BOM).unwrap_or(text);
        }
        let too_long = !bytes.ends_with(b"\n") && u64::try_from(read) == Ok(MAX_LINE);
        let line = if too_long {
            skip_line(&mut source, &mut hash).map_err(unreadable)?;
            let found = format!("a line of more than {MAX_LINE} bytes");
            Line::Malformed(FactsError::new(name, found, "write one item a line"))
        } else {
            let text = without_cr(text.strip_suffix(b"\n").unwrap_or(text));
            if text.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
                continue;
            }
            item(name, text, number, &mut first_lines).map_or_else(Line::Malformed, Line::Item)
        };
        each(number, line)?;
    }
}

/// Reads to the end of an overlong line, which counts in the hash and nowhere else.
fn skip_line(source: &mut impl BufRead, hash: &mut Sha256) -> std::io::Result<()> {
    loop {
        let buffer = source.fill_buf()?;
        let end = memchr::memchr(b'\n', buffer).map(|newline| newline + 1);
        let used = end.unwrap_or(buffer.len());
        hash.update(buffer.get(..used).unwrap_or_default());
        source.consume(used);
        if end.is_some() || used == 0 {
            return Ok(());
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    channel: Cow<'a, str>,
    #[serde(borrow)]
    attempts: &'a RawValue,
    #[serde(borrow)]
    received_at_value: &'a RawValue,
}

fn item<'a>(
    name: &str,
    text: &'a [u8],
    number: u64,
    first_lines: &mut HashMap<Box<str>, u64, FastBuild>,
) -> Result<Item<'a>, FactsError> {
    if let Some(error) = table::not_text(name, text) {
        return Err(error.at(number, text));
    }
    let right = "write {\"id\": \"…\", \"channel\": \"…\", \"attempts\": 0, \"received_at_value\": 0}";
    let raw: Raw<'a> = serde_json::from_slice(text)
        .map_err(|error| FactsError::new(name, plain(&error), right).at(number, text))?;
    let item = Item {
        attempts: number_of(name, "attempts", raw.attempts, Some(0))
            .map_err(|error| error.at(number, text))?,
        received_at_value: number_of(name, "received_at_value", raw.received_at_value, None)
            .map_err(|error| error.at(number, text))?,
        id: raw.id,
        channel: raw.channel,
    };
    // The first line that bears an id keeps it.
    if let Some(first) = first_lines.get(&*item.id) {
        let found = format!(
            "{} a second time; it is in line {first} already",
            quoted(item.id.as_bytes())
        );
        return Err(FactsError::new(name, found, "give each item its own id")
            .in_column("id")
            .at(number, text));
    }
    first_lines.insert(item.id.as_ref().into(), number);
    Ok(item)
}

/// An integer of 64 bits, written as one: 1.0 and 1e3 are none.
fn number_of(
    name: &str,
    column: &'static str,
    raw: &RawValue,
    least: Option<i64>,
) -> Result<i64, FactsError> {
    let text = raw.get().as_bytes();
    table::integer(text)
        .filter(|n| least.is_none_or(|least| *n >= least))
        .ok_or_else(|| table::wrong_integer(name, column, text, least, ""))
}
