//! Reads tab-separated facts: a header, then rows of exactly its columns; integers of 64 bits, nothing guessed.

use super::Failed;
use crate::files::read_text;
use std::path::Path;

/// The lines of a text file from the first on, each with its number; a byte-order mark and the CR of a CRLF left away.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let body = text.strip_suffix('\n').unwrap_or(text);
    let empty = text.is_empty();
    let split = body
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line));
    (1..).zip(split).filter(move |_| !empty)
}

/// A table of facts.
pub(super) struct Table {
    name: String,
    text: String,
    columns: &'static [&'static str],
}

/// A row, cut at its tabs.
pub(super) struct Row<'a> {
    table: &'a Table,
    pub(super) line: usize,
    cells: Vec<&'a str>,
}

impl Table {
    /// Reads a file and checks its header.
    pub(super) fn read(path: &Path, columns: &'static [&'static str]) -> Result<Self, Failed> {
        let text = read_text(path).map_err(|error| Failed::Facts(error.to_string()))?;
        let table = Self {
            name: path.display().to_string(),
            text,
            columns,
        };
        let header = lines(&table.text)
            .next()
            .map(|(_, line)| line.split('\t').collect::<Vec<_>>());
        if header.as_deref() == Some(columns) {
            return Ok(table);
        }
        Err(table.wrong(
            1,
            &format!("expected a header with the columns {}", columns.join(" ")),
        ))
    }

    /// Its rows, in order.
    pub(super) fn rows(&self) -> impl Iterator<Item = Result<Row<'_>, Failed>> {
        lines(&self.text).skip(1).map(|(line, text)| {
            let cells: Vec<&str> = text.split('\t').collect();
            if cells.len() == self.columns.len() {
                Ok(Row {
                    table: self,
                    line,
                    cells,
                })
            } else {
                Err(self.wrong(
                    line,
                    &format!("found {} columns, expected {}", cells.len(), self.columns.len()),
                ))
            }
        })
    }

    pub(super) fn wrong(&self, line: usize, what: &str) -> Failed {
        Failed::Facts(format!("{}:{line}: {what}", self.name))
    }
}

impl<'a> Row<'a> {
    pub(super) fn text(&self, column: usize) -> &'a str {
        self.cells.get(column).copied().unwrap_or_default()
    }

    /// An id: any text but none.
    pub(super) fn id(&self, column: usize) -> Result<&'a str, Failed> {
        let text = self.text(column);
        if text.is_empty() {
            Err(self.wrong(column, "a text"))
        } else {
            Ok(text)
        }
    }

    /// An integer of 64 bits, not below `least`.
    pub(super) fn integer(&self, column: usize, least: i64) -> Result<i64, Failed> {
        let text = self.text(column);
        // `parse` alone would let a plus sign through.
        let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let number = if plain { text.parse::<i64>().ok() } else { None };
        number
            .filter(|n| *n >= least)
            .ok_or_else(|| self.wrong(column, &format!("an integer not below {least}")))
    }

    pub(super) fn wrong(&self, column: usize, due: &str) -> Failed {
        let name = self.table.columns.get(column).copied().unwrap_or_default();
        self.table.wrong(
            self.line,
            &format!("{name}: found `{}`, expected {due}", self.text(column)),
        )
    }
}
