//! Running programs: shown as typed, without standard input, from the root of the project.

use crate::{Error, Result};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the project: where the workspace manifest lies.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo builds: as cargo itself decides it from variables and configuration.
pub(crate) fn target_folder() -> PathBuf {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec();
    metadata.map_or_else(
        |_| root().join("target"),
        |found| found.target_directory.into_std_path_buf(),
    )
}

/// The cargo that runs us.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// A program with arguments and, perhaps, variables.
pub(crate) struct Run {
    program: String,
    args: Vec<String>,
    vars: Vec<(String, String)>,
}

impl Run {
    /// This program.
    pub(crate) fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            vars: Vec::new(),
        }
    }

    /// Cargo.
    pub(crate) fn cargo() -> Self {
        Self::new(cargo())
    }

    /// With these arguments.
    pub(crate) fn args<S: AsRef<str>>(mut self, args: &[S]) -> Self {
        self.args.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// With this variable.
    pub(crate) fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.push((name.into(), value.into()));
        self
    }

    /// As one would type it.
    pub(crate) fn shown(&self) -> String {
        let program = Path::new(&self.program).file_name().map_or_else(
            || self.program.clone(),
            |name| name.to_string_lossy().into_owned(),
        );
        let vars = self.vars.iter().map(|(name, value)| format!("{name}={value}"));
        vars.chain([program])
            .chain(self.args.iter().cloned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .current_dir(root())
            .stdin(Stdio::null());
        command
    }

    fn failed(&self, reason: impl std::fmt::Display) -> Error {
        Error::Program {
            command: self.shown(),
            reason: reason.to_string(),
        }
    }

    /// Runs it; any end but success is an error.
    pub(crate) fn go(&self) -> Result {
        eprintln!("$ {}", self.shown());
        match self.command().status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(self.failed(status)),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Runs it, hands every line of its output on and to `line`, and gives its exit code (`None`: by a signal).
    pub(crate) fn watch(&self, mut line: impl FnMut(&str)) -> Result<Option<i32>> {
        eprintln!("$ {}", self.shown());
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| self.failed(error))?;
        if let Some(out) = child.stdout.take() {
            for text in BufReader::new(out).split(b'\n') {
                let text = text.map_err(|error| self.failed(error))?;
                let text = String::from_utf8_lossy(&text);
                println!("{text}");
                line(&text);
            }
        }
        Ok(child.wait().map_err(|error| self.failed(error))?.code())
    }

    /// Runs it quietly: did it succeed? A program that is not there did not.
    pub(crate) fn works(&self) -> bool {
        self.command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Runs it quietly and gives its output.
    pub(crate) fn output(&self) -> Result<String> {
        let done = self.command().output().map_err(|error| self.failed(error))?;
        if !done.status.success() {
            return Err(self.failed(String::from_utf8_lossy(&done.stderr)));
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

/// The text of a file of the project.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| Error::File {
        path: path.into(),
        source,
    })
}

/// Files that git knows or would add, by extension, relative to the root.
pub(crate) fn project_files(extension: &str) -> Result<Vec<PathBuf>> {
    let listed = Run::new("git")
        .args(&[
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--deduplicate",
        ])
        .output()?;
    Ok(listed
        .lines()
        .map(PathBuf::from)
        .filter(|path| {
            path.extension().is_some_and(|found| found == extension) && root().join(path).is_file()
        })
        .collect())
}
