//! Small faulty planners that prove the gates have teeth (spec/gates.md, drill).
//!
//! Faults live in planners of their own, never as patches to source text, so there is nothing to restore. Never names
//! the scheduler: the clean reports come from outside.

mod appraise;
mod difference;
mod ledger;
mod plan;
#[cfg(test)]
mod shells;
mod table;

pub use appraise::{AppraiseFault, WORKED_APPRAISE, drill_appraise};
pub use ledger::drill_ledger;
pub use plan::{PlanFault, WORKED_PLAN, drill_plan};
pub use table::{DrillReport, Row};
