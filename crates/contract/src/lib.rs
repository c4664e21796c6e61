//! Nouns: units, ids, the parsed contract and ledger records; and the reading of contract files, fail closed (I7).
//!
//! Knows text. Never knows clocks, sockets or files, and holds no predicate, no backoff arithmetic and no delivery
//! boundary: the meaning of a clause stands in `schedule`, in `audit` and in `probe/`, each on its own.

pub mod id;
pub mod ledger;
pub mod model;
pub mod units;

pub use id::{AppId, AttemptId, EndpointId, MessageId, TokenId};
pub use model::Contract;
pub use units::{AttemptNo, BootInstant, DeliveryNo, Duration, Instant, RetryNo, Seq};
