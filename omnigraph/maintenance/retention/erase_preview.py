"""Preview what an erase removes in addition to what a cleanup removes: deleted data and old indexes.

The preview changes nothing. It excludes files that tags, merge bases and external tools need, because a rewrite
does not free them.
"""

from collections.abc import Iterable, Iterator

from omnigraph.history.commit import TableEntry
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.live_set import LiveSet
from omnigraph.history.state import GraphState
from omnigraph.storage import layout
from omnigraph.storage.compact import fragments_with_dropped_columns, plan_compaction, task_data_files
from omnigraph.storage.file_roles import attached_versions_of
from omnigraph.storage.store import version_file_names
from omnigraph.storage.table import open_unchecked_version

from .mark_live import Marking, list_refs, merge_bases_of_refs, read_head


def preview_erase(marking: Marking) -> tuple[list[str], int]:
    """Return the files that an erase would make unreachable, and the number of deleted rows in these files."""
    head_states, retained = _collect_heads(marking)
    rewritten, deleted_rows = LiveSet(), 0
    for entry in {(entry.location, entry.lance_version): entry for entry in _table_entries(head_states)}.values():
        deleted_rows += _split_rewritten_version(marking, entry, rewritten, retained)
    for location in marking.used_tables:
        for version in attached_versions_of(marking.survey.files, location):
            _retain_version(marking, retained, location, version)
    erasable_names = [
        file_name
        for file_name in marking.survey.files
        if rewritten.contains(file_name) and not retained.contains(file_name)
    ]
    return erasable_names, deleted_rows


def _collect_heads(marking: Marking) -> tuple[list[GraphState], LiveSet]:
    """Return the states of all branches, and the files that tags and future merges need."""
    retained, head_states = LiveSet(), list[GraphState]()
    for ref in list_refs(marking.store):
        states = [opened.state for opened in read_head(marking, ref)]
        if ref.directory == layout.REFS:
            head_states += states
        else:
            _retain_entries(marking, retained, _table_entries(states))
    for unnamed in marking.unnamed:  # unnamed manifests are never rewritten
        states = [unnamed.manifest.state] if unnamed.manifest is not None else []
        _retain_entries(marking, retained, _table_entries(states))
    for log, base_commit_id in merge_bases_of_refs(
        [(state, HistoryLog(marking.store, state)) for state in head_states]
    ):
        _retain_entries(marking, retained, log.tables_and_schema_at(base_commit_id)[0].values())
    return head_states, retained


def _table_entries(states: list[GraphState]) -> Iterator[TableEntry]:
    return (entry for state in states for entry in state.tables.values())


def _split_rewritten_version(marking: Marking, entry: TableEntry, rewritten: LiveSet, retained: LiveSet) -> int:
    """Split a version's files into those that must be rewritten and those that a new version can keep.

    Return the number of deleted rows in the version.
    """
    version_key = (entry.location, entry.lance_version)
    version_content = marking.version_contents.get(version_key)
    if version_content is None:
        return 0
    table = open_unchecked_version(marking.store, *version_key)
    deletion_files = [fragment.metadata.deletion_file for fragment in table.dataset.get_fragments()]
    deleted_rows: int = sum(hole.num_deleted_rows for hole in deletion_files if hole is not None)
    dropped_column_fragments = fragments_with_dropped_columns(table)
    rewrite_tasks = (
        plan_compaction(table, extra_fragment_ids=dropped_column_fragments)
        if deleted_rows or dropped_column_fragments
        else []
    )
    rewritten_files = {file_name for task in rewrite_tasks for file_name in task_data_files(table, task)}
    if rewritten_files or version_content.index_directories:
        rewritten.names |= {
            *version_file_names(*version_key),
            *rewritten_files,
            *(version_content.deletion_files if rewritten_files else ()),
        }
        rewritten.directories |= {
            *version_content.index_directories,
            *(file_name.rpartition(".")[0] for file_name in rewritten_files),
        }
    remaining_files = set(version_content.data_files) - rewritten_files
    retained.names |= remaining_files
    retained.directories |= {file_name.rpartition(".")[0] for file_name in remaining_files}
    return deleted_rows


def _retain_entries(marking: Marking, retained: LiveSet, entries: Iterable[TableEntry]) -> None:
    for entry in entries:
        _retain_version(marking, retained, entry.location, entry.lance_version)


def _retain_version(marking: Marking, retained: LiveSet, location: str, version: int) -> None:
    version_content = marking.version_contents.get((location, version))
    if version_content is not None:
        retained.add_version(location, version, version_content)
