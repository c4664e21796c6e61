//! `duehook contract show`: when each retry comes, as a table and a small plot.

use super::{read, refuse};
use crate::exit::Exit;
use crate::ui;
use contract::model::Anchor;
use contract::{Contract, Duration, RetryNo};
use serde_json::json;

/// Show when each retry comes: earliest and latest wait, and the age of the delivery
#[derive(clap::Args)]
pub(super) struct Args {
    /// A contract file, or preset:NAME
    #[arg(value_name = "FILE")]
    file: String,
    /// Print every retry, however many there are
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Without `--all`, so many rows are printed before the last.
const ROWS: usize = 30;
const PLOT_WIDTH: usize = 32;

/// One retry.
pub(super) struct Row {
    pub(super) n: u32,
    pub(super) earliest: Duration,
    pub(super) latest: Duration,
    /// Age of the delivery when the attempt after it starts, if attempts took no time.
    pub(super) age: (Duration, Duration),
}

/// Every retry of the contract, up to its last attempt or the end of its schedule.
pub(super) fn rows(contract: &Contract) -> Vec<Row> {
    let retry = &contract.retry;
    let mut age = (Duration::ZERO, Duration::ZERO);
    let mut rows = Vec::new();
    for n in 1..retry.max_attempts {
        let Some((earliest, latest)) = audit::waits::interval(contract, RetryNo::new(n)) else {
            break;
        };
        let (low, high) = (earliest + retry.slack, latest + retry.slack);
        age = match retry.anchor {
            Anchor::End | Anchor::Start => (age.0 + low, age.1 + high),
            Anchor::First => (low, high),
        };
        rows.push(Row {
            n,
            earliest,
            latest,
            age,
        });
    }
    rows
}

pub(super) fn run(args: &Args) -> Exit {
    let contract = match read(&args.file) {
        Ok(contract) => contract,
        Err(error) => return refuse(&error, args.json),
    };
    let rows = rows(&contract);
    let warnings: Vec<String> = audit::waits::warnings(&contract)
        .iter()
        .map(ToString::to_string)
        .collect();
    if args.json {
        print_json(&contract, &rows, &warnings);
    } else {
        print(&contract, &rows, &warnings, args.all);
    }
    Exit::Clean
}

fn print_json(contract: &Contract, rows: &[Row], warnings: &[String]) {
    let waits: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "n": row.n, "earliest_ms": row.earliest, "latest_ms": row.latest,
                "age_earliest_ms": row.age.0, "age_latest_ms": row.age.1,
            })
        })
        .collect();
    ui::say(json!({
        "name": contract.name, "rev": contract.rev(), "max_attempts": contract.retry.max_attempts,
        "max_age_ms": contract.retry.max_age, "retries": waits, "warnings": warnings,
    }));
}

fn print(contract: &Contract, rows: &[Row], warnings: &[String], all: bool) {
    let (retry, color) = (&contract.retry, ui::color());
    ui::say(format_args!(
        "{}  revision {}",
        ui::paint(&contract.name, ui::BOLD, color),
        &contract.rev()[..12]
    ));
    ui::say(summary(contract, rows));
    if rows.is_empty() {
        ui::say("one attempt, no retry");
    } else {
        let longest = rows.iter().map(|row| row.latest).max().unwrap_or_default();
        let mut table = ui::table(&["n", "wait", "age of the delivery", "wait, on a log scale"]);
        let shown = if all || rows.len() <= ROWS + 2 {
            rows.len()
        } else {
            ROWS
        };
        rows.iter()
            .take(shown)
            .for_each(|row| add(&mut table, row, longest, retry.max_age));
        if shown < rows.len() {
            table.add_row(vec![
                "…".to_owned(),
                format!("{} more: --all shows them", rows.len() - shown - 1),
            ]);
            rows.iter()
                .last()
                .into_iter()
                .for_each(|row| add(&mut table, row, longest, retry.max_age));
        }
        ui::say(table);
    }
    for warning in warnings {
        ui::say(format_args!(
            "{}: {warning}",
            ui::paint("warning", ui::YELLOW, color)
        ));
    }
}

fn add(table: &mut comfy_table::Table, row: &Row, longest: Duration, max_age: Option<Duration>) {
    let too_old = max_age.is_some_and(|max| row.age.0 > max);
    let plot = if too_old {
        "beyond max_age: not made".to_owned()
    } else {
        bar(row, longest)
    };
    table.add_row(vec![
        row.n.to_string(),
        span(row.earliest, row.latest),
        span(row.age.0, row.age.1),
        plot,
    ]);
}

fn summary(contract: &Contract, rows: &[Row]) -> String {
    let retry = &contract.retry;
    let anchor = match retry.anchor {
        Anchor::End => "from the end of the attempt before",
        Anchor::Start => "from the start of the attempt before",
        Anchor::First => "from the start of the first attempt",
    };
    let slack = if retry.slack.is_zero() {
        String::new()
    } else {
        format!(", plus {} of slack", retry.slack)
    };
    let max_age = retry.max_age.map_or_else(
        || "no limit of age".to_owned(),
        |max| format!("at most {max} old"),
    );
    let last = rows.last().map_or(Duration::ZERO, |row| row.age.1);
    format!(
        "{} attempts, {max_age}; waits run {anchor}{slack}; the last retry comes {} after the first attempt at the latest",
        retry.max_attempts, last
    )
}

/// `5s`, or `4s..6s`.
pub(super) fn span(low: Duration, high: Duration) -> String {
    if low == high {
        low.to_string()
    } else {
        format!("{low}..{high}")
    }
}

/// A line to the earliest wait and a shade to the latest, on a logarithmic scale.
fn bar(row: &Row, longest: Duration) -> String {
    let full = log2(longest).max(1);
    let place = |wait: Duration| {
        usize::try_from(log2(wait)).unwrap_or(0) * PLOT_WIDTH / usize::try_from(full).unwrap_or(1)
    };
    let (low, high) = (place(row.earliest), place(row.latest));
    format!("{}{}", "━".repeat(low), "░".repeat(high - low))
}

/// The binary logarithm of 1 + ms, in 256ths: straight between powers of two, which no eye can tell.
fn log2(wait: Duration) -> u64 {
    let x = wait.as_ms().saturating_add(1);
    let whole = x.ilog2();
    let part = (u128::from(x) << 8 >> whole) & 0xff;
    u64::from(whole) * 256 + u64::try_from(part).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_rises_and_hits_the_powers_of_two() {
        assert_eq!(log2(Duration::ZERO), 0);
        assert_eq!(log2(Duration::from_ms(1)), 256);
        assert_eq!(log2(Duration::from_ms(1023)), 2560);
        assert!((1..5000).all(|ms| log2(Duration::from_ms(ms)) >= log2(Duration::from_ms(ms - 1))));
    }

    #[test]
    fn the_example_of_the_spec_takes_21h22m() {
        let contract = contract::preset("default")
            .expect("it ships")
            .contract()
            .expect("sound");
        let rows = rows(&contract);
        let waits: Vec<_> = rows.iter().map(|row| span(row.earliest, row.latest)).collect();
        // 10h is the cap; the law would say 34h8m.
        assert_eq!(waits, ["30s", "2m", "8m", "32m", "2h8m", "8h32m", "10h"]);
        assert_eq!(rows.last().expect("seven").age.1.to_string(), "21h22m30s");
    }
}
