//! The commands as people and programs use them.

mod bad_inputs;
mod contract_files;
mod demonstration;
mod differential;
mod gates;
mod listening;
