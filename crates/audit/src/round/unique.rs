//! Ids that stand twice, among any number of rows in bounded memory: hashes are dealt into parts by their highest bits,
//! the parts lie on disk, and only ids whose hashes meet are looked at again.

use std::collections::HashSet;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Hashes held before they go to disk: 16 MiB.
const HELD: usize = 2 * 1024 * 1024;
/// Parts on disk: each is small enough to sort in a processor's own memory, up to some hundred million rows.
const PARTS: usize = 64;
const PART_SHIFT: u32 = u64::BITS - PARTS.trailing_zeros();

/// Takes ids' hashes and tells which came more than once.
pub(super) struct Hashes {
    held: Vec<u64>,
    limit: usize,
    parts: Vec<BufWriter<File>>,
}

impl Default for Hashes {
    fn default() -> Self {
        Self::with_limit(HELD)
    }
}

/// The hash of an id, the same for one id always: two passes over a file must agree.
pub(super) fn hash(id: &str) -> u64 {
    foldhash::quality::FixedState::with_seed(0).hash_one(id)
}

impl Hashes {
    const fn with_limit(limit: usize) -> Self {
        Self {
            held: Vec::new(),
            limit,
            parts: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, hash: u64) -> io::Result<()> {
        self.held.push(hash);
        if self.held.len() >= self.limit {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        while self.parts.len() < PARTS {
            self.parts
                .push(BufWriter::with_capacity(32 * 1024, tempfile::tempfile()?));
        }
        for hash in self.held.drain(..) {
            let part = usize::try_from(hash >> PART_SHIFT).unwrap_or(0);
            self.parts[part].write_all(&hash.to_le_bytes())?;
        }
        Ok(())
    }

    /// The hashes that came more than once: of ids that stand twice, and perhaps of a few that only look alike.
    pub(super) fn repeated(mut self) -> io::Result<HashSet<u64>> {
        if self.parts.is_empty() {
            return Ok(twice(&mut self.held).collect());
        }
        self.spill()?;
        let mut files = Vec::new();
        for part in self.parts.drain(..) {
            files.push(part.into_inner().map_err(io::IntoInnerError::into_error)?);
        }
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Ok(HashSet::new())));
        let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let part = part(file);
                        let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        match (part, &mut *found) {
                            (Ok(mut hashes), Ok(repeated)) => repeated.extend(twice(&mut hashes)),
                            (Err(error), _) => *found = Err(error),
                            (Ok(_), Err(_)) => {}
                        }
                    }
                });
            }
        });
        found
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Reads a part back.
fn part(mut file: &File) -> io::Result<Vec<u64>> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let (hashes, _) = bytes.as_chunks::<8>();
    let mut hashes: Vec<u64> = hashes.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    hashes.sort_unstable();
    Ok(hashes)
}

/// What stands twice. Sorting what is sorted costs next to nothing.
fn twice(hashes: &mut [u64]) -> impl Iterator<Item = u64> {
    hashes.sort_unstable();
    hashes
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_twice_is_found_in_memory_and_on_disk() {
        for limit in [1000, 7, 1] {
            let mut hashes = Hashes::with_limit(limit);
            for n in 0..100 {
                hashes.take(hash(&format!("a-{n}"))).unwrap();
            }
            for n in [3, 98] {
                hashes.take(hash(&format!("a-{n}"))).unwrap();
            }
            let due = HashSet::from([hash("a-3"), hash("a-98")]);
            assert_eq!(hashes.repeated().unwrap(), due, "{limit}");
        }
    }
}
