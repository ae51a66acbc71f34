"""The tests that run only on embedded graphs, by reason. `tests.rig.graph_hosts` runs all others on a server, too."""

from pathlib import Path

TESTS = Path(__file__).parent.parent

ACTORS = "a server derives the actor from the token, so no call names one"
FILES = "the test reads or damages the files of the graph"
FORMATS = "the client sends NDJSON and Parquet files only, renames no members, writes no rejects, and finds no files"
INPUT = "the client reads the input of a load and describes it by its bytes before the server starts the load"
INTERNALS = "the test replaces or counts something inside the embedded graph"
LIMITS = "a request to a server has a size limit, so large blobs are replaced one by one"
MAINTENANCE = "a server maintains indexes and recovers operations itself, and its files cannot be copied by a client"
PREVIEWS = "a preview on a server has no `delta`, except for a fast-forward"
ORDER = "the change feed of a server does not keep the order of the properties of a type"
PARTS = "a server keeps no open transaction whose blobs could be read, sets no blob to NULL, and calls no functions"
PROCESSES = "the test is about a process that opens the files itself"
READ_SETS = "a server keeps no read set between requests, so a write depends only on what its own request reads"
SESSIONS = "a merge session on a server names its source by the commit, and accepts no digests of blobs"
WARNINGS = "the client repeats no warnings, which only the process of the server sees"

# A file without the name of a test means all of its tests.
EMBEDDED_ONLY: dict[str, tuple[str, ...]] = {
    ACTORS: (
        "api/test_handles.py::test_acting_graph_has_its_own_actor_and_read_set",
        "api/test_option_types.py::test_a_write_rejects_an_actor_that_is_not_text",
        "api/test_writes.py::test_a_call_names_its_actor",
    ),
    FILES: (
        "api/blobs/test_blob_lifecycle.py::test_compaction_and_erasing_keep_what_remains",
        "api/blobs/test_blob_lifecycle.py::test_heavy_fragments_are_not_rewritten_without_need",
        "api/blobs/test_read_blobs.py::test_damaged_blob_is_never_returned_as_whole",
        "merging/test_merged_properties.py::test_strategy_that_changes_nothing_writes_no_row",
    ),
    FORMATS: (
        "api/test_mixed_loads.py::test_all_formats_are_loaded_as_one_commit",
        "api/test_mixed_loads.py::test_csv_options_are_checked",
        "api/test_mixed_loads.py::test_mapping_may_hold_files_tables_and_open_files",
        "api/test_mixed_loads.py::test_mapping_renames_members_of_typed_records",
        "api/test_mixed_loads.py::test_one_bad_part_prevents_the_whole_load",
        "api/test_mixed_loads.py::test_overwrite_of_typed_files_replaces_these_types_only",
        "api/test_mixed_loads.py::test_renamed_column_is_named_by_the_error",
        "api/test_mixed_loads.py::test_unmatched_pattern_is_named_as_a_pattern",
        "api/test_partial_loads.py::test_a_transaction_patches_no_files",
        "api/test_partial_loads.py::test_delete_reads_only_the_keys_of_a_csv_file",
        "api/test_partial_loads.py::test_patch_reads_the_columns_of_a_csv_file",
        "api/test_partial_loads.py::test_patch_writes_every_problem_to_a_file",
        "api/test_writes.py::test_loads_of_tables",
        "api/test_writes.py::test_many_bad_cells_cost_only_the_messages_that_are_shown",
    ),
    INPUT: (
        "api/blobs/test_write_blobs.py::test_put_with_etag_loses_against_a_change_in_between",
        "api/blobs/test_write_blobs.py::test_unusable_source_is_refused",
        "api/test_reused_idempotency_keys.py::test_failed_load_keeps_a_branch_with_commits_of_others",
        "api/test_upserts_and_patches.py::test_a_merge_of_records_is_recognised_as_an_upsert",
    ),
    INTERNALS: (
        "api/revisions/test_branch_reset.py::test_cleanup_spares_what_an_interrupted_reset_needs",
        "api/revisions/test_branch_reset.py::test_concurrent_write_is_never_discarded",
        "api/revisions/test_revert_and_cherry_pick.py::test_revert_keeps_concurrent_writes",
        "api/test_handles.py::test_cancellation_raises_an_error_with_no_effect",
        "api/test_handles.py::test_query_over_its_limits_raises_an_error",
        "api/test_handles.py::test_running_query_stops_when_its_caller_is_gone",
        "api/test_handles.py::test_write_cancelled_before_publishing_has_no_effect",
        "api/test_queries.py::test_a_text_is_compiled_once_per_schema",
        "api/test_queries.py::test_one_event_is_emitted_per_operation",
        "api/test_writes.py::test_retry_has_a_default_limit",
    ),
    MAINTENANCE: (
        "api/blobs/test_blob_lifecycle.py::test_export_and_copy_keep_blobs",
        "api/revisions/test_branch_reset.py::test_a_rejected_reset_leaves_no_operation",
        "api/test_async_graph.py::test_maintenance",
        "api/test_default_branch.py::test_indexes_are_built_on_the_branch_of_the_handle",
        "api/test_writes.py::test_indexes_are_built_once",
        "api/test_writes.py::test_indexes_of_a_deleted_branch_are_not_built",
    ),
    PREVIEWS: (
        "api/blobs/test_blob_lifecycle.py::test_the_changes_of_a_merge_contain_bytes",
        "api/revisions/test_branch_reset.py::test_dry_run_shows_its_changes",
        "api/revisions/test_notebook_cards.py::test_card_of_a_preview_shows_its_changes",
        "merging/test_history_across_schemas.py::test_a_range_across_a_schema_change_is_reverted_without_the_schema",
    ),
    PROCESSES: (
        "api/test_handles.py::test_a_handle_refuses_to_work_in_a_forked_process",
        "api/test_handles.py::test_an_interrupt_ends_a_query_and_the_handle_stays_usable",
        "api/test_handles.py::test_pickled_handles_work_in_other_processes",
    ),
    READ_SETS: (
        "api/test_async_graph.py::test_retry_awaits_again_after_a_conflict",
        "api/test_edge_updates.py::test_delete_of_a_node_conflicts_with_an_updated_edge",
        "api/test_edge_updates.py::test_updates_of_edges_conflict_by_row",
        "api/test_matched_writes.py::test_change_of_an_edge_of_a_path_is_a_conflict",
        "api/test_matched_writes.py::test_change_of_anything_that_the_match_reads_is_a_conflict",
        "api/test_matched_writes.py::test_delete_of_matched_nodes_conflicts_with_their_edges_only",
        "api/test_matched_writes.py::test_match_of_nodes_conflicts_by_row",
        "api/test_matched_writes.py::test_transaction_conflicts_with_a_change_of_what_its_match_read",
        "api/test_partial_loads.py::test_partial_loads_conflict_with_changes_of_their_rows_only",
        "api/test_row_conflicts.py",
        "api/test_upserts_and_patches.py::test_strict_insert_that_loses_a_race_reports_the_key",
        "api/test_upserts_and_patches.py::test_upserts_and_patches_conflict_by_row",
        "api/test_writes.py::test_strict_write_requires_the_shown_rows",
    ),
    SESSIONS: (
        "api/blobs/test_blob_lifecycle.py::test_a_merge_session_decides_between_large_blobs",
        "merging/test_merged_properties.py::test_session_decides_properties_of_one_entity_separately",
    ),
    WARNINGS: (
        "api/revisions/test_revisions.py::test_name_hides_a_date_a_version_and_a_commit_id_with_a_warning",
        "api/revisions/test_revisions.py::test_a_warning_about_a_name_shows_the_line_of_the_caller",
        "api/revisions/test_revisions.py::test_tag_takes_precedence_over_a_branch_of_the_same_name",
    ),
    LIMITS: (
        "api/blobs/test_write_blobs.py::test_blobs_are_bytes_paths_and_files_in_every_write",
        "api/blobs/test_write_blobs.py::test_unchanged_file_is_not_written_again",
        "api/blobs/test_write_blobs.py::test_value_above_the_limit_names_the_way_out",
    ),
    ORDER: (
        "merging/test_history_across_schemas.py::"
        "test_diff_and_feed_follow_renamed_widened_dropped_and_added_properties",
    ),
    PARTS: (
        "api/blobs/test_blob_lifecycle.py::test_a_digest_stands_for_the_bytes",
        "api/blobs/test_write_blobs.py::test_put_of_nothing_deletes_a_blob",
        "api/blobs/test_write_blobs.py::test_transaction_reads_its_own_blobs",
        "merging/test_keyed_edges.py::test_different_properties_of_one_keyed_edge_conflict",
        "merging/test_merged_properties.py::test_values_discard_the_values_of_both_sides",
    ),
}


def find_reason(file: Path, test_name: str) -> str | None:
    """Return why a test does not run on a server, or None if it does."""
    file_name = file.relative_to(TESTS).as_posix()
    names = {file_name, f"{file_name}::{test_name}"}
    return next((reason for reason, listed in EMBEDDED_ONLY.items() if not names.isdisjoint(listed)), None)
