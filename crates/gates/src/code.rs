//! The colours of a gate: exit codes, the same for every command (spec/gates.md).

/// What a gate ends with. 3 beats 2 beats 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// 0: judged, and clean.
    Clean,
    /// 1: `probe` only: judged, and the report or ledger does not hold.
    DoesNotHold,
    /// 2: judged and a real problem found; or the facts are missing or unreadable.
    Problem,
    /// 3: the contract is unusable: nothing was judged.
    Contract,
}

impl Code {
    /// The number that a shell sees.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::DoesNotHold => 1,
            Self::Problem => 2,
            Self::Contract => 3,
        }
    }
    /// True for every colour but green.
    #[must_use]
    pub const fn is_red(self) -> bool {
        !matches!(self, Self::Clean)
    }
    /// The code of a shell's number; `None` for one that no gate ends with.
    #[must_use]
    pub const fn from_number(n: i32) -> Option<Self> {
        match n {
            0 => Some(Self::Clean),
            1 => Some(Self::DoesNotHold),
            2 => Some(Self::Problem),
            3 => Some(Self::Contract),
            _ => None,
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number().fmt(f)
    }
}
