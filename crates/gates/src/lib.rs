//! health, probe and verify: gates that can turn red (spec/gates.md).
//!
//! Green means something only if it can turn red, so each gate is a value (`Health`, `Probe`) that a test or the drill
//! can blunt in code, and see that the others notice. Keeps I7 (cannot judge is not "no problem") and I8 (every figure
//! is derived by a judge that did not write it). Never names the scheduler: the reports come from outside.

mod code;
mod files;
mod health;
mod planner;
mod probe;
mod verify;

pub use code::Code;
pub use files::{QueueFiles, ReadError, RetryFiles, sha256_of, sha256_of_file};
pub use health::{
    CHECKS, Health, HealthCheck, HealthVerdict, Issue, health_appraise, health_ledger, health_plan,
};
pub use planner::{Appraiser, Planner};
pub use probe::{
    APPRAISE_SQL, LEDGER_SQL, PLAN_SQL, Probe, ProbeVerdict, probe_appraise, probe_ledger, probe_plan,
};
pub use verify::{Check, Gates, Verification, verify_appraise, verify_plan};
