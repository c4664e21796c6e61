//! Who makes the reports that the gates judge. The gates never name the scheduler: a planner is handed to them.

use crate::code::Code;
use crate::files::{QueueFiles, RetryFiles};
use std::path::Path;

/// Makes the report of a retry round, whole or not at all.
pub trait Planner {
    /// Writes the report to `report`; nothing is written unless the code is 0.
    fn plan(&self, files: &RetryFiles, report: &Path) -> Code;
}

/// Makes the report of a queue round, whole or not at all.
pub trait Appraiser {
    /// Writes the report to `report`. A malformed line gives code 2 and a report all the same.
    fn appraise(&self, files: &QueueFiles, now: i64, report: &Path) -> Code;
}
