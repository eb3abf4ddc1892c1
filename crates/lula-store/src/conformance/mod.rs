//! What every backend has to pass. A backend's test binary calls
//! [`conformance_tests!`](crate::conformance_tests) with a function that opens one more handle on
//! one and the same store; each check becomes a test of its own.

#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc)]

mod beside;
mod blobs;
mod fixtures;
mod log;
mod queue;

pub use beside::*;
pub use blobs::*;
pub use fixtures::fresh_run;
pub use log::*;
pub use queue::*;

/// Makes a test of each check. `$open` is an `async fn() -> Arc<dyn Store>`.
#[macro_export]
macro_rules! conformance_tests {
    ($open:path; $($check:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                $crate::conformance::$check($open().await, $open().await).await;
            }
        )*
    };
    ($open:path) => {
        $crate::conformance_tests!($open;
            a_run_reads_back_as_it_was_written,
            a_run_is_created_once,
            a_run_is_created_and_continued_at_once,
            a_run_is_created_and_put_to_rest_at_once,
            an_append_needs_the_head_and_the_epoch,
            of_many_appends_at_one_head_one_wins,
            a_claimed_run_belongs_to_nobody_else,
            a_dead_owners_run_is_claimed_and_the_old_owner_is_fenced,
            many_workers_never_get_the_same_run,
            a_clock_that_jumps_back_claims_nothing,
            a_suspended_run_is_due_when_its_time_comes,
            a_signal_wakes_a_suspended_run,
            a_signal_sent_before_the_suspension_is_not_lost,
            signals_come_in_order_and_are_taken_once,
            a_run_that_is_done_is_never_claimed,
            blobs_are_found_by_their_digest,
            a_condemned_blob_is_dropped_unless_it_is_stored_again,
            what_old_runs_were_told_is_dropped_and_what_others_need_is_kept,
            effects_show_where_they_stand,
            an_approval_is_used_once_and_only_for_its_digest,
            a_refused_append_leaves_nothing_behind,
            a_ledger_row_above_its_limit_is_refused,
            the_newest_snapshot_is_kept_and_can_be_dropped,
            a_log_is_read_in_pages,
            runs_are_listed_by_age_and_filtered,
            a_watcher_hears_of_an_append,
            a_renewed_lease_is_not_claimed,
            a_yielded_run_is_ready_at_once,
            in_no_order_of_claims_and_appends_can_two_owners_write,
            in_no_order_is_an_approval_used_otherwise_than_it_was_given,
        );
    };
}
