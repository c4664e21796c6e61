//! What the texts claim exists: the tests that docs/field-reports.md names, and the commands that the README types.

use crate::{Result, naming, none_of, process};
use std::collections::BTreeSet;

/// Names of tests in the last column of the table's rows: what stands in backquotes, its last segment.
fn named_tests(table: &str) -> Vec<(usize, String)> {
    let rows = table
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("| "));
    rows.flat_map(|(at, line)| {
        let column = line
            .trim_end_matches([' ', '|'])
            .rsplit(" | ")
            .next()
            .unwrap_or("");
        let names = column.split('`').skip(1).step_by(2);
        names
            .filter_map(move |name| Some((at + 1, name.rsplit("::").next()?.to_owned())))
            .collect::<Vec<_>>()
    })
    .collect()
}

/// The names of all functions in a source text.
fn functions(source: &str) -> impl Iterator<Item = String> {
    let heads = source.split("fn ").skip(1);
    heads.map(|rest| rest.chars().take_while(|&c| crate::source::is_name(c)).collect())
}

/// `duehook WORD` at the head of a line of a code block, with the line.
fn typed_commands(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = words.iter().position(|word| *word == "duehook");
        let word = place.and_then(|place| words.get(place + 1)).filter(|_| fenced);
        if let Some(word) = word.filter(|word| word.chars().all(|c| c.is_ascii_lowercase())) {
            found.push((at + 1, (*word).to_owned()));
        }
    }
    found
}

/// `cargo xtask claims`.
pub(crate) fn run() -> Result {
    let root = process::root();
    let mut known = BTreeSet::new();
    for folder in ["crates", "xtask"] {
        for path in naming::rust_files(&root.join(folder))? {
            known.extend(functions(&process::read(&path)?));
        }
    }
    let mut found = Vec::new();
    let tests = named_tests(&process::read(&root.join("docs/field-reports.md"))?);
    for (line, name) in tests.iter().filter(|(_, name)| !known.contains(name)) {
        found.push(format!("docs/field-reports.md:{line}: there is no test `{name}`"));
    }
    let commands = typed_commands(&process::read(&root.join("README.md"))?);
    for (line, name) in &commands {
        if !root.join(format!("crates/duehook/src/cmd/{name}.rs")).is_file() {
            found.push(format!("README.md:{line}: there is no command `duehook {name}`"));
        }
    }
    none_of(&found)?;
    println!(
        "claims: {} named tests and {} typed commands exist",
        tests.len(),
        commands.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_named_in_the_last_column() {
        let table = "| # | kind | must hold | tests |\n|---|---|---|---|\n| 1 | a `b` | c | `store::x::one`, `two` |\n| 2 | d | e | – |\n";
        assert_eq!(named_tests(table), [(3, "one".to_owned()), (3, "two".to_owned())]);
    }

    #[test]
    fn commands_are_read_in_code_blocks_alone() {
        let text = "duehook nonsense\n```sh\nduehook serve --x\nA=b duehook send y\nduehook --help\n```\n";
        assert_eq!(
            typed_commands(text),
            [(3, "serve".to_owned()), (4, "send".to_owned())]
        );
    }

    #[test]
    fn functions_are_found_by_name() {
        let found: Vec<_> = functions("fn one() {}\nasync fn two_2<T>() {}").collect();
        assert_eq!(found, ["one", "two_2"]);
    }
}
