//! The law of [`Store`], as tests that any backend runs: `store::conformance!(factory)` makes one test of each case,
//! where `factory` is a function that gives a fresh [`Factory`].
//!
//! A case sees the trait alone. What a backend adds (settings, files, faults of its disk) it tests itself.

pub mod accept;
pub mod admin;
pub mod clocks;
pub mod crash;
pub mod deliveries;
pub mod ledger;
pub mod nodes;
pub mod retention;
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
            accept {
                fans_out_to_endpoints_that_want_it
                fan_out_follows_changes
                a_message_comes_back_as_it_came
                an_idempotency_key_gives_the_first_answer
                an_idempotency_key_holds_among_many_at_once
                a_known_event_id_is_a_conflict
                an_unknown_application_is_not_found
                the_gate_starts_first_attempts
                the_nearest_contract_is_in_force
                without_a_contract_nothing_is_accepted
                claims_that_nobody_hears_of_are_taken_back
            }
            admin {
                applications_have_unique_uids
                deleting_an_application_deletes_its_endpoints
                endpoints_come_back_as_they_were_made
                endpoint_uids_are_unique_within_their_application
                secrets_are_replaced
                each_change_of_state_is_an_event
                the_failure_clock_is_cleared_by_success_and_activation
                lists_are_pages_by_id
                contracts_are_stored_once
                tokens_are_listed_and_revoked
                changes_are_told
            }
            clocks {
                both_clocks_must_allow_it
                a_reboot_leaves_the_wall_clock_alone
                due_is_a_window_oldest_first
                next_due_says_when_to_look_again
                next_due_goes_by_the_boot_clock_after_a_step
            }
            crash {
                what_was_acknowledged_is_there
                each_answered_accept_is_there
                attempts_in_flight_are_listed_and_settled
                a_superseded_attempt_in_flight_is_listed
                seq_goes_on_after_a_crash
            }
            deliveries {
                a_redrive_counts_anew
                a_redrive_is_held_like_any_other
                a_resend_reaches_a_later_endpoint
                a_redrive_of_nothing_is_not_found
                dead_lists_what_nothing_follows
                one_of_two_wins
                a_late_settle_is_stale
                settling_and_claiming_share_a_commit
                an_answer_is_kept
                attempts_are_listed
                messages_are_listed
                counts_follow_every_move
            }
            ledger {
                every_record_is_told
                records_come_grouped
                seq_is_the_order_of_commits
                the_ledger_is_of_one_moment
                a_sinks_error_ends_the_reading
            }
            nodes {
                a_first_start_finds_nothing
                a_crash_is_down_at_the_last_sign_of_life
                an_orderly_end_is_no_crash
                a_start_measures_the_step
                a_step_is_written_with_its_size
                nothing_is_claimed_before_a_node_is_up
                a_closed_store_is_unavailable
            }
            retention {
                old_and_final_messages_go_whole
                a_message_stays_whole_until_all_of_it_is_final
                payloads_go_and_the_ledger_stays
            }
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
