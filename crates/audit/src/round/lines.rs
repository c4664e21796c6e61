//! Lines of a file of any size, in a buffer that does not grow with it.

use crate::facts::FactsError;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A block that is read at once.
const BLOCK: usize = 256 * 1024;
/// A longer line holds no row of ours.
pub(super) const MAX_LINE: usize = 1024 * 1024;

/// What errors call the file, the line's number, the line.
type Named<'a> = (&'a str, u64, &'a [u8]);

/// Hands out line after line.
pub(super) struct Lines {
    name: String,
    file: File,
    buffer: Vec<u8>,
    /// What of the buffer has been read from the file and not yet handed out.
    start: usize,
    end: usize,
    number: u64,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, FactsError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Ok(Self {
                name,
                file,
                buffer: vec![0; BLOCK],
                start: 0,
                end: 0,
                number: 0,
            }),
            Err(error) => Err(FactsError::io(&name, error)),
        }
    }

    /// What errors call the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The next line and its number, without its end (LF or CRLF) and without a byte-order mark.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, FactsError> {
        Ok(self.next_named()?.map(|(_, number, line)| (number, line)))
    }

    /// As [`Lines::next`], and before it what errors call the file.
    pub(super) fn next_named(&mut self) -> Result<Option<Named<'_>>, FactsError> {
        let mut searched = self.start;
        let (end, next) = loop {
            let fresh = self.buffer.get(searched..self.end).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', fresh) {
                break (searched + at, searched + at + 1);
            }
            searched = self.end - self.start;
            if !self.fill()? {
                if self.start == self.end {
                    return Ok(None);
                }
                break (self.end, self.end);
            }
        };
        self.number += 1;
        let mut line = self.buffer.get(self.start..end).unwrap_or_default();
        self.start = next;
        line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.number == 1 {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        Ok(Some((&self.name, self.number, line)))
    }

    /// Reads on behind what is there; false at the end of the file. What is left comes to the front of the buffer.
    fn fill(&mut self) -> Result<bool, FactsError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end > MAX_LINE {
            let line = Some(self.number + 1);
            return Err(FactsError::new(
                &self.name,
                line,
                "a line of more than 1 MiB",
                "a row of facts",
            ));
        }
        if self.buffer.len() - self.end < BLOCK / 2 {
            self.buffer.resize(self.end + BLOCK, 0);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        loop {
            match self.file.read(room) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FactsError::io(&self.name, error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<(u64, String)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut lines = Lines::open(file.path()).unwrap();
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            all.push((number, String::from_utf8(line.to_vec()).unwrap()));
        }
        all
    }

    #[test]
    fn ends_of_lines_marks_and_a_last_line_without_end() {
        let due = [(1, "a".to_owned()), (2, "bc".to_owned()), (3, "d".to_owned())];
        for text in ["a\nbc\nd", "a\nbc\nd\n", "\u{feff}a\r\nbc\r\nd\r\n"] {
            assert_eq!(read(text.as_bytes()), due, "{text:?}");
        }
        assert_eq!(read(b""), []);
        assert_eq!(read(b"a\n\n"), [(1, "a".to_owned()), (2, String::new())]);
    }

    #[test]
    fn lines_come_out_whole_wherever_a_block_ends() {
        for length in [0, 1, 61, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            let line = "x".repeat(length);
            let text = format!("{line}\n").repeat(5);
            let all = read(text.as_bytes());
            assert_eq!(all.len(), 5, "{length}");
            assert!(all.iter().all(|(_, found)| *found == line), "{length}");
        }
    }

    #[test]
    fn a_line_beyond_all_measure_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'x'; 3 * MAX_LINE]).unwrap();
        let error = Lines::open(file.path()).unwrap().next().unwrap_err();
        assert!(
            error.to_string().contains(":1: found a line of more than 1 MiB"),
            "{error}"
        );
    }
}
