//! What a reader of contract files says when it refuses (I7): the file, the line, the clause, what was found and
//! what would be right. Every problem of a file is reported at once, not the first alone.

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity, SourceCode,
};
use std::fmt;
use std::ops::Range;

/// Of a text found, so much is repeated in a message.
const SHOWN_CHARS: usize = 60;

/// Why a text is no value of the kind wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {found}; {right}")]
pub struct ValueError {
    /// What was found, and why it will not do.
    pub found: String,
    /// What would be right.
    pub right: String,
}

impl ValueError {
    pub(crate) fn new(found: impl Into<String>, right: impl Into<String>) -> Self {
        Self {
            found: found.into(),
            right: right.into(),
        }
    }
}

/// The text in back quotes, cut where it is long, with control characters made visible.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).flat_map(visible).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

fn visible(c: char) -> Vec<char> {
    if c.is_control() {
        c.escape_default().collect()
    } else {
        vec![c]
    }
}

/// One thing that is wrong in a contract file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The clause or key, as `retry.backoff.cap` or `WEBHOOK_BACKOFF_FACTOR`; empty where it is the whole file.
    pub clause: String,
    /// The line, from 1; none where something is missing from the file as a whole.
    pub line: Option<usize>,
    /// What was found, and why it will not do.
    pub found: String,
    /// What would be right.
    pub right: String,
    /// The bytes of the text that are meant.
    pub span: Option<Range<usize>>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.clause.is_empty() {
            write!(f, "{}: ", self.clause)?;
        }
        write!(f, "found {}", self.found)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.right))
    }
    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.span.clone()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(
            Some("here".to_owned()),
            span,
        ))))
    }
}

/// A contract file that cannot be used, with everything that is wrong in it.
#[derive(Debug, Clone)]
pub struct ContractError {
    file: String,
    text: String,
    problems: Vec<Problem>,
}

impl ContractError {
    /// `problems` must not be empty; they are put in the order of the file.
    pub(crate) fn new(file: &str, text: &str, mut problems: Vec<Problem>) -> Self {
        debug_assert!(!problems.is_empty());
        problems.sort_by_key(|p| (p.line.is_none(), p.line, p.span.as_ref().map(|s| s.start)));
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            problems,
        }
    }

    /// A file that was not even read: missing, a directory, no permission.
    #[must_use]
    pub fn unreadable(file: &str, source: &std::io::Error) -> Self {
        let problem = Problem {
            clause: String::new(),
            line: None,
            found: format!("a file that cannot be read: {source}"),
            right: "name a contract file that exists and may be read".to_owned(),
            span: None,
        };
        Self::new(file, "", vec![problem])
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }
    /// Everything that is wrong, in the order of the file; never empty.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
    /// For people: each problem with the line it is in, `width` columns wide.
    #[must_use]
    pub fn render(&self, width: usize, color: bool) -> String {
        let theme = if color {
            GraphicalTheme::unicode()
        } else {
            GraphicalTheme::unicode_nocolor()
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width)
            .with_links(false);
        let source = NamedSource::new(&self.file, self.text.clone());
        let mut out = String::new();
        for problem in &self.problems {
            // Writing into a String cannot fail; were it to, the plain line still says all.
            if handler
                .render_report(
                    &mut out,
                    &Shown {
                        problem,
                        source: &source,
                    },
                )
                .is_err()
            {
                out.push_str(&self.line_of(problem));
            }
            out.push('\n');
        }
        out
    }

    fn line_of(&self, problem: &Problem) -> String {
        let at = problem.line.map_or_else(String::new, |n| format!("{n}:"));
        let shown = problem
            .line
            .and_then(|n| self.text.lines().nth(n.saturating_sub(1)));
        let shown = shown.map_or_else(String::new, |line| format!("\n    {}", quoted(line.trim_end())));
        format!("{}:{at} {problem}; {}{shown}", self.file, problem.right)
    }
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the contract cannot be used")?;
        self.problems
            .iter()
            .try_for_each(|p| write!(f, "\n  {}", self.line_of(p)))
    }
}

impl std::error::Error for ContractError {}

impl Diagnostic for ContractError {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.text)
    }
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|p| p as &dyn Diagnostic)))
    }
}

/// A problem together with its file, as the renderer wants it.
#[derive(Debug)]
struct Shown<'a> {
    problem: &'a Problem,
    source: &'a NamedSource<String>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A problem without a place (a missing key) shows no line, and with it no file: name it here.
        if self.problem.span.is_none() {
            write!(f, "{}: ", self.source.name())?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help()
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.problem.labels()
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.source)
    }
}

/// The line, from 1, in which this byte lies.
pub(crate) fn line_at(text: &str, byte: usize) -> usize {
    text.as_bytes().iter().take(byte).filter(|&&b| b == b'\n').count() + 1
}
