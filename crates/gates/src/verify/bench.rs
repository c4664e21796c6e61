//! Copies of inputs in a directory of their own, to be changed and judged without touching the originals.

use std::io;
use std::path::{Path, PathBuf};

/// A directory with copies; gone when dropped.
pub(super) struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    /// Copies each file under its usual name.
    pub(super) fn of(files: &[(&str, &Path)]) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        for (name, path) in files {
            std::fs::copy(path, dir.path().join(name))?;
        }
        Ok(Self { dir })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn read(&self, name: &str) -> io::Result<String> {
        std::fs::read_to_string(self.path(name))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        std::fs::write(self.path(name), text)
    }

    /// Changes a file for the time of one trial and puts it back.
    pub(super) fn with<T>(
        &self,
        name: &str,
        change: &dyn Fn(&str) -> String,
        trial: impl FnOnce() -> T,
    ) -> io::Result<T> {
        let before = self.read(name)?;
        self.write(name, &change(&before))?;
        let outcome = trial();
        self.write(name, &before)?;
        Ok(outcome)
    }
}

/// The text without the line that begins with `key=`.
pub(super) fn without_key(text: &str, key: &str) -> String {
    rewritten(text, |line| {
        (!line.starts_with(&format!("{key}="))).then(|| line.to_owned())
    })
}

/// The text with another value for `key`.
pub(super) fn with_value(text: &str, key: &str, value: &str) -> String {
    rewritten(text, |line| {
        Some(if line.starts_with(&format!("{key}=")) {
            format!("{key}={value}")
        } else {
            line.to_owned()
        })
    })
}

fn rewritten(text: &str, line: impl Fn(&str) -> Option<String>) -> String {
    let mut all: String = text.lines().filter_map(line).collect::<Vec<_>>().join("\n");
    all.push('\n');
    all
}

/// A report with one value changed, as somebody would by hand.
pub(super) fn tampered(text: &str, change: impl FnOnce(&mut serde_json::Value)) -> String {
    let mut report: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    change(&mut report);
    report.to_string()
}
