//! Reading, each function on whatever connection it is given: a reader's, or the writer's inside a transaction.

pub(super) mod admin;
pub(super) mod due;
pub(super) mod ledger;
pub(super) mod messages;
