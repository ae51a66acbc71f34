"""The tests that run only on embedded graphs, by reason. `tests.rig.graph_hosts` runs all others on a server, too."""

from pathlib import Path

TESTS = Path(__file__).parent.parent

ACTORS = "a server derives the actor from the token, so no call names one"
FILES = "the test reads or damages the files of the graph"
INPUT = "the client reads the input of a load and describes it by its bytes before the server starts the load"
INTERNALS = "the test replaces or counts something inside the embedded graph"
LIMITS = "a request to a server has a size limit, so large blobs are replaced one by one"
PROCESSES = "the test is about a process that opens the files itself"
READ_SETS = "a server keeps no read set between requests, so a write depends only on what its own request reads"

# A file without the name of a test means all of its tests.
EMBEDDED_ONLY: dict[str, tuple[str, ...]] = {
    ACTORS: (
        "api/test_handles.py::test_acting_graph_has_its_own_actor_and_read_set",
        "api/test_option_types.py::test_a_write_rejects_an_actor_that_is_not_text",
        "api/test_writes.py::test_a_call_names_its_actor",
    ),
    FILES: (
        "api/blobs/test_blob_lifecycle.py::test_copy_keeps_blobs",
        "api/test_async_graph.py::test_a_graph_is_copied",
        "api/blobs/test_blob_lifecycle.py::test_compaction_and_erasing_keep_what_remains",
        "api/blobs/test_blob_lifecycle.py::test_heavy_fragments_are_not_rewritten_without_need",
        "api/blobs/test_read_blobs.py::test_damaged_blob_is_never_returned_as_whole",
        "merging/test_merged_properties.py::test_strategy_that_changes_nothing_writes_no_row",
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
    LIMITS: (
        "api/blobs/test_write_blobs.py::test_blobs_are_bytes_paths_and_files_in_every_write",
        "api/blobs/test_write_blobs.py::test_large_blob_is_not_held_in_memory",
        "api/blobs/test_write_blobs.py::test_unchanged_file_is_not_written_again",
        "api/blobs/test_write_blobs.py::test_value_above_the_limit_names_the_way_out",
    ),
}


def find_reason(file: Path, test_name: str) -> str | None:
    """Return why a test does not run on a server, or None if it does."""
    file_name = file.relative_to(TESTS).as_posix()
    names = {file_name, f"{file_name}::{test_name}"}
    return next((reason for reason, listed in EMBEDDED_ONLY.items() if not names.isdisjoint(listed)), None)
