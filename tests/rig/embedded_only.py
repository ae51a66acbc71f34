"""The tests that run only on embedded graphs, by reason. `tests.rig.graph_hosts` runs all others on a server, too."""

from pathlib import Path

TESTS = Path(__file__).parent.parent

ACTORS = "a server derives the actor from the token, so no call names one"
FORMATS = "the client sends NDJSON and Parquet files only, without renaming members, and finds no files by patterns"
IDS = "a transaction on a server generates new ids when it runs again at its end"
INTERNALS = "the test replaces or counts something inside the embedded graph"
MAINTENANCE = "a server maintains indexes and recovers operations itself, and its files cannot be copied by a client"
PROCESSES = "the test is about a process that opens the files itself"
READ_SETS = "a server keeps no read set between requests, so a write depends only on what its own request reads"

EMBEDDED_ONLY: dict[str, tuple[str, ...]] = {
    ACTORS: (
        "api/test_handles.py::test_acting_graph_has_its_own_actor_and_read_set",
        "api/test_writes.py::test_a_call_names_its_actor",
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
        "api/test_writes.py::test_loads_of_tables",
        "api/test_writes.py::test_many_bad_cells_cost_only_the_messages_that_are_shown",
    ),
    IDS: ("api/test_writes.py::test_ids_generated_in_a_transaction_are_those_of_the_commit",),
    INTERNALS: (
        "api/test_handles.py::test_cancellation_raises_an_error_with_no_effect",
        "api/test_handles.py::test_query_over_its_limits_raises_an_error",
        "api/test_handles.py::test_running_query_stops_when_its_caller_is_gone",
        "api/test_handles.py::test_write_cancelled_before_publishing_has_no_effect",
        "api/test_queries.py::test_a_text_is_compiled_once_per_schema",
        "api/test_queries.py::test_one_event_is_emitted_per_operation",
        "api/test_writes.py::test_retry_has_a_default_limit",
    ),
    MAINTENANCE: (
        "api/test_async_graph.py::test_maintenance",
        "api/test_writes.py::test_indexes_are_built_once",
        "api/test_writes.py::test_indexes_of_a_deleted_branch_are_not_built",
    ),
    PROCESSES: (
        "api/test_handles.py::test_a_handle_refuses_to_work_in_a_forked_process",
        "api/test_handles.py::test_an_interrupt_ends_a_query_and_the_handle_stays_usable",
        "api/test_handles.py::test_pickled_handles_work_in_other_processes",
    ),
    READ_SETS: (
        "api/test_async_graph.py::test_retry_awaits_again_after_a_conflict",
        "api/test_matched_writes.py::test_change_of_an_edge_of_a_path_is_a_conflict",
        "api/test_matched_writes.py::test_change_of_anything_that_the_match_reads_is_a_conflict",
        "api/test_matched_writes.py::test_delete_of_matched_nodes_conflicts_with_their_edges_only",
        "api/test_matched_writes.py::test_match_of_nodes_conflicts_by_row",
        "api/test_matched_writes.py::test_transaction_conflicts_with_a_change_of_what_its_match_read",
        "api/test_writes.py::test_strict_write_requires_the_shown_rows",
    ),
}


def find_reason(file: Path, test_name: str) -> str | None:
    """Return why a test does not run on a server, or None if it does."""
    name = f"{file.relative_to(TESTS).as_posix()}::{test_name}"
    return next((reason for reason, names in EMBEDDED_ONLY.items() if name in names), None)
