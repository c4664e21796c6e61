//! Ids that stand twice, among any number of rows in bounded memory: hashes are sorted in runs on disk, and only ids whose
//! hashes meet are looked at again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Hashes held before they go to disk: 16 MiB.
const HELD: usize = 2 * 1024 * 1024;

/// Takes ids and tells which hashes came more than once.
pub(super) struct Hashes {
    held: Vec<u64>,
    limit: usize,
    runs: Vec<File>,
}

impl Default for Hashes {
    fn default() -> Self {
        Self::with_limit(HELD)
    }
}

/// The hash of an id, the same for one id in one run of the program.
pub(super) fn hash(id: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(id)
}

impl Hashes {
    const fn with_limit(limit: usize) -> Self {
        Self {
            held: Vec::new(),
            limit,
            runs: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, id: &str) -> io::Result<()> {
        self.held.push(hash(id));
        if self.held.len() >= self.limit {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.held.sort_unstable();
        let mut run = BufWriter::new(tempfile::tempfile()?);
        for hash in self.held.drain(..) {
            run.write_all(&hash.to_le_bytes())?;
        }
        let mut file = run.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        self.runs.push(file);
        Ok(())
    }

    /// The hashes that came more than once: of ids that stand twice, and perhaps of a few that only look alike.
    pub(super) fn repeated(mut self) -> io::Result<HashSet<u64>> {
        let mut repeated = HashSet::new();
        let mut before = None;
        let mut see = |hash: u64| {
            if before.replace(hash) == Some(hash) {
                repeated.insert(hash);
            }
        };
        if self.runs.is_empty() {
            self.held.sort_unstable();
            self.held.iter().copied().for_each(see);
            return Ok(repeated);
        }
        self.spill()?;
        let mut runs: Vec<_> = self.runs.into_iter().map(BufReader::new).collect();
        let mut heads = BinaryHeap::new();
        for (n, run) in runs.iter_mut().enumerate() {
            heads.extend(next(run)?.map(|hash| Reverse((hash, n))));
        }
        while let Some(Reverse((hash, n))) = heads.pop() {
            see(hash);
            if let Some(run) = runs.get_mut(n) {
                heads.extend(next(run)?.map(|hash| Reverse((hash, n))));
            }
        }
        Ok(repeated)
    }
}

fn next(run: &mut impl Read) -> io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    match run.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(u64::from_le_bytes(bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_twice_is_found_within_a_run_and_across_runs() {
        for limit in [1000, 7, 1] {
            let mut hashes = Hashes::with_limit(limit);
            for n in 0..100 {
                hashes.take(&format!("a-{n}")).unwrap();
            }
            for n in [3, 98] {
                hashes.take(&format!("a-{n}")).unwrap();
            }
            let due = HashSet::from([hash("a-3"), hash("a-98")]);
            assert_eq!(hashes.repeated().unwrap(), due, "{limit}");
        }
    }
}
