//! What people see: tables, and errors that say what happened, where, what would be right and what to type next.

use crate::exit::Exit;
use std::io::Write;

/// A table without heavy lines, sized to the terminal.
pub(crate) fn table(header: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_preset(comfy_table::presets::NOTHING)
        .set_header(header);
    table
}

/// Prints a line to standard output. A closed pipe (`| head`) is no error of ours.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints `error: …` and the causes behind it to standard error, and gives the exit back.
pub(crate) fn fail(exit: Exit, error: &dyn std::error::Error) -> Exit {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "error: {error}");
    let mut cause = error.source();
    while let Some(source) = cause {
        let _ = writeln!(err, "  because: {source}");
        cause = source.source();
    }
    exit
}
