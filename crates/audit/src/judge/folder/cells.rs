//! A row's cells, whichever format they come in: no value, a text, or a number.

use crate::facts::{FactsError, quoted};
use crate::json::Pairs;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Tab-separated, with a header.
    Tsv,
    /// One JSON object a line.
    Jsonl,
}

enum Cell<'a> {
    Null,
    Text(Cow<'a, str>),
    /// Numbers of JSON; a TSV file has text alone.
    Number(String),
}

/// One row of a file.
pub(super) struct Row<'a> {
    name: &'a str,
    line: u64,
    columns: &'static [&'static str],
    format: Format,
    cells: Vec<Cell<'a>>,
}

impl<'a> Row<'a> {
    pub(super) fn parse(
        name: &'a str,
        line: u64,
        text: &'a str,
        columns: &'static [&'static str],
        format: Format,
    ) -> Result<Self, FactsError> {
        let wrong = |found: String, right: String| FactsError::new(name, Some(line), found, right);
        let cells = match format {
            Format::Tsv => tsv(text, columns.len()),
            Format::Jsonl => jsonl(text, columns),
        };
        let cells = cells.map_err(|(found, right)| wrong(found, right))?;
        Ok(Self {
            name,
            line,
            columns,
            format,
            cells,
        })
    }

    fn cell(&self, column: &str) -> &Cell<'a> {
        let place = self.columns.iter().position(|name| *name == column);
        place
            .and_then(|place| self.cells.get(place))
            .unwrap_or(&Cell::Null)
    }

    /// What stands in a column, for a message.
    pub(super) fn shown(&self, column: &str) -> String {
        match self.cell(column) {
            Cell::Null => "no value".to_owned(),
            Cell::Text(text) => quoted(text),
            Cell::Number(number) => quoted(number),
        }
    }

    pub(super) fn wrong(&self, column: &str, found: &str, right: &str) -> FactsError {
        FactsError::new(
            self.name,
            Some(self.line),
            format!("{found} in `{column}`"),
            right,
        )
    }

    pub(super) fn optional_text(&self, column: &str) -> Result<Option<String>, FactsError> {
        match self.cell(column) {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text.clone().into_owned())),
            Cell::Number(_) => Err(self.wrong(column, &self.shown(column), "a text")),
        }
    }

    pub(super) fn text(&self, column: &str) -> Result<String, FactsError> {
        self.optional_text(column)?
            .ok_or_else(|| self.wrong(column, "no value", "a text"))
    }

    /// An id: a text that is not empty.
    pub(super) fn id(&self, column: &str) -> Result<String, FactsError> {
        let text = self.text(column)?;
        if text.is_empty() {
            return Err(self.wrong(column, "an empty text", "an id"));
        }
        Ok(text)
    }

    pub(super) fn optional<T: TryFrom<i128>>(&self, column: &str) -> Result<Option<T>, FactsError> {
        let digits = match (self.cell(column), self.format) {
            (Cell::Null, _) => return Ok(None),
            (Cell::Text(text), Format::Tsv) => text.as_ref(),
            (Cell::Number(number), _) => number.as_str(),
            (Cell::Text(_), Format::Jsonl) => "",
        };
        let plain = digits.strip_prefix('-').unwrap_or(digits);
        let number = Some(digits)
            .filter(|_| plain.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|digits| digits.parse::<i128>().ok())
            .and_then(|number| T::try_from(number).ok());
        let bits = 8 * size_of::<T>();
        number.map(Some).ok_or_else(|| {
            self.wrong(
                column,
                &self.shown(column),
                &format!("a whole number of {bits} bits"),
            )
        })
    }

    pub(super) fn number<T: TryFrom<i128>>(&self, column: &str) -> Result<T, FactsError> {
        self.optional(column)?
            .ok_or_else(|| self.wrong(column, "no value", "a whole number"))
    }

    pub(super) fn optional_word<T: Copy + fmt::Display>(
        &self,
        column: &str,
        words: &[T],
        from: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, FactsError> {
        let Some(text) = self.optional_text(column)? else {
            return Ok(None);
        };
        from(&text).map(Some).ok_or_else(|| {
            let all: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            self.wrong(column, &quoted(&text), &format!("one of {}", all.join(", ")))
        })
    }

    pub(super) fn word<T: Copy + fmt::Display>(
        &self,
        column: &str,
        words: &[T],
        from: impl Fn(&str) -> Option<T>,
    ) -> Result<T, FactsError> {
        self.optional_word(column, words, from)?
            .ok_or_else(|| self.wrong(column, "no value", "a word"))
    }
}

type Wrong = (String, String);

fn tsv(text: &str, columns: usize) -> Result<Vec<Cell<'_>>, Wrong> {
    if text.contains('\0') {
        return Err(("a NUL".to_owned(), "text".to_owned()));
    }
    let cells: Vec<Cell<'_>> = text.split('\t').map(tsv_cell).collect::<Result<_, _>>()?;
    if cells.len() == columns {
        return Ok(cells);
    }
    Err((
        format!("{} columns", cells.len()),
        format!("{columns}, tab-separated"),
    ))
}

fn tsv_cell(cell: &str) -> Result<Cell<'_>, Wrong> {
    if cell == "-" {
        return Ok(Cell::Null);
    }
    if cell == r"\-" {
        return Ok(Cell::Text(Cow::Borrowed("-")));
    }
    if !cell.contains('\\') {
        return Ok(Cell::Text(Cow::Borrowed(cell)));
    }
    let mut text = String::with_capacity(cell.len());
    let mut rest = cell.chars();
    while let Some(c) = rest.next() {
        text.push(match c {
            '\\' => match rest.next() {
                Some('\\') => '\\',
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                _ => {
                    let right = r"the escapes \\, \t, \n and \r".to_owned();
                    return Err((quoted(cell), right));
                }
            },
            c => c,
        });
    }
    Ok(Cell::Text(Cow::Owned(text)))
}

fn jsonl<'a>(text: &'a str, columns: &[&str]) -> Result<Vec<Cell<'a>>, Wrong> {
    let right = || format!("an object with {}", columns.join(", "));
    let pairs: Pairs<Value> =
        serde_json::from_str(text).map_err(|error| (format!("{} ({error})", quoted(text)), right()))?;
    let values = pairs.only(columns).map_err(|found| (found, right()))?;
    let cell = |(value, column): (Value, &&str)| match value {
        Value::Null => Ok(Cell::Null),
        Value::String(text) => Ok(Cell::Text(Cow::Owned(text))),
        Value::Number(number) => Ok(Cell::Number(number.to_string())),
        other => Err((format!("{} in `{column}`", quoted(&other.to_string())), right())),
    };
    values.into_iter().zip(columns).map(cell).collect()
}
