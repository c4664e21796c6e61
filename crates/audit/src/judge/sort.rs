//! Puts records in order in bounded memory: sorted runs in temporary files, merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Runs are merged into one when there are so many: each is an open file.
const MAX_RUNS: usize = 128;
/// Between a run and its reader.
const BUFFER: usize = 64 * 1024;
/// What an entry costs beside its bytes.
const OVERHEAD: usize = 32;

/// Takes records with keys, in any order, and gives them back by key; records of one key in the order they came.
pub(super) struct Sorter {
    memory: usize,
    arena: Vec<u8>,
    /// Where each record begins and ends in the arena, and how long its key is.
    index: Vec<(usize, usize, usize)>,
    runs: Vec<File>,
}

impl Sorter {
    /// Keeps about so many bytes in memory.
    pub(super) const fn new(memory: usize) -> Self {
        Self {
            memory,
            arena: Vec::new(),
            index: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let held = self.arena.len() + self.index.len() * OVERHEAD;
        if held + key.len() + value.len() > self.memory && !self.index.is_empty() {
            self.spill()?;
        }
        let begin = self.arena.len();
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        self.index.push((begin, self.arena.len(), key.len()));
        Ok(())
    }

    fn sort(&mut self) {
        let arena = &self.arena;
        // Stable: places in the arena are the order of arrival.
        self.index.sort_by(|a, b| {
            let key = |&(begin, _, length): &(usize, usize, usize)| &arena[begin..begin + length];
            key(a).cmp(key(b))
        });
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let mut run = BufWriter::with_capacity(BUFFER, tempfile::tempfile()?);
        for &(begin, end, key) in &self.index {
            write_entry(
                &mut run,
                &self.arena[begin..begin + key],
                &self.arena[begin + key..end],
            )?;
        }
        self.runs.push(finished(run)?);
        self.arena.clear();
        self.index.clear();
        if self.runs.len() >= MAX_RUNS {
            let mut all = Merge::of(std::mem::take(&mut self.runs))?;
            let mut run = BufWriter::with_capacity(BUFFER, tempfile::tempfile()?);
            while let Some((key, value)) = all.next()? {
                write_entry(&mut run, &key, &value)?;
            }
            self.runs.push(finished(run)?);
        }
        Ok(())
    }

    /// All records, by key.
    pub(super) fn finish(mut self) -> io::Result<Sorted> {
        if self.runs.is_empty() {
            self.sort();
            return Ok(Sorted::Memory {
                sorter: self,
                next: 0,
            });
        }
        if !self.index.is_empty() {
            self.spill()?;
        }
        Merge::of(self.runs).map(Sorted::Merge)
    }
}

/// Records by key.
pub(super) enum Sorted {
    Memory { sorter: Sorter, next: usize },
    Merge(Merge),
}

impl Sorted {
    /// The next record: key and value.
    pub(super) fn next(&mut self) -> io::Result<Option<Entry>> {
        match self {
            Self::Merge(merge) => merge.next(),
            Self::Memory { sorter, next } => {
                let entry = sorter.index.get(*next).map(|&(begin, end, key)| {
                    let bytes = |range: std::ops::Range<usize>| sorter.arena[range].to_vec();
                    (bytes(begin..begin + key), bytes(begin + key..end))
                });
                *next += 1;
                Ok(entry)
            }
        }
    }
}

type Entry = (Vec<u8>, Vec<u8>);

/// The next entry of a run: its key, which run, its value.
type Head = (Vec<u8>, usize, Vec<u8>);

/// Several runs at once, the least key first. Runs are in the order of arrival, so the earlier run goes first among equals.
pub(super) struct Merge {
    runs: Vec<BufReader<File>>,
    heads: BinaryHeap<Reverse<Head>>,
}

impl Merge {
    fn of(files: Vec<File>) -> io::Result<Self> {
        let mut merge = Self {
            runs: files
                .into_iter()
                .map(|file| BufReader::with_capacity(BUFFER, file))
                .collect(),
            heads: BinaryHeap::new(),
        };
        for run in 0..merge.runs.len() {
            if let Some((key, value)) = read_entry(&mut merge.runs[run])? {
                merge.heads.push(Reverse((key, run, value)));
            }
        }
        Ok(merge)
    }

    fn next(&mut self) -> io::Result<Option<Entry>> {
        let Some(mut head) = self.heads.peek_mut() else {
            return Ok(None);
        };
        let run = head.0.1;
        let (key, _, value) = if let Some((key, value)) = read_entry(&mut self.runs[run])? {
            std::mem::replace(&mut *head, Reverse((key, run, value))).0
        } else {
            PeekMut::pop(head).0
        };
        Ok(Some((key, value)))
    }
}

fn write_entry(run: &mut impl Write, key: &[u8], value: &[u8]) -> io::Result<()> {
    for part in [key, value] {
        let length = u32::try_from(part.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        run.write_all(&length.to_le_bytes())?;
    }
    run.write_all(key)?;
    run.write_all(value)
}

fn read_entry(run: &mut impl Read) -> io::Result<Option<Entry>> {
    let mut lengths = [0; 8];
    match run.read_exact(&mut lengths) {
        // Runs are our own: they end between two entries.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let [a, b, c, d, e, f, g, h] = lengths;
    let mut part = |length: [u8; 4]| {
        let mut bytes = vec![0; usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX)];
        run.read_exact(&mut bytes).map(|()| bytes)
    };
    Ok(Some((part([a, b, c, d])?, part([e, f, g, h])?)))
}

fn finished(run: BufWriter<File>) -> io::Result<File> {
    let mut file = run.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// A key that sorts as its parts do, one after the other, and of which no part runs into the next.
#[derive(Default)]
pub(super) struct Key(pub(super) Vec<u8>);

impl Key {
    /// A text of any bytes. Zeros are doubled up so that the end can be told.
    pub(super) fn text(mut self, text: &str) -> Self {
        for byte in text.bytes() {
            self.0.push(byte);
            if byte == 0 {
                self.0.push(0xff);
            }
        }
        self.0.extend([0, 0]);
        self
    }
    pub(super) fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }
    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }
    pub(super) fn instant(self, ms: i64) -> Self {
        // The sign turned round: earlier is less.
        self.number(ms.cast_unsigned() ^ (1 << 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(memory: usize, keys: &[u64]) -> Vec<(u64, usize)> {
        let mut sorter = Sorter::new(memory);
        for (n, key) in keys.iter().enumerate() {
            sorter
                .push(&Key::default().number(*key).0, &n.to_le_bytes())
                .unwrap();
        }
        let mut all = sorter.finish().unwrap();
        let mut out = Vec::new();
        while let Some((key, value)) = all.next().unwrap() {
            let key = u64::from_be_bytes(key.try_into().unwrap());
            out.push((key, usize::from_le_bytes(value.try_into().unwrap())));
        }
        out
    }

    #[test]
    fn the_order_is_the_same_in_memory_in_runs_and_in_merged_runs() {
        let keys: Vec<u64> = (0..5000u64).map(|n| (n * 7919) % 1000).collect();
        let mut due: Vec<(u64, usize)> = keys.iter().copied().zip(0..).collect();
        due.sort_unstable();
        // All at once; runs of a hundred or so; more runs than may be open.
        for memory in [1 << 20, 5000, 500] {
            assert_eq!(sorted(memory, &keys), due, "{memory}");
        }
    }

    #[test]
    fn keys_sort_as_their_parts_do() {
        let key = |text: &str, at: i64| Key::default().text(text).instant(at).0;
        let due = [
            key("a", -5),
            key("a", 0),
            key("a", 7),
            key("a\0", -9),
            key("a\0b", -9),
            key("ab", -9),
        ];
        let mut found = due.clone();
        found.reverse();
        found.sort_unstable();
        assert_eq!(found, due);
    }
}
