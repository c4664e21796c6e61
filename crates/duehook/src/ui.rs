//! What people see: tables, colours, and errors that say what happened, where, what would be right and what to type
//! next. Machines get `--json` and no colour.

use crate::exit::Exit;
use contract::{Contract, ContractError};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Wide enough for a sentence, where the terminal does not say.
const DEFAULT_WIDTH: usize = 100;

/// SGR codes, by what they are used for.
pub(crate) const RED: u8 = 31;
pub(crate) const GREEN: u8 = 32;
pub(crate) const YELLOW: u8 = 33;
pub(crate) const DIM: u8 = 2;
pub(crate) const BOLD: u8 = 1;

/// A table without heavy lines, sized to the terminal.
pub(crate) fn table(header: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    table
}

/// Prints a line to standard output. A closed pipe (`| head`) is no error of ours.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a line to standard error: what a person should know and a program should not read.
pub(crate) fn note(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
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

/// Prints an unusable contract with its lines to standard error. Nothing was judged: exit 3.
pub(crate) fn fail_contract(error: &ContractError) -> Exit {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    note(format_args!(
        "error: the contract cannot be used\n{}",
        error.render(DEFAULT_WIDTH, color)
    ));
    Exit::Contract
}

/// Reads a native contract file.
pub(crate) fn read_contract(path: &Path) -> Result<Contract, ContractError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| ContractError::unreadable(&name, &error))?;
    contract::parse_bytes(&bytes, &name)
}

/// True where standard output is a terminal and nobody asked for plain text (`NO_COLOR`).
pub(crate) fn color() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The text in a colour, or as it is.
pub(crate) fn paint(text: &str, code: u8, color: bool) -> String {
    if color {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

/// A status, green where it succeeded by the usual reckoning.
pub(crate) fn status(status: u16, color: bool) -> String {
    let code = match status {
        200..=299 => GREEN,
        300..=499 => YELLOW,
        _ => RED,
    };
    paint(&status.to_string(), code, color)
}

/// The UTC time of day of a Unix millisecond, as `21:03:04.123`.
#[allow(clippy::cast_possible_truncation)] // The remainder of a day is far below 2^53, and the fraction is cut on purpose.
pub(crate) fn clock(unix_ms: f64) -> String {
    let ms = unix_ms.rem_euclid(86_400_000.0) as i64;
    let (seconds, ms) = (ms / 1000, ms % 1000);
    format!(
        "{:02}:{:02}:{:02}.{ms:03}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Returns when the process is asked to stop: Ctrl-C or SIGTERM.
pub(crate) async fn stopped() {
    let term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    let terminated = async {
        match term {
            Ok(mut term) => {
                term.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
