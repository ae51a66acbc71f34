"""Find the stored rows that a Spark patch depends on, by the ids in its records.

The ids of a type are collected only if another writer has changed rows of that type since the caller read them.
"""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ingest.partial_records import key_members
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.unread_changes import RowFilter, RowMask
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import as_single_array
from omnigraph.values.table_key import TableKey

from .check_context import LoadCheckContext
from .task_reports import RecordCountReport, select_reports


@dataclass(slots=True)
class PatchedRecords:
    """A filter for the rows of one type that a patch changes, together with the columns that the patch contains."""

    context: LoadCheckContext
    table_key: TableKey
    columns: frozenset[str]
    _ids: pa.Array | None = field(default=None, init=False)

    def matches(self, _txn: WriteTxn, rows: pa.Table) -> RowMask:
        """Return a mask of the matching rows."""
        if self._ids is None:
            self._ids = as_single_array(self.context.key_rows(self.table_key).select("id").toArrow()["id"])
        is_match: RowMask = pc.is_in(as_single_array(rows["id"]), value_set=self._ids).to_numpy(zero_copy_only=False)
        return is_match


def patched_row_filters(context: LoadCheckContext) -> dict[TableKey, RowFilter | None]:
    """Return filters for the rows that a patch depends on, limited to the properties in the input."""
    given_names: dict[TableKey, set[str]] = {}
    for report in select_reports(context.collected, RecordCountReport):
        given_names.setdefault(report.table_key, set()).update(report.given_names)
    return {key: PatchedRecords(context, key, _columns(context, key, names)) for key, names in given_names.items()}


def _columns(context: LoadCheckContext, table_key: TableKey, given_names: set[str]) -> frozenset[str]:
    schema_ir = context.load_job.schema_ir
    entity_type = type_for_key(schema_ir.catalog, table_key)
    property_names = {prop.name for prop in entity_type.properties}
    return frozenset({"id", *(given_names & property_names - set(key_members(schema_ir, entity_type)))})
