//! Are these ids unique? In bounded memory, by spilling their hashes to a temporary file.
//!
//! Each worker collects 64-bit hashes; a full buffer is scattered into buckets by the top bits and written out. At the
//! end each bucket is put together from all buffers, sorted, and looked through for neighbours that are equal. Equal
//! hashes are candidates: whoever asks must compare the ids themselves.

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Hashes a worker holds: 4 MiB of them, and as much again while they are scattered.
const BUFFER: usize = 512 * 1024;
/// A bucket holds a 1024th of all ids: 8 MB of a thousand million.
const BUCKET_BITS: u32 = 10;
const BUCKETS: usize = 1 << BUCKET_BITS;
/// So many candidates are looked up at once.
pub(crate) const CANDIDATES: usize = 64 * 1024;

/// The ids that one worker has seen.
#[derive(Default)]
pub(crate) struct Ids {
    buffer: Vec<u64>,
    spilled: Option<Spilled>,
}

struct Spilled {
    file: File,
    runs: Vec<Run>,
}

/// A scattered buffer: where in the file it begins, and where each bucket begins and ends within it.
struct Run {
    at: u64,
    ends: Box<[u32]>,
}

impl Ids {
    pub(crate) fn add(&mut self, hash: u64) -> io::Result<()> {
        if self.buffer.len() == BUFFER {
            self.spill()?;
        }
        self.buffer.push(hash);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(Spilled {
                file: tempfile::tempfile()?,
                runs: Vec::new(),
            }),
        };
        let (scattered, ends) = scatter(&self.buffer);
        let at = spilled.runs.len() as u64 * (BUFFER as u64 * 8);
        let bytes: Vec<u8> = scattered.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        spilled.file.write_all(&bytes)?;
        spilled.runs.push(Run { at, ends });
        self.buffer.clear();
        Ok(())
    }

    /// Scatters what is left, so that buckets can be taken.
    pub(crate) fn seal(self) -> Sealed {
        let (last, last_ends) = scatter(&self.buffer);
        Sealed {
            last,
            last_ends,
            spilled: self.spilled,
        }
    }
}

/// The ids that one worker has seen, ready to be taken by bucket.
pub(crate) struct Sealed {
    last: Vec<u64>,
    last_ends: Box<[u32]>,
    spilled: Option<Spilled>,
}

impl Sealed {
    fn bucket_into(&self, bucket: usize, all: &mut Vec<u64>, bytes: &mut Vec<u8>) -> io::Result<()> {
        all.extend_from_slice(self.last.get(range(&self.last_ends, bucket)).unwrap_or_default());
        let Some(spilled) = &self.spilled else {
            return Ok(());
        };
        for run in &spilled.runs {
            let Range { start, end } = range(&run.ends, bucket);
            bytes.resize((end - start) * 8, 0);
            spilled.file.read_exact_at(bytes, run.at + start as u64 * 8)?;
            all.extend(bytes.chunks_exact(8).map(word));
        }
        Ok(())
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(bytes);
    u64::from_le_bytes(eight)
}

fn range(ends: &[u32], bucket: usize) -> Range<usize> {
    let end = |bucket: usize| ends.get(bucket).map_or(0, |end| *end as usize);
    bucket.checked_sub(1).map_or(0, end)..end(bucket)
}

fn bucket_of(hash: u64) -> usize {
    usize::try_from(hash >> (64 - BUCKET_BITS)).unwrap_or(0)
}

/// The hashes ordered by bucket, and where each bucket ends. A buffer holds far fewer than 2³² of them.
fn scatter(hashes: &[u64]) -> (Vec<u64>, Box<[u32]>) {
    let mut ends = vec![0_u32; BUCKETS].into_boxed_slice();
    for hash in hashes {
        ends[bucket_of(*hash)] += 1;
    }
    let mut places = Vec::with_capacity(BUCKETS);
    let mut sum = 0_u32;
    for end in &mut ends {
        places.push(sum);
        sum += *end;
        *end = sum;
    }
    let mut scattered = vec![0_u64; hashes.len()];
    for hash in hashes {
        let place = &mut places[bucket_of(*hash)];
        scattered[*place as usize] = *hash;
        *place += 1;
    }
    (scattered, ends)
}

/// The buckets there are: each can be looked through by itself, by whichever thread.
pub(crate) fn buckets() -> Range<usize> {
    0..BUCKETS
}

/// The hashes that occur more than once in a bucket.
pub(crate) fn repeated(all: &[Sealed], bucket: usize) -> io::Result<Vec<u64>> {
    let (mut hashes, mut bytes) = (Vec::new(), Vec::new());
    for sealed in all {
        sealed.bucket_into(bucket, &mut hashes, &mut bytes)?;
    }
    hashes.sort_unstable();
    let mut twice: Vec<u64> = hashes
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
        .collect();
    twice.dedup();
    Ok(twice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::fast;

    fn all_repeated(workers: Vec<Ids>) -> Vec<u64> {
        let sealed: Vec<Sealed> = workers.into_iter().map(Ids::seal).collect();
        let mut found: Vec<u64> = buckets()
            .flat_map(|bucket| repeated(&sealed, bucket).unwrap())
            .collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn repeated_hashes_are_found_in_memory_in_the_file_and_across_workers() {
        let hash = |n: u64| fast(&n.to_le_bytes());
        let (mut one, mut two) = (Ids::default(), Ids::default());
        for n in 0..1_200_000 {
            one.add(hash(n)).unwrap();
        }
        for n in 1_200_000..1_300_000 {
            two.add(hash(n)).unwrap();
        }
        assert!(one.spilled.is_some() && two.spilled.is_none());
        // Both in the file; one there and one in memory; across workers; three times.
        for n in [0, 1_199_999, 700_000, 700_000] {
            one.add(hash(n)).unwrap();
        }
        for n in [5, 1_250_000] {
            two.add(hash(n)).unwrap();
        }
        let mut want = [0, 1_199_999, 700_000, 5, 1_250_000].map(hash);
        want.sort_unstable();
        assert_eq!(all_repeated(vec![one, two]), want);
    }

    #[test]
    fn nothing_is_repeated_where_nothing_was_added() {
        assert!(all_repeated(vec![Ids::default(), Ids::default()]).is_empty());
    }
}
