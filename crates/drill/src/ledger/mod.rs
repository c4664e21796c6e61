//! `drill ledger`: small faulty schedulers write native ledgers, and the judges must name what is wrong with each.

mod faults;
mod records;
mod scenario;
mod scheduler;

#[cfg(test)]
mod tests;
