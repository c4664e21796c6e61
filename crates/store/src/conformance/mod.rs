//! The law of [`Store`], as tests that any backend runs: `store::conformance!(factory)` makes one test of each case,
//! where `factory` is a function that gives a fresh [`Factory`].
//!
//! A case sees the trait alone. What a backend adds (settings, files, faults of its disk) it tests itself.

pub mod states;
pub mod world;

pub use world::{Records, World};

use crate::Store;
use async_trait::async_trait;
use std::sync::Arc;

/// Makes stores of one backend over one place of storage, empty at first.
#[async_trait]
pub trait Factory: Send + Sync {
    /// Opens the store: the same data every time.
    async fn open(&self) -> Arc<dyn Store>;
}

/// Makes a `#[tokio::test]` of each case: `store::conformance!(my_backend::factory)`.
#[macro_export]
macro_rules! conformance {
    ($factory:path) => {
        $crate::conformance!(@ $factory;
            states {
                pending_is_claimed
                pending_is_cancelled
                pending_expires
                pending_is_superseded
                sending_succeeds
                sending_fails_and_waits
                sending_fails_and_is_dead
                sending_is_released
                sending_is_superseded
                sending_moves_by_its_settle_alone
                succeeded_is_final
                dead_is_final
                cancelled_is_final
                active_gets_new_messages
                active_goes_when_due
                active_attempts_finish
                draining_holds_new_messages
                draining_holds_what_waits
                draining_attempts_finish
                disabled_records_new_messages_as_dead
                disabled_buries_what_waits
                disabled_attempts_finish
                deleted_gets_no_new_messages
                deleted_buries_what_waits
                deleted_attempts_finish
            }
        );
    };
    (@ $factory:path; $($module:ident { $($case:ident)+ })+) => {
        $(mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
            async fn $case() {
                $crate::conformance::$module::$case(&$factory()).await;
            })+
        })+
    };
}
