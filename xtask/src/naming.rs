//! Within the binary, only the two planner commands may name `schedule`; and no judge may take in a file of another
//! crate by the back door (`#[path]`, `include!`). Found in the source text: manifests cannot say it.

use crate::source::{code_only, is_name};
use crate::{Result, process};
use std::path::{Path, PathBuf};

/// Files and folders of the binary that may name `schedule`.
const PLANNERS: &[&str] = &["plan.rs", "appraise.rs", "plan", "appraise"];

/// Every file that names what it must not.
pub(crate) fn breaches(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let commands = root.join("crates/duehook/src/cmd");
    for path in rust_files(&root.join("crates/duehook"))? {
        let planner = path.strip_prefix(&commands).is_ok_and(|rest| {
            rest.iter()
                .next()
                .is_some_and(|first| PLANNERS.iter().any(|name| first == *name))
        });
        if planner {
            continue;
        }
        for line in lines_naming(&process::read(&path)?, "schedule") {
            found.push(format!(
                "{}:{line}: names `schedule`; in the binary only cmd/plan and cmd/appraise may",
                shown(root, &path)
            ));
        }
    }
    for judge in ["audit", "gates", "drill"] {
        for path in rust_files(&root.join("crates").join(judge))? {
            for line in back_doors(&process::read(&path)?) {
                found.push(format!(
                    "{}:{line}: takes in source from outside its crate",
                    shown(root, &path)
                ));
            }
        }
    }
    Ok(found)
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// All `.rs` files under a folder, sorted.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(folder) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The lines on which a crate is named: as the head of a path, or anywhere in a `use`.
fn lines_naming(source: &str, name: &str) -> Vec<usize> {
    let code = code_only(source);
    let names = code.match_indices(name).filter(|&(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let whole = !before.ends_with(is_name) && !after.starts_with(is_name);
        let heads_a_path = after.trim_start().starts_with("::") && !before.trim_end().ends_with("::");
        let from_root = before.ends_with("::") && !before.trim_end_matches("::").ends_with(is_name);
        let statement = before.rsplit([';', '}']).next().unwrap_or(before).trim_start();
        let imported = ["use ", "pub use ", "pub(crate) use ", "extern crate "]
            .iter()
            .any(|keyword| statement.starts_with(keyword) || statement.contains(&format!("\n{keyword}")));
        let member = before.trim_end().ends_with("::") && !from_root;
        whole && (heads_a_path || from_root || (imported && !member))
    });
    names
        .map(|(at, _)| code[..at].matches('\n').count() + 1)
        .collect()
}

/// Lines that take in source from above their own folder.
fn back_doors(source: &str) -> Vec<usize> {
    let code = code_only(source);
    let lines = source.lines().zip(code.lines()).enumerate();
    lines
        .filter(|(_, (text, code))| {
            text.contains("..") && (code.contains("#[path") || code.contains("include!"))
        })
        .map(|(at, _)| at + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_named_by_a_path_or_a_use() {
        for (source, lines) in [
            ("fn f() {\n  schedule::due(1);\n}", vec![2]),
            ("use schedule;", vec![1]),
            ("use schedule as other;", vec![1]),
            ("use {contract, schedule};", vec![1]),
            ("fn f() { ::schedule::due() }", vec![1]),
            ("extern crate schedule;", vec![1]),
            ("let schedule = retry.schedule;", vec![]),
            ("use audit::schedule;", vec![]),
            ("// schedule::due\nlet s = \"schedule::due\";", vec![]),
            ("fn reschedule() {}", vec![]),
        ] {
            assert_eq!(lines_naming(source, "schedule"), lines, "{source}");
        }
    }

    #[test]
    fn only_the_planner_commands_may_name_the_scheduler() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for path in ["cmd/plan.rs", "cmd/appraise/rows.rs", "cmd/demo.rs", "main.rs"] {
            let path = dir.path().join("crates/duehook/src").join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folder made");
            std::fs::write(path, "use schedule::plan;\n").expect("file written");
        }
        let found = breaches(dir.path()).expect("readable");
        let files: Vec<_> = found.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(
            files,
            ["crates/duehook/src/cmd/demo.rs", "crates/duehook/src/main.rs"]
        );
    }

    #[test]
    fn a_judge_takes_in_no_file_of_another_crate() {
        assert_eq!(back_doors("#[path = \"../../schedule/src/lib.rs\"]\nmod s;"), [1]);
        assert_eq!(back_doors("include!(\"../../schedule/src/due.rs\");"), [1]);
        assert_eq!(
            back_doors("const SQL: &str = include_str!(\"../../../probe/plan.sql\");"),
            Vec::<usize>::new()
        );
    }
}
