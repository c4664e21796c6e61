//! Sorts lines by a number with bounded memory: sorted runs on disk, merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Lines with their places; at most `bytes` of them in memory.
pub(super) struct Sorter {
    folder: PathBuf,
    name: &'static str,
    bytes: usize,
    lines: Vec<u8>,
    /// Place, beginning and end of each line.
    index: Vec<(u64, usize, usize)>,
    runs: Vec<PathBuf>,
}

impl Sorter {
    pub(super) fn new(folder: &Path, name: &'static str, bytes: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            name,
            bytes,
            lines: Vec::new(),
            index: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, place: u64, line: &[u8]) -> io::Result<()> {
        if !self.index.is_empty() && self.lines.len() + line.len() > self.bytes {
            self.spill()?;
        }
        let begin = self.lines.len();
        self.lines.extend_from_slice(line);
        self.index.push((place, begin, self.lines.len()));
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let path = self.folder.join(format!("{}.run-{}", self.name, self.runs.len()));
        let mut file = BufWriter::new(File::create(&path)?);
        self.index.sort_unstable();
        for (place, begin, end) in &self.index {
            let length = u64::try_from(end - begin).unwrap_or(u64::MAX);
            file.write_all(&place.to_le_bytes())?;
            file.write_all(&length.to_le_bytes())?;
            file.write_all(&self.lines[*begin..*end])?;
        }
        file.flush()?;
        self.index.clear();
        self.lines.clear();
        self.runs.push(path);
        Ok(())
    }

    /// Gives the lines out by place, and removes the runs.
    pub(super) fn drain(mut self, mut give: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if self.runs.is_empty() {
            self.index.sort_unstable();
            return self
                .index
                .iter()
                .try_for_each(|(_, begin, end)| give(&self.lines[*begin..*end]));
        }
        self.spill()?;
        self.lines = Vec::new();
        let mut runs = Vec::new();
        let mut heads = BinaryHeap::new();
        for path in &self.runs {
            let mut run = BufReader::with_capacity(1 << 18, File::open(path)?);
            if let Some((place, line)) = read(&mut run)? {
                heads.push(Reverse((place, runs.len(), line)));
                runs.push(run);
            }
        }
        while let Some(Reverse((_, from, line))) = heads.pop() {
            give(&line)?;
            if let Some((place, line)) = read(&mut runs[from])? {
                heads.push(Reverse((place, from, line)));
            }
        }
        self.runs.iter().try_for_each(std::fs::remove_file)
    }
}

fn read(run: &mut impl Read) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut place = [0; 8];
    match run.read_exact(&mut place) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut length = [0; 8];
    run.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?;
    let mut line = vec![0; length];
    run.read_exact(&mut line)?;
    Ok(Some((u64::from_le_bytes(place), line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(bytes: usize) -> (Vec<String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(folder.path(), "x", bytes);
        // 7919 is prime to 1000: every place once, in a wild order.
        for n in 0..1000u64 {
            let place = n * 7919 % 1000;
            sorter.push(place, format!("line {place}\n").as_bytes()).unwrap();
        }
        let runs = sorter.runs.len();
        let mut lines = Vec::new();
        let give = |line: &[u8]| {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
            Ok(())
        };
        sorter.drain(give).unwrap();
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "runs are removed"
        );
        (lines, runs)
    }

    #[test]
    fn lines_come_by_place_with_and_without_runs() {
        let expected: Vec<String> = (0..1000).map(|n| format!("line {n}\n")).collect();
        let (lines, runs) = sorted(1 << 20);
        assert_eq!((lines, runs), (expected.clone(), 0));
        let (lines, runs) = sorted(500);
        assert_eq!(lines, expected);
        assert!(runs > 10, "{runs}");
    }
}
