//! How the code reads, as far as a program can tell: every file has a head, nothing is left half-done, nothing refers
//! to one person's machine. Long files and functions are reported and not refused: clarity wins over a ruler.

use crate::source::{code_only, functions};
use crate::{Result, naming, none_of, process};
use std::path::Path;

/// Past this a file is two ideas.
const FILE_LINES: usize = 600;
/// Past this a function is two ideas.
const FUNCTION_LINES: usize = 70;

/// What must not be committed, and why. Spelt apart here, so that this file does not find itself.
const LEFTOVERS: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "unfinished work"),
    (concat!("FIX", "ME"), "unfinished work"),
    (concat!("under ", "construction"), "unfinished work"),
    (concat!("todo", "!("), "unfinished work"),
    (concat!("unimpl", "emented!("), "unfinished work"),
    (concat!("/ho", "me/"), "a path of one person's machine"),
    (concat!("/Us", "ers/"), "a path of one person's machine"),
    (concat!("/ro", "ot/"), "a path of one person's machine"),
    (concat!("/wo", "rk/"), "a path of one person's machine"),
];

/// What one text has to say for itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    refused: Vec<String>,
    noted: Vec<String>,
}

fn judge_rust(path: &str, source: &str) -> Report {
    let mut report = Report::default();
    if !source.trim_start().starts_with("//!") {
        report.refused.push(format!(
            "{path}: no `//!` head; say what the file does and what it leaves to others"
        ));
    }
    let lines = source.lines().count();
    if lines > FILE_LINES {
        report
            .noted
            .push(format!("{path}: {lines} lines (more than {FILE_LINES})"));
    }
    for function in functions(&code_only(source)) {
        if function.lines > FUNCTION_LINES {
            let (name, at, lines) = (function.name, function.line, function.lines);
            report.noted.push(format!(
                "{path}:{at}: `{name}` has {lines} lines (more than {FUNCTION_LINES})"
            ));
        }
    }
    report
}

fn leftovers(path: &str, text: &str) -> Vec<String> {
    let found = text.lines().enumerate().flat_map(|(at, line)| {
        let hits = LEFTOVERS.iter().filter(move |(word, _)| line.contains(word));
        hits.map(move |(word, why)| format!("{path}:{}: `{word}`: {why}", at + 1))
    });
    found.collect()
}

/// Source that must not compile has no head to show.
fn is_fixture(path: &Path) -> bool {
    let tests = path.iter().skip_while(|part| *part != "tests");
    tests
        .skip(1)
        .any(|part| part == "ui" || part.to_string_lossy().contains("fail"))
}

/// `cargo xtask style`.
pub(crate) fn run() -> Result {
    let root = process::root();
    let (mut refused, mut noted) = (Vec::new(), Vec::new());
    for extension in ["rs", "toml", "sql", "md", "yaml"] {
        for path in process::project_files(extension)? {
            let text = process::read(&root.join(&path))?;
            let shown = path.display().to_string();
            refused.extend(leftovers(&shown, &text));
            if extension == "rs" && !is_fixture(&path) && !path.starts_with("fuzz") {
                let report = judge_rust(&shown, &text);
                refused.extend(report.refused);
                noted.extend(report.noted);
            }
        }
    }
    for line in &noted {
        println!("note: {line}");
    }
    none_of(&refused)?;
    let files = naming::rust_files(&root.join("crates"))?.len();
    println!(
        "style: {files} files under crates/ have a head and no leftovers; {} notes",
        noted.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_head_is_refused() {
        assert_eq!(judge_rust("a.rs", "//! Does a.\nfn f() {}\n"), Report::default());
        assert_eq!(judge_rust("a.rs", "use std::fmt;\n//! Late.\n").refused.len(), 1);
    }

    #[test]
    fn long_files_and_functions_are_noted() {
        let body = "  x();\n".repeat(69);
        let at_limit = format!("//! Does a.\nfn f() {{{body}}}\n");
        assert_eq!(judge_rust("a.rs", &at_limit), Report::default());
        let past = format!("//! Does a.\nfn f() {{\n{body}}}\n");
        assert_eq!(
            judge_rust("a.rs", &past).noted,
            ["a.rs:2: `f` has 71 lines (more than 70)"]
        );
        let long = format!("//! Does a.\n{}", "\n".repeat(600));
        assert_eq!(
            judge_rust("a.rs", &long).noted,
            ["a.rs: 601 lines (more than 600)"]
        );
    }

    #[test]
    fn leftovers_are_refused_with_their_line() {
        let text = format!("fine\n// {}: later\n", concat!("TO", "DO"));
        assert_eq!(leftovers("a.rs", &text).len(), 1);
        assert!(leftovers("a.rs", &text)[0].starts_with("a.rs:2:"));
        assert!(leftovers("a.rs", "a todo list is a word").is_empty());
    }
}
