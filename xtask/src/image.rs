//! The container image, checked where no Docker engine runs: compose.yaml fits its schema and mounts what it should,
//! every COPY source exists, and the entry point works in a chroot of exactly the files that the Dockerfile copies.

use crate::process::{self, Run};
use crate::{Error, Result, compose, none_of, tools};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A `COPY` of the Dockerfile.
#[derive(Debug, PartialEq, Eq)]
struct Copy {
    /// The stage it copies from; none for the build context.
    from: Option<String>,
    sources: Vec<String>,
    target: String,
}

/// One stage of the Dockerfile, as far as this check needs it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stage {
    copies: Vec<Copy>,
    entry: Vec<String>,
    user: Option<String>,
}

/// The stages, in order.
fn stages(dockerfile: &str) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for line in dockerfile.replace("\\\n", " ").lines() {
        let mut words = line.split_whitespace();
        let instruction = words.next().unwrap_or("");
        if instruction == "FROM" {
            stages.push(Stage::default());
        }
        let Some(stage) = stages.last_mut() else { continue };
        let rest: Vec<&str> = words.collect();
        match instruction {
            "COPY" => stage.copies.extend(copy(&rest)),
            "ENTRYPOINT" => stage.entry = serde_json::from_str(&rest.join(" ")).unwrap_or_default(),
            "USER" => stage.user = rest.first().map(|user| (*user).to_owned()),
            _ => {}
        }
    }
    stages
}

fn copy(words: &[&str]) -> Option<Copy> {
    let flags = words.iter().filter(|word| word.starts_with("--"));
    let from = flags
        .filter_map(|flag| flag.strip_prefix("--from="))
        .next()
        .map(str::to_owned);
    let paths: Vec<String> = words
        .iter()
        .filter(|word| !word.starts_with("--"))
        .map(|&word| word.into())
        .collect();
    let (target, sources) = paths.split_last()?;
    Some(Copy {
        from,
        sources: sources.to_vec(),
        target: target.clone(),
    })
}

/// COPY sources of the build context that are not there, or that .dockerignore keeps out.
fn missing_sources(root: &Path, stages: &[Stage], ignored: &str) -> Vec<String> {
    let ignored: Vec<&str> = ignored.lines().map(|line| line.trim_matches('/')).collect();
    let context = stages
        .iter()
        .flat_map(|stage| &stage.copies)
        .filter(|copy| copy.from.is_none());
    let sources = context.flat_map(|copy| &copy.sources);
    sources
        .filter(|source| !root.join(source).exists() || ignored.contains(&source.trim_start_matches("./")))
        .map(|source| format!("Dockerfile: COPY {source}: there is no such file in the build context"))
        .collect()
}

/// What the compose file must say beyond its schema: inputs read-only, reports on a volume, nobody is root.
fn compose_findings(file: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let services = file["services"].as_object().cloned().unwrap_or_default();
    for wanted in ["serve", "rounds"] {
        if !services.contains_key(wanted) {
            found.push(format!("compose.yaml: there is no service `{wanted}`"));
        }
    }
    for (name, service) in &services {
        for mount in service["volumes"].as_array().into_iter().flatten() {
            let (kind, source) = (mount["type"].as_str(), mount["source"].as_str().unwrap_or(""));
            if kind == Some("bind") && mount["read_only"] != Value::Bool(true) {
                found.push(format!(
                    "compose.yaml: {name}: the input mount `{source}` must be read-only"
                ));
            }
            if kind == Some("volume") && file["volumes"].get(source).is_none() {
                found.push(format!(
                    "compose.yaml: {name}: the volume `{source}` is not declared"
                ));
            }
        }
        if name == "rounds" && service["restart"] != Value::String("no".into()) {
            found.push("compose.yaml: rounds: a one-shot service has `restart: \"no\"`".into());
        }
    }
    found
}

fn copy_tree(from: &Path, to: &Path) -> Result {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(|source| Error::File {
            path: folder.into(),
            source,
        })?;
    }
    Run::new("cp")
        .args(&["-rL", &from.display().to_string(), &to.display().to_string()])
        .go()
}

/// The shared libraries that a binary loads, as `ldd` finds them.
fn libraries(binary: &Path) -> Result<Vec<PathBuf>> {
    let listed = Run::new("ldd").args(&[binary.display().to_string()]).output()?;
    let paths = listed.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(PathBuf::from).collect())
}

/// Lays out the last stage's files under `room`: the context's as they are; for the built binary, the one of this
/// checkout and the libraries that the base image would bring.
fn lay_out(root: &Path, room: &Path, last: &Stage) -> Result {
    let inside = |target: &str| room.join(target.trim_start_matches('/'));
    for copy in &last.copies {
        for source in &copy.sources {
            if copy.from.is_none() {
                copy_tree(&root.join(source), &inside(&copy.target))?;
            } else if source.ends_with("/duehook") {
                let binary = process::target_folder().join("debug/duehook");
                copy_tree(&binary, &inside(&copy.target))?;
                for library in libraries(&binary)? {
                    copy_tree(&library, &inside(&library.display().to_string()))?;
                }
            } else {
                let folder = inside(&copy.target);
                std::fs::create_dir_all(&folder).map_err(|source| Error::File {
                    path: folder.clone(),
                    source,
                })?;
                Run::new("chmod")
                    .args(&["0777", &folder.display().to_string()])
                    .go()?;
            }
        }
    }
    Ok(())
}

/// What is run in the chroot, after the entry point: the help, and both rounds over the cases in the image.
const INSIDE: &[&[&str]] = &[
    &["--version"],
    &[
        "plan",
        "--contract=/cases/retry-round/retry.env",
        "--endpoints=/cases/retry-round/endpoints.tsv",
        "--attempts=/cases/retry-round/attempts.tsv",
        "--report=/reports/plan.json",
    ],
    &[
        "appraise",
        "--contract=/cases/queue-round/queue.env",
        "--channels=/cases/queue-round/channels.json",
        "--queue=/cases/queue-round/queue.jsonl",
        "--now=1800000",
        "--report=/reports/appraisal.json",
    ],
];

fn chroot_works(root: &Path, last: &Stage) -> Result {
    Run::cargo()
        .args(&["build", "--quiet", "--locked", "--package", "duehook"])
        .go()?;
    let room = tempfile::tempdir().map_err(|source| Error::File {
        path: std::env::temp_dir(),
        source,
    })?;
    lay_out(root, room.path(), last)?;
    let reports = room.path().join("reports");
    std::fs::create_dir_all(&reports).map_err(|source| Error::File {
        path: reports.clone(),
        source,
    })?;
    Run::new("chmod")
        .args(&["-R", "a+rX", &room.path().display().to_string()])
        .go()?;
    Run::new("chmod")
        .args(&["0777", &reports.display().to_string()])
        .go()?;
    let user = format!("--userspec={}", last.user.as_deref().unwrap_or("0"));
    for command in INSIDE {
        let place = room.path().display().to_string();
        let run = Run::new("chroot")
            .args(&[user.as_str(), &place])
            .args(&last.entry)
            .args(command);
        run.go()?;
    }
    Ok(())
}

/// `cargo xtask image`.
pub(crate) fn run() -> Result {
    let root = process::root();
    let stages = stages(&process::read(&root.join("Dockerfile"))?);
    let ignored = process::read(&root.join(".dockerignore"))?;
    let file: Value = serde_yaml_ng::from_str(&process::read(&root.join("compose.yaml"))?)
        .map_err(|error| Error::Found(format!("compose.yaml: {error}")))?;
    let mut found = missing_sources(&root, &stages, &ignored);
    found.extend(
        compose::violations(&compose::schema()?, &file)
            .iter()
            .map(|line| format!("compose.yaml: {line}")),
    );
    found.extend(compose_findings(&file));
    let last = stages
        .last()
        .ok_or_else(|| Error::Found("Dockerfile: there is no stage".into()))?;
    if last.entry.is_empty()
        || last
            .user
            .as_deref()
            .is_none_or(|user| user.starts_with('0') || user == "root")
    {
        found.push(
            "Dockerfile: the last stage needs an ENTRYPOINT in JSON form and a USER that is not root".into(),
        );
    }
    none_of(&found)?;
    if !tools::is_root() {
        return Err(Error::Found(
            "NOT RUN: the entry point in a chroot: needs root; run `sudo cargo xtask image`".into(),
        ));
    }
    none_of(&tools::ensure(tools::FOR_IMAGE))?;
    chroot_works(&root, last)?;
    println!("image: compose.yaml fits its schema, COPY sources exist, the entry point works in a chroot");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "FROM a AS build\nCOPY Cargo.toml \\\n  crates ./\nFROM b\nCOPY --from=build /duehook /usr/bin/duehook\nCOPY cases /cases\nUSER 65532:65532\nENTRYPOINT [\"/usr/bin/duehook\"]\n";

    #[test]
    fn a_dockerfile_is_read_by_stages() {
        let stages = stages(FILE);
        assert_eq!(stages.len(), 2);
        assert_eq!(stages[0].copies[0].sources, ["Cargo.toml", "crates"]);
        assert_eq!(stages[1].copies[0].from.as_deref(), Some("build"));
        assert_eq!(stages[1].entry, ["/usr/bin/duehook"]);
        assert_eq!(stages[1].user.as_deref(), Some("65532:65532"));
    }

    #[test]
    fn a_missing_or_ignored_source_is_named() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for name in ["Cargo.toml", "crates"] {
            std::fs::write(dir.path().join(name), "").expect("file written");
        }
        assert_eq!(missing_sources(dir.path(), &stages(FILE), "").len(), 1);
        std::fs::write(dir.path().join("cases"), "").expect("file written");
        assert_eq!(
            missing_sources(dir.path(), &stages(FILE), ""),
            Vec::<String>::new()
        );
        assert_eq!(
            missing_sources(dir.path(), &stages(FILE), "/target\n/crates/\n").len(),
            1
        );
    }

    #[test]
    fn inputs_are_read_only_and_volumes_declared() {
        let yaml = "services:\n  serve: {image: x}\n  rounds:\n    restart: \"no\"\n    volumes:\n      - {type: bind, source: ./in, target: /in}\n      - {type: volume, source: reports, target: /reports}\n";
        let file = serde_yaml_ng::from_str(yaml).expect("YAML");
        let found = compose_findings(&file);
        assert!(
            found[0].contains("must be read-only") && found[1].contains("is not declared"),
            "{found:?}"
        );
    }
}
