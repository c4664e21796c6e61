//! What a reader of facts says when it refuses: the file, the line, the column, what was found, what would be right,
//! and the line itself.

use std::fmt;
use std::io;

/// Of a text found, so much is repeated in a message.
const SHOWN_CHARS: usize = 60;
/// Of a whole line, so much.
const LINE_CHARS: usize = 120;

/// A file of facts that cannot be used.
#[derive(Debug)]
pub struct FactsError {
    file: String,
    line: Option<u64>,
    column: Option<&'static str>,
    found: String,
    right: String,
    shown: Option<String>,
    source: Option<io::Error>,
}

impl FactsError {
    pub(crate) fn new(file: &str, found: impl Into<String>, right: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: None,
            found: found.into(),
            right: right.into(),
            shown: None,
            source: None,
        }
    }

    /// A file that could not be opened or read on.
    pub(crate) fn unreadable(file: &str, source: io::Error) -> Self {
        let (found, right) = match source.kind() {
            io::ErrorKind::NotFound => ("no such file", "name a file that exists"),
            io::ErrorKind::IsADirectory => ("a directory", "name a file"),
            io::ErrorKind::PermissionDenied => ("a file that may not be read", "give read permission"),
            _ => ("a file that cannot be read", "name a readable file"),
        };
        Self {
            source: Some(source),
            ..Self::new(file, found, right)
        }
    }

    /// A temporary file that could not be made, written or read: the check for unique ids needs room.
    pub(crate) fn no_room(file: &str, source: io::Error) -> Self {
        let right = "make room in the temporary folder (TMPDIR), or leave the check out with --skip-id-check";
        let found = "no temporary file to check the ids with";
        Self {
            source: Some(source),
            ..Self::new(file, found, right)
        }
    }

    pub(crate) fn at(self, line: u64, shown: &[u8]) -> Self {
        let text = String::from_utf8_lossy(shown);
        Self {
            line: Some(line),
            shown: Some(cut(&text, LINE_CHARS)),
            ..self
        }
    }

    pub(crate) fn in_column(self, column: &'static str) -> Self {
        Self {
            column: Some(column),
            ..self
        }
    }

    /// Lines before this part of the file: the error was found counting from its start.
    pub(crate) fn shifted(self, lines: u64) -> Self {
        Self {
            line: self.line.map(|line| line + lines),
            ..self
        }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1, if it is one line's fault.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// What was found and what would be right, without file, line and the line's text.
    #[must_use]
    pub fn what(&self) -> String {
        let column = self
            .column
            .map_or_else(String::new, |column| format!("{column}: "));
        format!("{column}found {}; {}", self.found, self.right)
    }
}

impl fmt::Display for FactsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what())?;
        if let Some(shown) = &self.shown {
            write!(f, "\n    {shown}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FactsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// The text in back quotes, cut where it is long, with control characters made visible.
pub(crate) fn quoted(text: &[u8]) -> String {
    format!("`{}`", cut(&String::from_utf8_lossy(text), SHOWN_CHARS))
}

fn cut(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for c in text.chars().take(most) {
        if c.is_control() && c != '\t' {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}
