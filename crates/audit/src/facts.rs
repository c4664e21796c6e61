//! What a reader of facts says when it refuses (I7): the file, the line, what was found, what would be right.

use std::fmt;

/// Of a text found, so much is repeated in a message.
const SHOWN_CHARS: usize = 60;

/// Facts that are missing, unreadable or contradict themselves: nothing can be judged from them.
#[derive(Debug)]
pub struct FactsError {
    /// The file, or what else the facts come from.
    pub file: String,
    /// The line, from 1; none where it is the file as a whole.
    pub line: Option<u64>,
    /// What was found.
    pub found: String,
    /// What would be right.
    pub right: String,
    source: Option<std::io::Error>,
}

impl FactsError {
    pub(crate) fn new(
        file: &str,
        line: Option<u64>,
        found: impl Into<String>,
        right: impl Into<String>,
    ) -> Self {
        Self {
            file: file.to_owned(),
            line,
            found: found.into(),
            right: right.into(),
            source: None,
        }
    }

    /// A file that cannot be read, or a temporary one that cannot be written.
    pub(crate) fn io(file: &str, error: std::io::Error) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            found: error.to_string(),
            right: "name a file that exists, is no directory and may be read".to_owned(),
            source: Some(error),
        }
    }

    /// The auditor's own temporary files failed: no fact is wrong, and nothing can be judged all the same.
    pub(crate) fn spill(error: std::io::Error) -> Self {
        Self {
            right: "make room in the temporary directory, or set TMPDIR to one with room".to_owned(),
            ..Self::io("temporary file", error)
        }
    }
}

impl fmt::Display for FactsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": found {}; expected: {}", self.found, self.right)
    }
}

impl std::error::Error for FactsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|error| error as _)
    }
}

/// The text in back quotes, cut where it is long, control characters made visible.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown = String::from("`");
    for c in text.chars().take(SHOWN_CHARS) {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown.push('`');
    shown
}

/// The bytes as [`quoted`] text, whatever they are.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    // Enough bytes for the characters shown, whatever their length.
    let head = bytes.get(..bytes.len().min(SHOWN_CHARS * 4 + 4)).unwrap_or(bytes);
    quoted(&String::from_utf8_lossy(head))
}
