//! `attempts.tsv` (spec/retry-round.md), streamed: chunks are parsed on all cores and handed over in ledger order.
//!
//! Memory does not grow with the ledger: each worker holds one chunk and its parsed rows. The SHA-256 of the file is
//! taken on the way, and so are the hashes for the check for unique ids (`ids`).

mod parse;
mod unique;

pub use parse::Row;

use crate::chunks::Chunks;
use crate::endpoints::EndpointIndex;
use crate::error::FactsError;
use crate::hash::{Sha256Hex, fast, hex};
use crate::ids::{Ids, Sealed};
use crate::table;
use crate::turns::Turns;
use parse::{COLUMNS, Parse, Parsed};
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use unique::check_ids;

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
