//! Small faulty planners that prove the gates have teeth (spec/gates.md, drill).
//!
//! Faults live in planners of their own, never as patches to source text, so there is nothing to restore. Never names
//! the scheduler: the clean reports come from outside.

mod ledger;
