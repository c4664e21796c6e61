//! `duehook contract diff`: which clauses differ between two contracts, and which waits follow from it.

use super::show::{Row, rows, span};
use super::{read, refuse};
use crate::exit::Exit;
use crate::ui;
use contract::Contract;
use serde_json::json;
use std::collections::BTreeMap;

/// Compare two contracts, clause by clause and wait by wait
#[derive(clap::Args)]
pub(super) struct Args {
    /// A contract file, or preset:NAME
    #[arg(value_name = "A")]
    a: String,
    /// The other one
    #[arg(value_name = "B")]
    b: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// So many differing waits are printed for people.
const ROWS: usize = 12;

/// A clause or a retry, and what it is on either side; none where it is not there.
type Difference = (String, Option<String>, Option<String>);

pub(super) fn run(args: &Args) -> Exit {
    let (a, b) = match (read(&args.a), read(&args.b)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(error), _) | (_, Err(error)) => return refuse(&error, args.json),
    };
    let clauses = differences(clauses(&a), clauses(&b));
    let waits = differences(waits(&a), waits(&b));
    if args.json {
        let list = |all: &[Difference]| -> Vec<_> {
            all.iter()
                .map(|(key, a, b)| json!({ "key": key.trim_start(), "a": a, "b": b }))
                .collect()
        };
        ui::say(json!({
            "same": clauses.is_empty(), "rev_a": a.rev(), "rev_b": b.rev(),
            "clauses": list(&clauses), "retries": list(&waits),
        }));
        return Exit::Clean;
    }
    if clauses.is_empty() {
        ui::say(format_args!("the same contract, revision {}", &a.rev()[..12]));
        return Exit::Clean;
    }
    print(&["clause", &args.a, &args.b], &clauses);
    if waits.is_empty() {
        ui::say("\nevery wait is the same");
    } else {
        ui::say("");
        print(&["retry", &args.a, &args.b], &waits[..waits.len().min(ROWS)]);
        if waits.len() > ROWS {
            ui::say(format_args!("and {} more waits that differ", waits.len() - ROWS));
        }
    }
    Exit::Clean
}

fn print(header: &[&str], differences: &[Difference]) {
    let mut table = ui::table(header);
    let shown = |side: &Option<String>| side.clone().unwrap_or_else(|| "–".to_owned());
    for (key, a, b) in differences {
        table.add_row(vec![key.trim_start().to_owned(), shown(a), shown(b)]);
    }
    ui::say(table);
}

fn differences(a: BTreeMap<String, String>, mut b: BTreeMap<String, String>) -> Vec<Difference> {
    let mut all: Vec<Difference> = a
        .into_iter()
        .map(|(key, a)| {
            let b = b.remove(&key);
            (key, Some(a), b)
        })
        .filter(|(_, a, b)| a != b)
        .collect();
    all.extend(b.into_iter().map(|(key, b)| (key, None, Some(b))));
    all.sort();
    all
}

/// Retry n → its wait; numbers are padded so that they sort.
fn waits(contract: &Contract) -> BTreeMap<String, String> {
    rows(contract)
        .iter()
        .map(|row: &Row| (format!("{:>5}", row.n), span(row.earliest, row.latest)))
        .collect()
}

/// Every clause of the printed file, as `retry.backoff.cap` → `"10h"`.
fn clauses(contract: &Contract) -> BTreeMap<String, String> {
    let table: toml::Table = contract.to_toml().parse().unwrap_or_default();
    let mut flat = BTreeMap::new();
    flatten(String::new(), &toml::Value::Table(table), &mut flat);
    flat
}

fn flatten(path: String, value: &toml::Value, flat: &mut BTreeMap<String, String>) {
    let below = |key: &dyn std::fmt::Display| {
        if path.is_empty() {
            key.to_string()
        } else {
            format!("{path}.{key}")
        }
    };
    match value {
        toml::Value::Table(table) => table
            .iter()
            .for_each(|(key, value)| flatten(below(key), value, flat)),
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, item)| flatten(below(&(n + 1)), item, flat));
        }
        scalar => {
            flat.insert(path, scalar.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_by_its_clause() {
        let a = contract::preset("default")
            .expect("it ships")
            .contract()
            .expect("sound");
        let text = a.to_toml().replacen("factor = \"4\"", "factor = \"2\"", 1);
        let b = contract::parse(&text, "b").expect("sound");
        let found = differences(clauses(&a), clauses(&b));
        assert_eq!(
            found,
            [(
                "retry.backoff.factor".to_owned(),
                Some("\"4\"".to_owned()),
                Some("\"2\"".to_owned())
            )]
        );
        let waits = differences(waits(&a), waits(&b));
        assert_eq!(
            waits.first(),
            Some(&("    2".to_owned(), Some("2m".to_owned()), Some("1m".to_owned())))
        );
        assert_eq!(waits.len(), 6);
    }
}
