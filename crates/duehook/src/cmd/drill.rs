//! `duehook drill`: proves that the gates have teeth (spec/gates.md). Changes nothing, so it has nothing to restore.

use super::verify::{Own, exit_of};
use crate::exit::Exit;
use crate::ui::{fail, say, table};
use drill::{DrillReport, Row, drill_appraise, drill_ledger, drill_plan};
use gates::{Code, Gates};

/// Show that the gates turn red: small faulty planners against health, probe, verify and audit
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  duehook drill plan        every known fault of a retry round\n  \
duehook drill appraise    every known fault of a queue round\n  \
duehook drill ledger      faulty schedulers that each write a ledger of the live engine\n\n\
Exit codes: 0 every fault was exercised and caught · 2 a gate stayed green, or a fault was not exercised"
)]
pub(crate) struct Args {
    /// Which gates
    #[arg(value_enum)]
    round: Round,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Round {
    /// Those of the retry round
    Plan,
    /// Those of the queue round
    Appraise,
    /// Those of the live ledger
    Ledger,
}

pub(crate) fn run(args: Args) -> Exit {
    let gates = Gates::default();
    let drilled = match args.round {
        Round::Plan => Own::find().and_then(|own| drill_plan(&gates, &own)),
        Round::Appraise => Own::find().and_then(|own| drill_appraise(&gates, &own)),
        Round::Ledger => drill_ledger(gates.probe),
    };
    match drilled {
        Ok(report) => {
            if args.json {
                say(report.to_json());
            } else {
                print(&report, args.round);
            }
            exit_of(report.code())
        }
        Err(error) => fail(Exit::Problem, &error),
    }
}

fn print(report: &DrillReport, round: Round) {
    let judge = if matches!(round, Round::Ledger) {
        "audit"
    } else {
        "health"
    };
    let mut lines = table(&["fault", "exercised by", judge, "probe", "verify", "verdict"]);
    for row in &report.rows {
        lines.add_row(cells(row));
    }
    say(lines);
    report.summary().iter().for_each(say);
}

fn cells(row: &Row) -> [String; 6] {
    let colour = |code: Option<Code>| {
        code.map_or("-".to_owned(), |code| {
            format!(
                "{} {}",
                if code.is_red() { "red" } else { "green" },
                code.number()
            )
        })
    };
    [
        row.fault.clone(),
        row.exercised.clone().unwrap_or_else(|| "-".to_owned()),
        colour(row.health),
        colour(row.probe),
        row.verify
            .map_or("-".to_owned(), |failed| format!("{failed} fail")),
        row.verdict.clone(),
    ]
}
