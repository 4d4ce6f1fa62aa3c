//! The list of all cases, each a test of its own on every ground.

/// `conform!(memory, async { MemoryGround::default() });` makes the tests `memory::…`.
macro_rules! conform {
    ($(#[$meta:meta])* $name:ident, $ground:expr) => {
        $(#[$meta])*
        mod $name {
            use super::*;
            $crate::ledger::suite::cases::each!($ground;
                submissions: [
                    a_job_goes_from_its_submission_to_its_end,
                    each_step_is_recorded_with_who_asked_for_it,
                    everything_submitted_is_shown_again,
                    what_does_not_fit_is_refused_by_its_field,
                    a_batch_is_stored_whole_or_not_at_all,
                    a_job_for_later_is_pending_when_it_is_due,
                    a_job_that_is_due_is_claimed_before_anybody_keeps_time,
                    depth_follows_from_the_parent_and_ends_at_five,
                    a_parent_must_exist_and_go_on,
                    a_unique_key_finds_the_living_job,
                    many_who_submit_one_unique_key_make_one_job,
                    a_child_key_finds_the_child_also_after_its_end,
                    jobs_without_an_end_are_bounded,
                    a_retry_is_a_new_job_with_fresh_attempts,
                    only_what_ended_without_a_result_is_retried,
                    a_retry_does_not_double_a_unique_job,
                ],
                claims: [
                    the_most_urgent_is_claimed_first,
                    pools_do_not_get_each_others_work,
                    a_claim_makes_an_attempt,
                    many_who_claim_at_once_get_each_job_once,
                    a_gang_is_claimed_when_its_workers_are_had,
                    a_paused_queue_gives_nothing,
                    a_key_bounds_how_many_run_and_others_pass_by,
                    words_with_an_old_fence_change_nothing,
                    what_a_job_says_is_its_story,
                    the_lines_of_a_story_are_bounded,
                ],
                ends: [
                    a_crash_is_tried_again_until_the_attempts_are_used_up,
                    what_went_wrong_is_the_reason,
                    an_exception_fails_at_once_unless_it_is_to_be_retried,
                    an_error_that_was_overcome_is_not_shown,
                    an_attempt_that_never_began_does_not_count,
                    a_result_beyond_its_bound_fails_the_job,
                    what_nobody_works_on_is_canceled_at_once,
                    what_runs_is_canceled_when_it_has_let_go,
                    what_has_ended_is_not_canceled,
                    a_handler_that_gives_up_by_itself_is_canceled,
                    what_waits_for_its_next_attempt_is_canceled_at_once,
                    cancel_against_completion_has_one_end,
                ],
                trees: [
                    a_parent_ends_when_its_children_have,
                    a_parent_whose_children_ended_before_it_just_ends,
                    a_failed_child_fails_the_waiting_parent_and_its_siblings,
                    a_parent_that_works_on_is_judged_when_it_returns,
                    a_parent_that_ignores_its_children_ends_without_them,
                    a_parent_that_fails_cancels_its_children,
                    cancel_goes_down_the_tree_the_deepest_first,
                    a_cancelled_parent_that_works_waits_for_its_children,
                    an_unstarted_parent_ends_after_its_working_child,
                    a_cancelled_child_takes_its_waiting_parent_along,
                    a_tree_of_five_levels_ends_from_its_leaves,
                    a_retried_parent_finds_its_children,
                ],
                time: [
                    a_job_that_takes_too_long_is_canceled,
                    a_timeout_covers_the_children,
                    time_says_when_it_wants_to_be_asked_again,
                    more_than_a_chunk_is_done_in_turns,
                    ended_jobs_are_kept_for_their_time,
                    children_are_kept_as_long_as_their_parent_may_look_for_them,
                ],
                nodes: [
                    what_ran_when_the_server_died_is_tried_again,
                    what_may_run_only_once_fails_as_lost,
                    what_was_to_be_cancelled_is_canceled_by_the_next_server,
                    a_lost_child_fails_its_parent,
                    many_lost_attempts_are_all_settled,
                    time_goes_on_where_it_was_after_a_restart,
                    a_closed_ledger_takes_nothing,
                ],
                keys: [
                    an_answer_is_given_again,
                    an_effect_is_known_by_its_key,
                    each_operation_marks_its_key,
                    what_was_refused_does_not_use_a_key_up,
                    a_crash_in_between_leaves_doubt_only_outside_the_ledger,
                    keys_are_kept_for_their_time,
                    keys_are_bounded,
                    many_who_begin_one_key_begin_it_once,
                ],
                lists: [
                    lists_show_what_fits_the_youngest_first,
                    pages_join_without_a_gap,
                    jobs_are_counted_by_status,
                    what_does_not_exist_is_not_found,
                ],
                schedules: [
                    a_schedule_submits_its_job_each_time,
                    times_that_passed_count_once,
                    a_time_is_left_out_while_the_last_job_goes_on,
                    a_paused_schedule_stands_still,
                    a_schedule_is_changed_and_deleted,
                    jobs_outlive_their_schedule,
                    what_does_not_fit_is_refused,
                    a_schedule_without_room_leaves_its_time_out,
                    schedules_are_listed_in_pages_and_mark_their_keys,
                ],
                audit: [
                    a_trail_that_is_not_whole_is_found,
                    what_changes_meanwhile_is_not_called_wrong,
                ],
                faults: [
                    a_refusal_at_any_moment_changes_nothing,
                    a_loss_at_any_moment_changes_nothing,
                    a_doubt_at_any_moment_is_settled,
                ],
                histories: [
                    whatever_happens_what_is_stored_fits_together,
                ],
                workers: [
                    changes_are_stored_in_their_order,
                    a_change_that_does_not_follow_is_refused,
                    a_change_may_come_again_but_not_another_in_its_place,
                    pool_workers_end_with_their_server,
                    pool_workers_of_a_dead_server_are_terminated,
                    a_pool_knows_its_past,
                    ended_workers_are_kept_for_their_time,
                ],
            );
        }
    };
}

macro_rules! each {
    ($ground:expr; $($module:ident: [$($case:ident,)*],)*) => {
        $(mod $module {
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    let world = $crate::ledger::suite::World::on($ground.await).await;
                    let world = $crate::ledger::suite::$module::$case(world).await;
                    world.verified().await;
                    world.ledger.close().await;
                }
            )*
        })*
    };
}

pub(in crate::ledger) use {conform, each};

use super::MemoryGround;

conform!(memory, async { MemoryGround::default() });
