//! The `duehook` binary. One file a command in `cmd/`; this one reads the command line and maps exit codes.

mod client;
// Every command takes its arguments whole: one signature, whether or not it gives parts of them away.
#[allow(clippy::needless_pass_by_value)]
mod cmd;
mod config;
mod exit;
mod receiver;
mod report;
mod ui;

use clap::{Parser, Subcommand};
use exit::Exit;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Outbound webhooks by a written contract: accepts, delivers, retries, and proves it.
#[derive(Parser)]
#[command(
    name = "duehook",
    version,
    arg_required_else_help = true,
    max_term_width = 110
)]
#[command(
    after_help = "Exit codes: 0 judged and clean · 1 probe only: does not hold · 2 a problem, or facts missing · \
3 contract unusable · 64 wrong command line\n\nStart here:\n  duehook demo                    watch it work\n  \
duehook serve                   run the server\n  duehook explain MESSAGE         why has this not been delivered?"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // Run
    Serve(cmd::serve::Args),
    Demo(cmd::demo::Args),
    Listen(cmd::listen::Args),
    // Use
    Send(cmd::send::Args),
    Endpoint(cmd::endpoint::Args),
    Explain(cmd::explain::Args),
    Redrive(cmd::redrive::Args),
    Token(cmd::token::Args),
    // Contract
    Contract(cmd::contract::Args),
    // Rounds over files
    Plan(cmd::plan::Args),
    Appraise(cmd::appraise::Args),
    // Judge
    Audit(cmd::audit::Args),
    Health(cmd::health::Args),
    Probe(cmd::probe::Args),
    Verify(cmd::verify::Args),
    Drill(cmd::drill::Args),
    // Keep
    Ledger(cmd::ledger::Args),
    Backup(cmd::backup::Args),
    Completions(cmd::completions::Args),
}

fn main() -> std::process::ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Clean
            }
            .into();
        }
    };
    match cli.command {
        Command::Serve(args) => cmd::serve::run(args),
        Command::Demo(args) => cmd::demo::run(args),
        Command::Listen(args) => cmd::listen::run(args),
        Command::Send(args) => cmd::send::run(args),
        Command::Endpoint(args) => cmd::endpoint::run(args),
        Command::Explain(args) => cmd::explain::run(args),
        Command::Redrive(args) => cmd::redrive::run(args),
        Command::Token(args) => cmd::token::run(args),
        Command::Contract(args) => cmd::contract::run(args),
        Command::Plan(args) => cmd::plan::run(args),
        Command::Appraise(args) => cmd::appraise::run(args),
        Command::Audit(args) => cmd::audit::run(args),
        Command::Health(args) => cmd::health::run(args),
        Command::Probe(args) => cmd::probe::run(args),
        Command::Verify(args) => cmd::verify::run(args),
        Command::Drill(args) => cmd::drill::run(args),
        Command::Ledger(args) => cmd::ledger::run(args),
        Command::Backup(args) => cmd::backup::run(args),
        Command::Completions(args) => cmd::completions::run::<Cli>(&args),
    }
    .into()
}
