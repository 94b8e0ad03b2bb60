//! Stories about the store. Each is told on SQLite and on PostgreSQL, on a
//! database of its own: `sqlite::<story>` and `postgres::<story>`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ageing;
mod agents;
mod appends;
mod belongings;
mod branches;
mod cast;
mod claims;
mod conversation;
mod deletes;
mod facts;
mod failures;
mod feed;
mod home;
mod idempotency;
mod keeping;
mod ledger;
mod line;
mod live;
mod over_redis;
mod plugins;
mod positions;
mod postgres_only;
mod prebuilt;
mod presences;
mod pushes;
mod redis_server;
mod restarts;
mod results;
mod server;
mod sqlite_clock;
mod sqlite_folder;
mod sqlite_group;
mod sqlite_steps;
mod tenants;
mod world;

/// The list of stories that both databases pass.
macro_rules! stories {
    (
        told { $($room:ident :: $story:ident,)* }
        restarted { $($other_room:ident :: $restart:ident,)* }
    ) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $story() {
                crate::home::tell_on_sqlite(async |home| {
                    crate::$room::$story(&home).await;
                    home
                })
                .await;
            })*
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $restart() {
                crate::home::tell_on_sqlite(crate::$other_room::$restart).await;
            })*
            // The one story that needs a clock to move by a day.
            #[tokio::test(flavor = "multi_thread")]
            async fn an_answer_is_kept_for_a_day() {
                crate::home::tell_on_sqlite(async |home| {
                    crate::idempotency::an_answer_is_kept_for_a_day(&home).await;
                    home
                })
                .await;
            }
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $story() {
                crate::home::tell_on_postgres(async |home| {
                    crate::$room::$story(&home).await;
                    home
                })
                .await;
            })*
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $restart() {
                crate::home::tell_on_postgres(crate::$other_room::$restart).await;
            })*
        }
    };
}

stories! {
    told {
        appends::worker_append_moves_the_log_and_the_row,
        appends::rows_of_one_event_and_of_several_read_alike,
        appends::worker_append_that_lets_go_clears_the_owner,
        appends::worker_append_after_a_fact_conflicts_and_writes_nothing,
        appends::worker_append_after_a_takeover_is_fenced,
        appends::worker_append_after_its_release_is_fenced,
        appends::worker_append_after_hand_back_is_fenced,
        appends::worker_append_of_an_earlier_life_of_the_node_is_fenced,
        appends::worker_append_of_an_earlier_epoch_of_the_same_node_is_fenced,
        appends::worker_append_to_an_unknown_run_or_another_tenants_is_gone,
        appends::a_run_is_parked_without_an_event,
        appends::log_is_read_in_pages_and_by_position,
        facts::fact_takes_the_next_seq_and_leaves_the_owner_alone,
        facts::fact_with_an_owner_starts_a_parked_run_there,
        facts::fact_without_an_owner_queues_a_parked_run,
        facts::fact_that_does_not_wake_leaves_a_parked_run_parked,
        facts::fact_wakes_a_run_that_only_a_timer_holds,
        facts::fact_keeps_a_queued_run_claimable,
        facts::fact_never_wakes_a_finished_run,
        ledger::waits_open_and_end_with_their_events,
        ledger::a_wait_keeps_what_its_event_said,
        ledger::a_returned_call_ends_all_its_waits,
        ledger::the_open_set_is_a_projection_of_the_log,
        ledger::a_claim_holds_off_other_clients_until_it_lapses,
        ledger::due_waits_are_found_by_the_databases_time,
        ledger::open_waits_are_listed_by_run_space_and_kind,
        ledger::all_waits_of_a_run_close_at_once,
        ledger::waits_name_the_root_of_their_tree,
        presences::a_program_is_there_while_its_connection_and_its_node_are,
        presences::a_call_is_offered_until_a_connection_has_it_and_again_when_that_goes,
        presences::client_calls_are_news,
        presences::uses_of_tools_add_up_and_are_bounded,
        results::a_hundred_parallel_results_for_one_call_leave_one_event,
        results::parallel_results_for_two_calls_both_land_and_one_wakes,
        results::worker_and_callers_write_one_dense_log,
        claims::claim_takes_the_queue_first_then_orphans,
        claims::claim_never_takes_a_run_of_a_live_node,
        claims::a_node_that_leaves_gives_its_runs_away_at_once,
        claims::a_restarted_node_takes_its_own_runs_back_at_once,
        claims::recoveries_are_counted_and_reset_by_an_append,
        claims::a_handed_back_run_is_claimed_without_a_recovery,
        claims::a_run_that_is_given_up_is_claimed_as_a_recovery,
        claims::a_run_that_cannot_be_read_here_is_given_up_without_a_count,
        claims::a_late_node_is_not_given_its_own_runs_again,
        claims::an_idle_node_learns_by_reading_that_nothing_is_there,
        claims::two_nodes_never_claim_the_same_run,
        claims::two_claims_at_once_never_take_the_same_orphan,
        live::a_stored_run_reads_back_as_it_was_inserted,
        live::a_second_live_run_is_refused_and_changes_nothing,
        live::other_spaces_agents_tenants_and_ended_runs_do_not_count,
        live::of_many_parallel_runs_for_one_agent_one_is_born,
        live::runs_are_listed_newest_first_in_pages,
        live::a_poisoned_run_is_found_by_its_error,
        positions::events_and_messages_share_one_row_of_positions,
        positions::positions_are_dense_and_in_commit_order_under_load,
        positions::an_append_into_a_missing_space_fails_whole,
        positions::what_a_space_left_behind_is_in_no_other_space,
        idempotency::a_key_is_fresh_once_then_answers_the_same,
        idempotency::a_key_belongs_to_its_caller_route_and_tenant,
        idempotency::a_failed_request_leaves_its_key_fresh,
        idempotency::parallel_requests_with_one_key_have_one_effect,
        conversation::a_message_reads_back_as_it_was_written,
        conversation::a_message_id_is_taken_once,
        conversation::a_revised_message_keeps_its_place,
        conversation::pages_go_up_from_a_position_and_down_from_one,
        conversation::history_is_one_branch_up_to_a_position,
        branches::a_branch_has_what_its_parents_have_up_to_the_fork,
        branches::a_fork_before_a_fork_leaves_the_line_short,
        branches::a_summary_holds_for_the_branches_that_come_after_it,
        branches::a_thread_is_found_by_its_owner_and_name_alone,
        branches::a_message_is_found_by_either_of_its_names,
        branches::a_seized_run_is_its_new_owners_alone,
        branches::a_deleted_space_takes_its_branches_and_names,
        conversation::spaces_are_listed_newest_first_and_by_member,
        conversation::a_space_changes_only_what_people_may_change,
        conversation::members_join_change_role_and_leave,
        conversation::agents_of_a_space_are_members_that_play_one,
        conversation::an_external_id_names_one_entity_of_a_tenant,
        conversation::entities_are_changed_and_listed_by_kind,
        agents::an_agent_keeps_its_id_and_its_old_versions,
        agents::agents_are_found_by_name_and_id_and_listed_by_name,
        agents::a_toolset_is_stored_once_by_its_hash,
        deletes::a_deleted_space_takes_all_of_it_and_nothing_else,
        deletes::a_deleted_run_takes_its_log_waits_and_messages,
        keeping::an_old_run_goes_and_its_words_stay,
        keeping::a_large_run_goes_in_pieces_with_those_below_it,
        keeping::the_result_of_a_call_is_found_in_its_run_alone,
        keeping::a_deleted_entity_leaves_nothing_but_the_audit,
        keeping::a_removal_that_was_cut_short_is_finished,
        keeping::an_export_has_every_row_that_names_an_entity,
        keeping::a_removed_tenant_leaves_nothing_behind,
        deletes::large_values_and_files_go_with_the_last_that_has_them,
        tenants::no_reading_function_shows_another_tenants_rows,
        tenants::no_changing_function_touches_another_tenants_rows,
        tenants::the_same_ids_in_two_tenants_are_two_things,
        belongings::a_key_is_found_by_its_hash_also_when_revoked,
        belongings::a_key_hash_is_taken_once_and_a_tenant_is_born_with_it,
        belongings::grants_expire_and_belong_to_an_entity_or_to_all,
        belongings::a_client_id_belongs_to_the_entity_that_took_it,
        belongings::blobs_are_kept_once_and_come_back_whole,
        belongings::a_file_reads_back_as_it_was_stored,
        belongings::a_secret_is_replaced_listed_without_its_value_and_removed,
        belongings::x18_a_users_records_are_theirs_and_one_node_renews_them,
        belongings::x18_a_login_is_taken_once,
        belongings::a_fact_makes_one_parcel_for_each_webhook_that_wants_it,
        pushes::a_task_tells_its_own_addresses_once_and_no_others,
        pushes::tasks_are_listed_by_their_last_change,
        belongings::audit_lines_are_listed_newest_first_in_pages,
        belongings::a_parcel_comes_back_until_it_is_delivered,
        ageing::a_parcel_in_a_dead_hand_is_taken_at_once,
        ageing::the_oldest_keys_of_a_label_go_and_no_others,
        belongings::a_parcel_of_a_failed_transaction_is_never_taken,
        plugins::curators_have_keys_and_a_key_has_one_curator,
        plugins::versions_are_in_the_order_of_semver_and_keep_their_birth,
        plugins::x12_pins_and_revocations_outlive_what_they_are_about,
        plugins::plugins_of_one_tenant_are_nothing_to_another,
        prebuilt::goals_are_ordered_by_priority_then_age,
        prebuilt::x15_memories_are_read_only_by_those_they_are_for,
        prebuilt::of_many_parallel_memories_of_one_topic_one_is_kept,
        prebuilt::a_due_plan_is_moved_on_by_one_of_many,
        prebuilt::a_notification_is_written_once_and_marked_as_read,
        prebuilt::a_document_is_indexed_in_slices_and_found_by_its_words,
        prebuilt::vectors_follow_the_model_that_makes_them,
        prebuilt::g22_a_deleted_entity_takes_what_was_kept_of_it_and_for_it,
        failures::failed_operations_leave_nothing_and_spare_their_neighbours,
        failures::an_operation_that_swallows_a_refusal_does_not_succeed,
        failures::a_failed_operation_tells_no_reader,
        failures::an_undecodable_event_surfaces_as_such,
        feed::readers_of_a_run_and_its_space_hear_each_commit,
        feed::deltas_reach_readers_of_the_run_and_its_space,
        feed::a_late_joiner_gets_the_whole_step_so_far,
        feed::the_step_so_far_is_gone_when_its_reply_commits,
        feed::the_step_so_far_is_gone_when_its_worker_gives_up,
        feed::hubs_vanish_when_nobody_listens,
        feed::a_slow_reader_is_told_and_joins_again,
    }
    restarted {
        idempotency::an_answer_survives_a_restart,
        restarts::reopening_keeps_everything,
        restarts::a_node_finds_its_runs_again_after_a_restart,
        restarts::a_log_that_lay_in_two_tables_becomes_one,
    }
}
