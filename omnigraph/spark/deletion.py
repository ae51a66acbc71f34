"""Bulk deletion on Spark: tasks read the records, and the driver finds the rows to delete.

The driver has to list every removed row anyway, so it also looks up these rows and the edges of deleted nodes, and
checks the rules that the deletion may break. All of these reads use the pinned version.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from omnigraph.ingest.delete_rows import find_deleted_rows
from omnigraph.ingest.load import LoadEffects
from omnigraph.ingest.partial_records import PartialRows
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import Delta
from omnigraph.rules.violation import Violation
from omnigraph.values.table_key import TableKey

from .pinned_graph import PinnedRowLookup
from .report_rows import KEY_ROWS
from .stage import LoadJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def find_deletion(
    load_job: LoadJob, named_rows: Mapping[TableKey, PartialRows]
) -> tuple[Delta, list[Violation], LoadEffects]:
    """Return the rows to remove, the resulting rule violations, and the counts of deleted and missing rows."""
    catalog, lookup = load_job.schema_ir.catalog, PinnedRowLookup(load_job.pinned_graph)
    deletion, violations = find_deleted_rows(catalog, named_rows, lookup)
    delta, broken_rules = check_delta(catalog, deletion.to_delta(load_job.schema_ir), lookup, limit=None)
    deleted_counts = {key: len(table_delta.removed_ids) for key, table_delta in delta.tables.items()}
    return delta, [*violations, *broken_rules], LoadEffects(deleted_counts, deletion.missing)


def collect_named_rows(load_job: LoadJob, task_reports: "DataFrame") -> dict[TableKey, PartialRows]:
    """Return the ids and endpoints in a deletion's records, by type and in input order."""
    reported = KEY_ROWS.select_from(task_reports).toArrow().sort_by("spot")
    records = {}
    for type_number, key in enumerate(load_job.table_keys):
        rows = reported.filter(pc.equal(reported["type"], type_number))
        if rows.num_rows:
            entity_type = type_for_key(load_job.schema_ir.catalog, key)
            columns = rows.select(["id", "src", "dst"] if key.is_edge else ["id"])
            records[key] = PartialRows(entity_type, columns, rows["spot"].to_numpy())
    return records
