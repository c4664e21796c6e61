//! `attempts.tsv` (spec/retry-round.md), streamed: chunks are parsed on all cores and handed over in ledger order.
//!
//! Memory does not grow with the ledger: each worker holds one chunk and its parsed rows. The SHA-256 of the file is
//! taken on the way, and so are the hashes for the check for unique ids ([`crate::ids`]).

use crate::chunks::{Chunks, lines_in};
use crate::endpoints::EndpointIndex;
use crate::error::{FactsError, quoted};
use crate::hash::{Sha256Hex, fast, hex};
use crate::ids::{self, CANDIDATES, Ids, Sealed};
use crate::swar;
use crate::table::{self, BOM, Columns, without_cr};
use crate::turns::Turns;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const COLUMNS: Columns = &[
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

/// How to read.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads that parse.
    pub jobs: NonZeroUsize,
    /// Whether attempt ids are checked to be unique.
    pub check_ids: bool,
}

/// What became of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Rows after the header.
    pub rows: u64,
    /// SHA-256 of the file.
    pub sha256: Sha256Hex,
}

/// Reads the file at `path`, which errors call `name`, and hands every row to `fold`, in ledger order. `progress` is
/// told of bytes read, from any thread.
///
/// # Errors
/// The first row that is wrong, or what `fold` failed with; a repeated id once all rows are read.
pub fn scan<F, E>(
    path: &Path,
    name: &str,
    endpoints: &EndpointIndex,
    options: Options,
    progress: &(dyn Fn(u64) + Sync),
    fold: F,
) -> Result<Scanned, E>
where
    F: FnMut(&Row<'_>) -> Result<(), E> + Send,
    E: From<FactsError> + Send,
{
    let chunks = Chunks::open(path, name)?;
    let (scanned, ids) = scan_chunks(chunks, name, endpoints, options, progress, fold)?;
    if options.check_ids {
        check_ids(path, name, &ids, options.jobs)?;
    }
    Ok(scanned)
}

/// Reads from any source, on this thread alone and without the check for unique ids, which needs to read twice.
///
/// # Errors
/// The first row that is wrong, or what `fold` failed with.
pub fn read<F, E>(
    source: impl Read + Send,
    name: &str,
    endpoints: &EndpointIndex,
    fold: F,
) -> Result<Scanned, E>
where
    F: FnMut(&Row<'_>) -> Result<(), E> + Send,
    E: From<FactsError> + Send,
{
    let options = Options {
        jobs: NonZeroUsize::MIN,
        check_ids: false,
    };
    let (scanned, _) = scan_chunks(Chunks::of(source, name), name, endpoints, options, &|_| (), fold)?;
    Ok(scanned)
}

fn scan_chunks<R, F, E>(
    chunks: Chunks<R>,
    name: &str,
    endpoints: &EndpointIndex,
    options: Options,
    progress: &(dyn Fn(u64) + Sync),
    fold: F,
) -> Result<(Scanned, Vec<Sealed>), E>
where
    R: Read + Send,
    F: FnMut(&Row<'_>) -> Result<(), E> + Send,
    E: From<FactsError> + Send,
{
    let shared = Shared {
        name,
        endpoints,
        check_ids: options.check_ids,
        source: Mutex::new(chunks),
        hash: Turns::new(Sha256::new()),
        fold: Turns::new(Folding {
            fold,
            lines: 0,
            failed: None,
        }),
        stop: AtomicBool::new(false),
        progress,
    };
    let ids = run(options.jobs, || shared.work()).map_err(|error| FactsError::no_room(name, error))?;
    let Folding { lines, failed, .. } = shared.fold.into_inner();
    if let Some(error) = failed {
        return Err(error);
    }
    let Some(rows) = lines.checked_sub(1) else {
        return Err(table::empty(name, COLUMNS).into());
    };
    Ok((
        Scanned {
            rows,
            sha256: hex(shared.hash.into_inner()),
        },
        ids,
    ))
}

/// Runs `work` on so many threads, this one among them, and gathers what they bring.
fn run<T: Send>(jobs: NonZeroUsize, work: impl Fn() -> io::Result<T> + Sync) -> io::Result<Vec<T>> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs.get()).map(|_| scope.spawn(&work)).collect();
        let mut all = vec![work()];
        for other in others {
            match other.join() {
                Ok(result) => all.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all.into_iter().collect()
    })
}

struct Shared<'s, R, F, E> {
    name: &'s str,
    endpoints: &'s EndpointIndex,
    check_ids: bool,
    source: Mutex<Chunks<R>>,
    hash: Turns<Sha256>,
    fold: Turns<Folding<F, E>>,
    stop: AtomicBool,
    progress: &'s (dyn Fn(u64) + Sync),
}

struct Folding<F, E> {
    fold: F,
    /// Lines handed over so far, the header among them.
    lines: u64,
    failed: Option<E>,
}

/// Closes the turns when its thread panics, so that no other waits for it for ever.
struct OnPanic<'a, R, F, E>(&'a Shared<'a, R, F, E>);

impl<R, F, E> Drop for OnPanic<'_, R, F, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
            self.0.hash.close();
            self.0.fold.close();
        }
    }
}

impl<R, F, E> Shared<'_, R, F, E>
where
    R: Read,
    F: FnMut(&Row<'_>) -> Result<(), E> + Send,
    E: From<FactsError> + Send,
{
    /// One worker: chunk after chunk, until the file or the others' patience ends.
    fn work(&self) -> io::Result<Sealed> {
        let _closes = OnPanic(self);
        let mut chunk = Vec::new();
        let mut rows = Vec::new();
        let mut ids = Ids::default();
        let mut trouble = None;
        while let Some((ticket, read)) = self.next(&mut chunk) {
            rows.clear();
            let parsed = read.and_then(|()| {
                Parse {
                    name: self.name,
                    endpoints: self.endpoints,
                }
                .chunk(&chunk, ticket, &mut rows)
            });
            if self.check_ids && trouble.is_none() {
                trouble = rows
                    .iter()
                    .try_for_each(|row| ids.add(fast(row.id(&chunk))))
                    .err();
            }
            if trouble.is_some() {
                self.stop.store(true, Ordering::Relaxed);
            }
            self.hash.visit(ticket, |hash| hash.update(&chunk));
            self.fold.visit(ticket, |folding| {
                folding.take(&chunk, ticket, &rows, parsed, &self.stop);
            });
        }
        match trouble {
            Some(error) => Err(error),
            None => Ok(ids.seal()),
        }
    }

    fn next(&self, chunk: &mut Vec<u8>) -> Option<(u64, Result<(), FactsError>)> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let next = source.next(chunk);
        (self.progress)(u64::try_from(chunk.len()).unwrap_or(0));
        next
    }
}

impl<F, E> Folding<F, E>
where
    F: FnMut(&Row<'_>) -> Result<(), E>,
    E: From<FactsError>,
{
    fn take(
        &mut self,
        chunk: &[u8],
        ticket: u64,
        rows: &[Parsed],
        parsed: Result<u64, FactsError>,
        stop: &AtomicBool,
    ) {
        if self.failed.is_some() {
            return;
        }
        let header = u64::from(ticket == 0);
        let handed = rows
            .iter()
            .zip(self.lines + header + 1..)
            .try_for_each(|(row, line)| (self.fold)(&row.row(chunk, line)));
        let outcome = handed.and_then(|()| parsed.map_err(|error| error.shifted(self.lines).into()));
        match outcome {
            Ok(lines) => self.lines += lines,
            Err(error) => {
                self.failed = Some(error);
                stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// A row as a worker leaves it: its id by place in the chunk.
struct Parsed {
    id_start: u32,
    id_end: u32,
    endpoint: Option<u32>,
    attempt_no: i64,
    start_ts: i64,
    finish_ts: i64,
    status: Option<i64>,
}

impl Parsed {
    fn id<'c>(&self, chunk: &'c [u8]) -> &'c [u8] {
        chunk
            .get(self.id_start as usize..self.id_end as usize)
            .unwrap_or_default()
    }

    fn row<'c>(&self, chunk: &'c [u8], line: u64) -> Row<'c> {
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

struct Parse<'p> {
    name: &'p str,
    endpoints: &'p EndpointIndex,
}

impl Parse<'_> {
    /// Parses a chunk into rows; the number of its lines. An error counts its line from the start of the chunk, and
    /// the rows before it are there.
    fn chunk(&self, chunk: &[u8], ticket: u64, rows: &mut Vec<Parsed>) -> Result<u64, FactsError> {
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

/// Finds hashes that occur twice, on all cores; then reads the file again for the ids behind them.
fn check_ids(path: &Path, name: &str, ids: &[Sealed], jobs: NonZeroUsize) -> Result<(), FactsError> {
    let next = AtomicUsize::new(0);
    let found = run(jobs, || {
        let mut twice = Vec::new();
        loop {
            let bucket = next.fetch_add(1, Ordering::Relaxed);
            if !ids::buckets().contains(&bucket) {
                return Ok(twice);
            }
            twice.extend(ids::repeated(ids, bucket)?);
        }
    });
    let mut candidates: Vec<u64> = found.map_err(|error| FactsError::no_room(name, error))?.concat();
    candidates.sort_unstable();
    candidates
        .chunks(CANDIDATES)
        .try_for_each(|candidates| repeated_id(path, name, candidates))
}

/// The first id, of those with these hashes, that stands a second time. Different ids with one hash pass.
fn repeated_id(path: &Path, name: &str, candidates: &[u64]) -> Result<(), FactsError> {
    let candidates: HashSet<u64> = candidates.iter().copied().collect();
    let mut first_lines: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut chunks = Chunks::open(path, name)?;
    let mut chunk = Vec::new();
    let lines = AtomicU64::new(0);
    while let Some((_, read)) = chunks.next(&mut chunk) {
        read?;
        let before = lines.fetch_add(lines_in(&chunk), Ordering::Relaxed);
        for (line, n) in chunk.split(|byte| *byte == b'\n').zip(before + 1..) {
            let id = line.split(|byte| *byte == b'\t').next().unwrap_or_default();
            if n == 1 || id.is_empty() || !candidates.contains(&fast(id)) {
                continue;
            }
            if let Some(first) = first_lines.insert(id.to_vec(), n) {
                let found = format!("{} a second time; it is in line {first} already", quoted(id));
                let error =
                    FactsError::new(name, found, "give each attempt its own id").in_column("attempt_id");
                return Err(error.at(n, without_cr(line)));
            }
        }
    }
    Ok(())
}
