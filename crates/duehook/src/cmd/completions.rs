//! `duehook completions SHELL`: prints a completion script.

use crate::exit::Exit;

/// Print a completion script for your shell.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  duehook completions bash > /etc/bash_completion.d/duehook")]
pub(crate) struct Args {
    /// Which shell
    shell: clap_complete::Shell,
}

pub(crate) fn run<Cli: clap::CommandFactory>(args: &Args) -> Exit {
    clap_complete::generate(args.shell, &mut Cli::command(), "duehook", &mut std::io::stdout());
    Exit::Clean
}
