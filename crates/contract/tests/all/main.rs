//! The contract language, clause by clause, from the outside.

mod language;
mod refusals;
mod round_trip;
mod vectors;
