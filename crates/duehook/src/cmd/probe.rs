//! `duehook probe`: under construction.

use crate::exit::Exit;

/// Under construction.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args) -> Exit {
    Exit::Usage
}
