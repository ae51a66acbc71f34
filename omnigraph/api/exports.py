"""Exports of one snapshot: as NDJSON lines, or as a file in any format.

The snapshot and the revision in `since` are resolved when the export starts, so later writes do not affect it. This
module never changes the graph.
"""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from omnigraph.api.comparisons import find_state
from omnigraph.api.export_files import ExportFormat, choose_export_format, require_single_type, write_entity_file
from omnigraph.api.handle import Handle
from omnigraph.api.log_events import log_operation
from omnigraph.history.missing_files import explain_missing_batches
from omnigraph.history.revisions import Revision
from omnigraph.history.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.ingest.export import EntityIds


def export_graph(
    handle: Handle,
    path: str | PathLike[str] | None,
    types: Sequence[str] | None,
    *,
    iso_dates: bool,
    since: Revision | None = None,
    format: ExportFormat | None = None,
) -> Iterator[bytes] | int:
    """Return the lines of an export, or the number of entities that were written to a file. See `Graph.export`."""
    from omnigraph.ingest.export import join_lines

    file_format = choose_export_format(path, format)
    if path is None:
        return join_lines(export_parts(handle, types, iso_dates=iso_dates, since=since))
    with log_operation("export", handle.branch_name) as event:
        if file_format == "ndjson":
            from omnigraph.api.output_files import write_export

            count = write_export(path, export_parts(handle, types, iso_dates=iso_dates, since=since))
        else:
            count = _write_entities(handle, path, file_format, types, since)
        event.rows = count
    return count


def export_parts(
    handle: Handle, types: Sequence[str] | None, *, iso_dates: bool, since: Revision | None = None
) -> Iterator[bytes]:
    """Yield the lines of an export. A line that contains large blobs may be split into several parts."""
    from omnigraph.ingest import export
    from omnigraph.publish.read_lease import protect_while_reading

    snapshot = handle.latest_snapshot()
    entity_ids = _changed_ids(handle, snapshot, types, since)
    parts = export.export_parts(snapshot, types, iso_dates=iso_dates, entity_ids=entity_ids)
    return protect_while_reading(handle.branch_state, snapshot, explain_missing_batches(snapshot, parts))


def _write_entities(
    handle: Handle,
    path: str | PathLike[str],
    file_format: ExportFormat,
    types: Sequence[str] | None,
    since: Revision | None,
) -> int:
    from omnigraph.ingest import export
    from omnigraph.publish.read_lease import protect_while_reading

    snapshot = handle.latest_snapshot()
    entity_type = require_single_type(export.select_types(snapshot, types), file_format)
    entity_ids = _changed_ids(handle, snapshot, types, since)
    tables = explain_missing_batches(snapshot, export.export_tables(snapshot, entity_type, entity_ids))
    return write_entity_file(
        path, file_format, entity_type, protect_while_reading(handle.branch_state, snapshot, tables)
    )


def _changed_ids(
    handle: Handle, snapshot: Snapshot, types: Sequence[str] | None, since: Revision | None
) -> "EntityIds | None":
    """Return the entities that were added or changed after a revision, or None for all entities."""
    from omnigraph.ingest.export import changed_entity_ids

    return None if since is None else changed_entity_ids(find_state(handle, since), snapshot, types)
