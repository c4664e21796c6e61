//! The programs beside cargo that tests and checks need: found, installed where that can be done without asking, or
//! named. A check whose tool is absent prints NOT RUN, and the gate demands that none does.

use crate::process::Run;

/// A program of the system.
pub(crate) struct Program {
    /// What is called.
    pub(crate) name: &'static str,
    /// A shell line that succeeds where it is there.
    probe: &'static str,
    /// The Debian package.
    package: &'static str,
    /// What is not run without it.
    pub(crate) needed_for: &'static str,
}

/// What the tests call.
pub(crate) const FOR_TESTS: &[Program] = &[
    Program {
        name: "cc",
        probe: "cc --version",
        package: "gcc",
        needed_for: "building the bundled SQLite",
    },
    Program {
        name: "git",
        probe: "git --version",
        package: "git",
        needed_for: "listing the project's files",
    },
    Program {
        name: "sqlite3",
        probe: "sqlite3 --version",
        package: "sqlite3",
        needed_for: "the SQL judges run by hand in the sqlite3 shell",
    },
    Program {
        name: "initdb",
        // Debian keeps it out of the path.
        probe: "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb || ls \"$(pg_config --bindir)/initdb\"",
        package: "postgresql",
        needed_for: "the SQL judge of the live ledger in psql",
    },
];

/// What fuzzing calls beside.
pub(crate) const FOR_FUZZING: &[Program] = &[Program {
    name: "c++",
    probe: "c++ --version",
    package: "g++",
    needed_for: "building libFuzzer",
}];

/// What the check of the image calls beside.
pub(crate) const FOR_IMAGE: &[Program] = &[
    Program {
        name: "chroot",
        probe: "chroot --version",
        package: "coreutils",
        needed_for: "entering the copied files",
    },
    Program {
        name: "ldd",
        probe: "ldd --version",
        package: "libc-bin",
        needed_for: "finding shared libraries",
    },
];

/// Installs what is missing where it can (root, Debian), and gives a NOT RUN line for each that is still absent.
pub(crate) fn ensure(programs: &[Program]) -> Vec<String> {
    let missing = || {
        programs
            .iter()
            .filter(|program| !Run::new("sh").args(&["-c", program.probe]).works())
    };
    let packages: Vec<&str> = missing().map(|program| program.package).collect();
    if packages.is_empty() {
        return Vec::new();
    }
    if is_root() && Run::new("apt-get").args(&["--version"]).works() {
        let quiet = |args: &[&str]| {
            Run::new("apt-get")
                .args(args)
                .var("DEBIAN_FRONTEND", "noninteractive")
                .go()
        };
        // A failure shows itself below: what is still missing is named.
        let _ = quiet(&["update", "-q"]);
        let _ = quiet(&[&["install", "-qy", "--no-install-recommends"], &packages[..]].concat());
    }
    missing()
        .map(|program| {
            let (name, package, needed_for) = (program.name, program.package, program.needed_for);
            format!("NOT RUN: {needed_for}: `{name}` is missing; on Debian: apt-get install {package}")
        })
        .collect()
}

/// True for the superuser.
pub(crate) fn is_root() -> bool {
    Run::new("id")
        .args(&["-u"])
        .output()
        .is_ok_and(|id| id.trim() == "0")
}

/// A cargo subcommand that is installed when it is missing. The versions are those the project was written with.
pub(crate) fn cargo_tool(name: &str, version: &str) -> crate::Result {
    let subcommand = name.trim_start_matches("cargo-");
    if Run::cargo().args(&[subcommand, "--version"]).works() {
        return Ok(());
    }
    Run::cargo()
        .args(&["install", "--locked", name, "--version", version])
        .go()
}
