//! Nouns: units, ids, the parsed contract and ledger records; and the reading of contract files, fail closed (I7).
//!
//! Knows text. Never knows clocks, sockets or files, and holds no predicate, no backoff arithmetic and no delivery
//! boundary: the meaning of a clause stands in `schedule`, in `audit` and in `probe/`, each on its own.

mod canonical;
mod check;
mod error;
pub mod id;
pub mod ledger;
pub mod model;
mod parse;
mod presets;
mod print;
pub mod rounds;
mod text;
pub mod units;

pub use canonical::{CanonicalError, revision_of};
pub use error::{ContractError, Problem, ValueError};
pub use id::{AppId, AttemptId, EndpointId, MessageId, TokenId};
pub use model::Contract;
pub use parse::{LANGUAGE, MAX_ATTEMPTS, MAX_FILE_BYTES, parse, parse_bytes};
pub use presets::{Preset, preset, presets};
pub use text::{parse_duration, parse_factor, parse_rate, parse_ratio, parse_statuses};
pub use units::{AttemptNo, BootInstant, DeliveryNo, Duration, Instant, RetryNo, Seq};
