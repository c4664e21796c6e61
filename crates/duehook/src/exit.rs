//! Exit codes, the same for every command (spec/gates.md).

/// What a command ends with. 3 beats 2 beats 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// 0: judged, and clean.
    Clean,
    /// 1: `probe` only: judged, and the report or ledger does not hold.
    DoesNotHold,
    /// 2: judged and a real problem found; or the facts are missing or unreadable.
    Problem,
    /// 3: the contract is unusable: nothing was judged.
    Contract,
    /// 64: the command line itself is wrong.
    Usage,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Clean => 0,
            Exit::DoesNotHold => 1,
            Exit::Problem => 2,
            Exit::Contract => 3,
            Exit::Usage => 64,
        })
    }
}
