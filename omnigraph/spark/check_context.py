"""What the checks of a load read: task reports, their driver rows, and the base snapshot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import EdgeType, NodeType

from .pinned_graph import entity_type_of
from .rule_inputs import (
    KEY_DDL,
    TUPLE_DDL,
    key_columns,
    make_key_rows,
    make_tuple_rows,
    tuple_columns,
)
from .scan import scan
from .stage import LoadJob
from .staged_fragments import StagedFragment, map_fragment_rows, map_staged_fragments
from .unique_tuples import unique_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class LoadCheckContext:
    """Everything the rules read: the task reports, their driver rows, and the base snapshot."""

    spark: "SparkSession"
    load_id: str  # id of the load
    load_job: LoadJob
    snapshot: Snapshot
    task_reports: "DataFrame"
    driver_rows: Sequence[dict[str, Any]]
    input_keys: frozenset[str]  # table keys that the input names
    staged_fragments: Mapping[str, Sequence[StagedFragment]]  # written fragments by table key
    reported_keys: frozenset[str]  # table keys with records that exist only in task reports
    unwritten_keys: frozenset[str]  # table keys with records that are in no fragment

    @property
    def replaces_types(self) -> bool:
        """Whether the load replaces all rows of the types in the input."""
        return self.load_job.mode == "overwrite"

    def entity_type(self, type_number: int) -> NodeType | EdgeType:
        """Return a type by its number in the task reports."""
        return entity_type_of(self.load_job.schema_ir, self.load_job.table_keys[type_number])

    def key_rows(self, *table_keys: str) -> "DataFrame":
        """Ids, endpoints and positions of the records of some types, with the columns `KEY_DDL`.

        Generated ids are null: no other record can refer to them.
        """
        frames = []
        if self.reported_keys & set(table_keys):
            reports = self.task_reports
            type_numbers = [self.load_job.table_keys.index(key) for key in table_keys]
            column_names = [column_ddl.partition(" ")[0] for column_ddl in KEY_DDL.split(", ")]
            is_key_report = (reports.kind == "key") & reports.type.isin(type_numbers)
            frames.append(reports.where(is_key_report).select(*column_names))
        frames.append(
            self._staged_rows(
                table_keys, key_columns, make_key_rows(self.load_job.table_keys), KEY_DDL
            )
        )
        return reduce(lambda a, b: a.unionAll(b), frames)

    def tuple_rows(self) -> "DataFrame":
        """The `@unique` tuples of all records, with the columns `TUPLE_DDL`."""
        column_names = [column_ddl.partition(" ")[0] for column_ddl in TUPLE_DDL.split(", ")]
        reported_tuples = self.task_reports.where(self.task_reports.kind == "unique").select(
            *column_names
        )
        unique_keys = [
            key
            for key in self.input_keys
            if unique_groups(entity_type_of(self.load_job.schema_ir, key))
        ]
        make_rows = make_tuple_rows(self.load_job.schema_ir, self.load_job.table_keys)
        return reported_tuples.unionAll(
            self._staged_rows(
                unique_keys, tuple_columns(self.load_job.schema_ir), make_rows, TUPLE_DDL
            )
        )

    def _staged_rows(
        self, table_keys: Sequence[str], select_columns: Any, make_rows: Any, ddl: str
    ) -> "DataFrame":
        fragments = [
            fragment
            for key in table_keys
            for fragment in self.staged_fragments.get(key, ())
            if select_columns(fragment)
        ]
        read_fragment = map_fragment_rows(self.load_job.pinned_graph, select_columns, make_rows)
        return map_staged_fragments(self.spark, fragments, read_fragment, ddl)

    def stored_rows(self, table_key: str, columns: Sequence[str]) -> "DataFrame":
        """Read the stored rows of a type."""
        return scan(self.spark, self.snapshot, table_key, columns)

    def has_stored_rows(self, table_key: str) -> bool:
        """Whether a type has stored rows."""
        return table_key in self.load_job.filled_keys


def is_current(driver_row: dict[str, Any], kind: str, replaced_positions: frozenset[int]) -> bool:
    """Whether a driver row is of this kind and about a record that no later record replaces."""
    return driver_row["kind"] == kind and driver_row["spot"] not in replaced_positions


def drop_replaced(rows: "DataFrame", replaced_positions: frozenset[int]) -> "DataFrame":
    """Drop the rows of records that later records of the load replace."""
    return rows.where(~rows.spot.isin(sorted(replaced_positions))) if replaced_positions else rows
