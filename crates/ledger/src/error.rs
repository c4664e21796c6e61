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
pub struct FactsError(Box<Parts>);

#[derive(Debug)]
struct Parts {
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
        Self(Box::new(Parts {
            file: file.to_owned(),
            line: None,
            column: None,
            found: found.into(),
            right: right.into(),
            shown: None,
            source: None,
        }))
    }

    /// A file that could not be opened or read on.
    pub(crate) fn unreadable(file: &str, source: io::Error) -> Self {
        let (found, right) = match source.kind() {
            io::ErrorKind::NotFound => ("no such file", "name a file that exists"),
            io::ErrorKind::IsADirectory => ("a directory", "name a file"),
            io::ErrorKind::PermissionDenied => ("a file that may not be read", "give read permission"),
            _ => ("a file that cannot be read", "name a readable file"),
        };
        Self::new(file, found, right).because(source)
    }

    /// A temporary file that could not be made, written or read: the check for unique ids needs room.
    pub(crate) fn no_room(file: &str, source: io::Error) -> Self {
        let right = "make room in the temporary folder (TMPDIR), or leave the check out with --skip-id-check";
        Self::new(file, "no temporary file to check the ids with", right).because(source)
    }

    fn because(mut self, source: io::Error) -> Self {
        self.0.source = Some(source);
        self
    }

    pub(crate) fn at(mut self, line: u64, shown: &[u8]) -> Self {
        self.0.line = Some(line);
        self.0.shown = Some(cut(&String::from_utf8_lossy(shown), LINE_CHARS));
        self
    }

    pub(crate) fn in_column(mut self, column: &'static str) -> Self {
        self.0.column = Some(column);
        self
    }

    /// Lines before this part of the file: the error was found counting from its start.
    pub(crate) fn shifted(mut self, lines: u64) -> Self {
        self.0.line = self.0.line.map(|line| line + lines);
        self
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// The line, from 1, if it is one line's fault.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    /// What was found and what would be right, without file, line and the line's text.
    #[must_use]
    pub fn what(&self) -> String {
        let column = self
            .0
            .column
            .map_or_else(String::new, |column| format!("{column}: "));
        format!("{column}found {}; {}", self.0.found, self.0.right)
    }
}

impl fmt::Display for FactsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.file)?;
        if let Some(line) = self.0.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what())?;
        if let Some(shown) = &self.0.shown {
            write!(f, "\n    {shown}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FactsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
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
