//! From the bytes of a chunk to rows: a fast way for the common line, and a plain one that words the errors.

use crate::endpoints::EndpointIndex;
use crate::error::FactsError;
use crate::swar;
use crate::table::{self, BOM, Columns, without_cr};

pub(super) const COLUMNS: Columns = &[
    "attempt_id",
    "endpoint_id",
    "attempt_no",
    "start_ts",
    "finish_ts",
    "status",
    "error",
];

/// One row, valid by itself: `attempt_no` ≥ 1 and `finish_ts` ≥ `start_ts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its line in the file, from 1.
    pub line: u64,
    /// Its id, not empty: see [`Row::attempt_id`].
    id: &'a [u8],
    /// The place of its endpoint in the list of endpoints; none where that endpoint is unknown.
    pub endpoint: Option<u32>,
    /// At least 1.
    pub attempt_no: i64,
    /// Seconds.
    pub start_ts: i64,
    /// Seconds, not before `start_ts`.
    pub finish_ts: i64,
    /// None where no response came.
    pub status: Option<i64>,
}

impl<'a> Row<'a> {
    /// Its id, not empty.
    #[must_use]
    pub fn attempt_id(&self) -> &'a str {
        // The chunk is known to be UTF-8, and tabs are no part of a character.
        std::str::from_utf8(self.id).unwrap_or_default()
    }
}

/// A row as a worker leaves it: its id by place in the chunk.
pub(super) struct Parsed {
    id_start: u32,
    id_end: u32,
    endpoint: Option<u32>,
    attempt_no: i64,
    start_ts: i64,
    finish_ts: i64,
    status: Option<i64>,
}

impl Parsed {
    pub(super) fn id<'c>(&self, chunk: &'c [u8]) -> &'c [u8] {
        chunk
            .get(self.id_start as usize..self.id_end as usize)
            .unwrap_or_default()
    }

    pub(super) fn row<'c>(&self, chunk: &'c [u8], line: u64) -> Row<'c> {
        Row {
            line,
            id: self.id(chunk),
            endpoint: self.endpoint,
            attempt_no: self.attempt_no,
            start_ts: self.start_ts,
            finish_ts: self.finish_ts,
            status: self.status,
        }
    }
}

/// Parses the chunks of one file.
#[derive(Clone, Copy)]
pub(super) struct Parse<'p> {
    pub(super) name: &'p str,
    pub(super) endpoints: &'p EndpointIndex,
}

impl Parse<'_> {
    /// Parses a chunk into rows; the number of its lines. An error counts its line from the start of the chunk, and
    /// the rows before it are there.
    pub(super) fn chunk(&self, chunk: &[u8], ticket: u64, rows: &mut Vec<Parsed>) -> Result<u64, FactsError> {
        let not_text = table::not_text(self.name, chunk);
        let good_lines = not_text.as_ref().and_then(FactsError::line).unwrap_or(u64::MAX);
        let mut start = if ticket == 0 && chunk.starts_with(BOM) {
            BOM.len()
        } else {
            0
        };
        let mut lines = 0;
        if ticket == 0 && good_lines > 1 {
            let end = memchr::memchr(b'\n', chunk).unwrap_or(chunk.len());
            table::header(
                self.name,
                without_cr(chunk.get(start..end).unwrap_or_default()),
                COLUMNS,
            )?;
            (start, lines) = (end + 1, 1);
        }
        while start < chunk.len() && lines + 1 < good_lines {
            let (row, end) = match self.common_line(chunk, start) {
                Some(common) => common,
                None => self.line(chunk, start).map_err(|error| {
                    let rest = chunk.get(start..).unwrap_or_default();
                    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                    error.at(lines + 1, without_cr(rest.get(..end).unwrap_or_default()))
                })?,
            };
            rows.push(row);
            (start, lines) = (end + 1, lines + 1);
        }
        not_text.map_or(Ok(lines), Err)
    }

    /// Parses the line that begins at `start`, as long as nothing about it is unusual; where it ends.
    fn common_line(&self, chunk: &[u8], start: usize) -> Option<(Parsed, usize)> {
        let tab = |at: usize| (chunk.get(at) == Some(&b'\t')).then_some(at + 1);
        let id_end = swar::separator(chunk, start)?;
        let endpoint_start = tab(id_end)?;
        let endpoint_end = swar::separator(chunk, endpoint_start)?;
        let (attempt_no, end) = swar::digits(chunk, tab(endpoint_end)?)?;
        let (start_ts, end) = swar::digits(chunk, tab(end)?)?;
        let (finish_ts, end) = swar::digits(chunk, tab(end)?)?;
        let status_start = tab(end)?;
        let (status, end) = if chunk.get(status_start) == Some(&b'-') {
            (None, status_start + 1)
        } else {
            let (status, end) = swar::digits(chunk, status_start)?;
            (Some(status), end)
        };
        let end = swar::separator(chunk, tab(end)?)?;
        let endpoint = chunk.get(endpoint_start..endpoint_end)?;
        let sound = id_end > start && !endpoint.is_empty() && attempt_no >= 1 && finish_ts >= start_ts;
        if !sound || chunk.get(end) != Some(&b'\n') {
            return None;
        }
        let row = Parsed {
            id_start: u32::try_from(start).ok()?,
            id_end: u32::try_from(id_end).ok()?,
            endpoint: self.endpoints.place(endpoint),
            attempt_no,
            start_ts,
            finish_ts,
            status,
        };
        Some((row, end))
    }

    /// Parses the line that begins at `start`, whatever is in it; where it ends.
    fn line(&self, chunk: &[u8], start: usize) -> Result<(Parsed, usize), FactsError> {
        let rest = chunk.get(start..).unwrap_or_default();
        let mut tabs = [0_usize; 6];
        let mut seen = 0;
        let mut end = rest.len();
        for at in memchr::memchr2_iter(b'\t', b'\n', rest) {
            if rest.get(at) == Some(&b'\n') {
                end = at;
                break;
            }
            match tabs.get_mut(seen) {
                Some(tab) => *tab = at,
                None => return Err(self.wrong_width(rest)),
            }
            seen += 1;
        }
        if seen != tabs.len() {
            return Err(self.wrong_width(rest));
        }
        let cell = |n: usize| rest.get(tabs[n - 1] + 1..tabs[n]).unwrap_or_default();
        let id = rest.get(..tabs[0]).unwrap_or_default();
        let endpoint = cell(1);
        if id.is_empty() {
            return Err(self.empty("attempt_id"));
        }
        if endpoint.is_empty() {
            return Err(self.empty("endpoint_id"));
        }
        let start_ts = self.integer("start_ts", cell(3), "")?;
        let finish_ts = self.integer("finish_ts", cell(4), "")?;
        let row = Parsed {
            // A chunk is far smaller than 4 GiB.
            id_start: u32::try_from(start).unwrap_or(u32::MAX),
            id_end: u32::try_from(start + tabs[0]).unwrap_or(u32::MAX),
            endpoint: self.endpoints.place(endpoint),
            attempt_no: self.attempt_no(cell(2))?,
            start_ts,
            finish_ts,
            status: self.status(cell(5))?,
        };
        if finish_ts < start_ts {
            let found = format!("{finish_ts}, which is before start_ts {start_ts}");
            let right = "write an attempt that does not end before it starts";
            return Err(FactsError::new(self.name, found, right).in_column("finish_ts"));
        }
        Ok((row, start + end))
    }

    fn attempt_no(&self, text: &[u8]) -> Result<i64, FactsError> {
        table::integer(text)
            .filter(|n| *n >= 1)
            .ok_or_else(|| table::wrong_integer(self.name, "attempt_no", text, Some(1), ""))
    }

    fn status(&self, text: &[u8]) -> Result<Option<i64>, FactsError> {
        if text == b"-" {
            return Ok(None);
        }
        self.integer("status", text, ", or - where no response came")
            .map(Some)
    }

    fn integer(&self, column: &'static str, text: &[u8], or: &str) -> Result<i64, FactsError> {
        table::integer(text).ok_or_else(|| table::wrong_integer(self.name, column, text, None, or))
    }

    fn empty(&self, column: &'static str) -> FactsError {
        FactsError::new(self.name, "an empty id", "write the id").in_column(column)
    }

    fn wrong_width(&self, rest: &[u8]) -> FactsError {
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        table::wrong_width(
            self.name,
            without_cr(rest.get(..end).unwrap_or_default()),
            COLUMNS,
        )
    }
}
