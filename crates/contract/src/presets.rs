//! Complete contract files that ship with the program: a start to edit, never a default that applies by itself.

use crate::error::ValueError;
use crate::model::Contract;

/// A contract file that ships with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    /// The file, with its comments.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal: $about:literal),+ $(,)?) => {
        &[$(Preset { name: $name, about: $about, text: include_str!(concat!("../presets/", $name, ".toml")) }),+]
    };
}

const PRESETS: &[Preset] = presets! {
    "default": "eight attempts over 21 hours, each wait four times the last",
    "svix": "the schedule Svix publishes: 5s 5m 30m 2h 5h 10h 10h after the first attempt",
    "standard-webhooks": "the example schedule of the Standard Webhooks specification: ten attempts over three days",
    "convoy": "Convoy's exponential strategy: 10s doubled up to two hours",
    "outpost": "Hookdeck Outpost's defaults: 30s doubled, ten retries",
    "hook0": "Hook0's built-in table, then every ten hours",
    "slack": "the Slack Events API: at once, after a minute, after five",
    "adyen": "Adyen's queue: minutes, then hours, for thirty days",
    "kit": "Kit's schedule: seven retries over 41 hours, Retry-After honoured",
    "github": "GitHub's rule: one attempt, no retry",
};

/// Every preset, the default first.
#[must_use]
pub const fn presets() -> &'static [Preset] {
    PRESETS
}

/// The preset of that name.
///
/// # Errors
/// No preset has that name; the message lists them.
pub fn preset(name: &str) -> Result<&'static Preset, ValueError> {
    let names = || PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>();
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .ok_or_else(|| crate::parse::unknown_preset(name, &names()))
}

impl Preset {
    /// The preset, read. A test reads every one of them.
    ///
    /// # Errors
    /// None for a preset that ships.
    pub fn contract(&self) -> Result<Contract, crate::ContractError> {
        crate::parse(self.text, &format!("preset {}", self.name))
    }
}
