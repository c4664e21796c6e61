//! The check for unique attempt ids: candidates by hash, then the ids themselves.

use super::run;
use crate::chunks::{Chunks, lines_in};
use crate::error::{FactsError, quoted};
use crate::hash::fast;
use crate::ids::{self, CANDIDATES, Sealed};
use crate::table::without_cr;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Finds hashes that occur twice, on all cores; then reads the file again for the ids behind them.
pub(super) fn check_ids(
    path: &Path,
    name: &str,
    ids: &[Sealed],
    jobs: NonZeroUsize,
) -> Result<(), FactsError> {
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
    let mut lines = 0;
    while let Some((_, read)) = chunks.next(&mut chunk) {
        read?;
        let before = lines;
        lines += lines_in(&chunk);
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
