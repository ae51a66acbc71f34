"""The context that all checks on a bulk load share: the load, the snapshot and the reported rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.spark.duplicate_rows import RecordSource
from omnigraph.spark.report_rows import KEY_ROWS, TUPLE_ROWS
from omnigraph.spark.rule_inputs import key_columns, make_key_rows, make_tuple_rows, tuple_columns
from omnigraph.spark.stage import LoadJob
from omnigraph.spark.staged_fragments import StagedFragment, map_fragment_rows, map_staged_fragments
from omnigraph.spark.table_scan import scan
from omnigraph.spark.task_reports import TaskReport
from omnigraph.spark.unique_tuples import unique_groups
from omnigraph.values.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class LoadCheckContext:
    """The data that the rules read: the task reports and the base snapshot.

    `collected` contains the reports that the driver collected from `task_reports`.
    """

    spark: "SparkSession"
    load_id: str  # id of the load
    load_job: LoadJob
    snapshot: Snapshot
    task_reports: "DataFrame"
    collected: Sequence[TaskReport]
    input_keys: frozenset[TableKey]  # table keys that occur in the input
    staged_fragments: Mapping[TableKey, Sequence[StagedFragment]]  # written fragments by table key
    reported_keys: frozenset[TableKey]  # table keys with records that exist only in task reports
    unwritten_keys: frozenset[TableKey]  # table keys with records that are not in any fragment

    @property
    def replaces_types(self) -> bool:
        """Whether the load replaces all rows of the types that occur in the input."""
        return self.load_job.mode == "overwrite"

    def entity_type(self, type_number: int) -> NodeType | EdgeType:
        """Return a type by its number in the task reports."""
        return type_for_key(self.load_job.schema_ir.catalog, self.load_job.table_keys[type_number])

    def key_rows(self, *table_keys: TableKey) -> "DataFrame":
        """Return the ids, endpoints and positions of records with the given types, as `KEY_ROWS`.

        Generated ids are null, because no other record can refer to them.
        """
        staged_rows = self._staged_rows(table_keys, key_columns, make_key_rows(self.load_job.table_keys), KEY_ROWS.ddl)
        has_reported_rows = self.reported_keys & set(table_keys)
        return self.reported_key_rows(*table_keys).unionAll(staged_rows) if has_reported_rows else staged_rows

    def reported_key_rows(self, *table_keys: TableKey) -> "DataFrame":
        """Return those rows of `key_rows` that are only in task reports and not in fragments."""
        type_numbers = [self.load_job.table_keys.index(key) for key in table_keys]
        return KEY_ROWS.select_from(self.task_reports, type_numbers)

    def tuple_rows(self) -> "DataFrame":
        """Return the `@unique` tuples of all records, with the columns of `TUPLE_ROWS`."""
        source = self.tuple_source()
        return source.map_batches(lambda batch: iter((batch,)), TUPLE_ROWS.schema)

    def id_source(self, *table_keys: TableKey) -> RecordSource:
        """Return the ids and positions of records with the given types, without generated ids, which never repeat."""
        fragments = [
            fragment
            for key in table_keys
            for fragment in self.staged_fragments.get(key, ())
            if not fragment.ids_generated
        ]
        make_rows = make_key_rows(self.load_job.table_keys)
        read_fragment = map_fragment_rows(self.load_job.pinned_graph, lambda _: ["id"], make_rows)
        has_reported_rows = self.reported_keys & set(table_keys)
        reported_rows = self.reported_key_rows(*table_keys).where("id is not null") if has_reported_rows else None
        return RecordSource(self.spark, fragments, read_fragment, reported_rows, KEY_ROWS)

    def tuple_source(self) -> RecordSource:
        """Return the `@unique` tuples of all records."""
        schema_ir, table_keys = self.load_job.schema_ir, self.load_job.table_keys
        unique_keys = [key for key in self.input_keys if unique_groups(type_for_key(schema_ir.catalog, key))]
        fragments = [fragment for key in unique_keys for fragment in self.staged_fragments.get(key, ())]
        make_rows = make_tuple_rows(schema_ir, table_keys)
        read_fragment = map_fragment_rows(self.load_job.pinned_graph, tuple_columns(schema_ir), make_rows)
        has_reported_rows = self.reported_keys & set(unique_keys)
        reported_rows = TUPLE_ROWS.select_from(self.task_reports) if has_reported_rows else None
        return RecordSource(self.spark, fragments, read_fragment, reported_rows, TUPLE_ROWS)

    def _staged_rows(
        self, table_keys: Sequence[TableKey], select_columns: Any, make_rows: Any, ddl: str
    ) -> "DataFrame":
        fragments = [
            fragment
            for key in table_keys
            for fragment in self.staged_fragments.get(key, ())
            if select_columns(fragment)
        ]
        read_fragment = map_fragment_rows(self.load_job.pinned_graph, select_columns, make_rows)
        return map_staged_fragments(self.spark, fragments, read_fragment, ddl)

    def stored_rows(self, table_key: TableKey, columns: Sequence[str]) -> "DataFrame":
        """Read a type's stored rows."""
        return scan(self.spark, self.snapshot, table_key, columns)

    def has_stored_rows(self, table_key: TableKey) -> bool:
        """Return whether a type has stored rows."""
        return table_key in self.load_job.filled_keys


def drop_replaced(rows: "DataFrame", replaced_positions: frozenset[int]) -> "DataFrame":
    """Drop the rows of records that a later record in the same load replaces."""
    return rows.where(~rows.spot.isin(sorted(replaced_positions))) if replaced_positions else rows
