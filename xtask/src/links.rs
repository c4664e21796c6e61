//! Relative links in the Markdown texts lead to a file of the project, and to a heading that is there.

use crate::{Result, none_of, process};
use std::path::{Component, Path, PathBuf};

/// The link targets of a Markdown text with their lines; code blocks and code spans hold none.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced || line.starts_with("    ") {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let mut rest = prose.as_str();
        while let Some((_, tail)) = rest.split_once("](") {
            let Some((target, after)) = tail.split_once(')') else {
                break;
            };
            found.push((at + 1, target.to_owned()));
            rest = after;
        }
    }
    found
}

/// The anchors that GitHub gives the headings of a text.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let slug = |line: &str| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

/// The path without `.` and `..`; none when it leaves the project.
fn within(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir if out.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(out)
}

fn judge(root: &Path, file: &Path, target: &str) -> std::result::Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        file.to_path_buf()
    } else {
        let folder = file.parent().unwrap_or(Path::new(""));
        within(&folder.join(path)).ok_or("leads out of the project")?
    };
    let full = root.join(&path);
    if !full.exists() {
        return Err(format!("there is no {}", path.display()));
    }
    if !anchor.is_empty() && path.extension().is_some_and(|extension| extension == "md") {
        let text = std::fs::read_to_string(&full).map_err(|error| error.to_string())?;
        if !anchors(&text).iter().any(|found| found == anchor) {
            return Err(format!("{} has no heading `#{anchor}`", path.display()));
        }
    }
    Ok(())
}

/// `cargo xtask links`.
pub(crate) fn run() -> Result {
    let root = process::root();
    let (mut found, mut count) = (Vec::new(), 0usize);
    for file in process::project_files("md")? {
        for (line, target) in targets(&process::read(&root.join(&file))?) {
            count += 1;
            if let Err(why) = judge(&root, &file, &target) {
                found.push(format!("{}:{line}: link `{target}`: {why}", file.display()));
            }
        }
    }
    none_of(&found)?;
    println!("links: {count} lead somewhere");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let text = "see [a](a.md) and [b](b.md#x)\n```\n[c](c.md)\n```\n`[d](d.md)` [e](e.md)\n";
        let found: Vec<_> = targets(text)
            .into_iter()
            .map(|(line, target)| format!("{line} {target}"))
            .collect();
        assert_eq!(found, ["1 a.md", "1 b.md#x", "5 e.md"]);
    }

    #[test]
    fn a_link_must_lead_to_a_file_and_a_heading_of_the_project() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(dir.path().join("docs")).expect("folder made");
        std::fs::write(dir.path().join("a.md"), "# One: two, `three`\n").expect("file written");
        let file = Path::new("docs/b.md");
        for (target, good) in [
            ("../a.md", true),
            ("../a.md#one-two-three", true),
            ("https://example.com/x", true),
            ("../a.md#four", false),
            ("c.md", false),
            ("../../a.md", false),
        ] {
            assert_eq!(judge(dir.path(), file, target).is_ok(), good, "{target}");
        }
    }
}
