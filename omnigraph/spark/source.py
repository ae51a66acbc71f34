"""The data source behind `spark.read.format("omnigraph")` and `df.write.format("omnigraph")`.

A read pins one commit when the DataFrame is created. The read options select the columns and the filter. Do not
implement `pushFilters`: Spark 4.3 would apply the pushed-down filters of one query to every other query on the same
DataFrame, so rows would be lost. A write is one commit and follows the same rules as a load.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource as api

from omnigraph.errors import UsageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.snapshot import Snapshot, load_snapshot
from omnigraph.ingest.load import LOAD_MODES
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.storage.effects import Effects
from omnigraph.storage.fragments import fragment_row_counts, read_fragments
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Store, open_store
from omnigraph.values.table_key import TableKey

from .filters import SparkFilter, parse_filter
from .pinned_graph import PinnedGraph, pin_graph
from .read_leases import DataFrameLease, lease_for_table
from .spark_types import cast_to_spark, columns_of_type, spark_arrow_schema, spark_ddl
from .table_scan import group_fragments, select_columns
from .writer import GraphWriter, prepare_type_write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WRITE_MODES = tuple(mode for mode in LOAD_MODES if mode != "delete")  # a write to one type cannot delete edges
_OPTIONS = (
    "graph", "path", "type", "kind", "branch", "at", "version", "columns", "filters", "loadmode",
)  # fmt: skip


def register(spark: "SparkSession") -> None:
    """Register the format with a session."""
    spark.dataSource.register(GraphSource)


class GraphSource(api.DataSource):
    """One node or edge type of a graph, at one commit."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.lowercase_options = {option.lower(): value for option, value in dict(options).items()}
        unknown_options = sorted(set(self.lowercase_options) - set(_OPTIONS))
        if unknown_options:
            expected_options = ", ".join(_OPTIONS)
            raise UsageError(reason=f"unknown option '{unknown_options[0]}'; expected one of {expected_options}")
        if "type" not in self.lowercase_options or not (
            "graph" in self.lowercase_options or "path" in self.lowercase_options
        ):
            raise UsageError(reason="the options 'graph' and 'type' are required")
        revision_options = [option for option in ("branch", "at", "version") if option in self.lowercase_options]
        if len(revision_options) > 1:
            raise UsageError(reason=f"{' and '.join(revision_options)} are mutually exclusive: pass only one of them")
        self.uri = self.lowercase_options.get("graph") or self.lowercase_options["path"]
        # Pin the commit once, here, because everything planned from this object must read the same commit.
        self.commit_id = self._open_snapshot().commit_id

    @classmethod
    def name(cls) -> str:
        """Return the name to pass to `format(...)`."""
        return "omnigraph"

    def schema(self) -> str:
        """Return the type's columns as a Spark schema."""
        pinned = self._pinned_snapshot()
        return spark_ddl(self._entity_type(pinned), self._selected_columns(pinned))

    def reader(self, schema: Any) -> "GraphReader":
        """Return a reader for the pinned commit."""
        pinned = self._pinned_snapshot()
        entity_type = self._entity_type(pinned)
        table_key = TableKey.of(entity_type.kind, entity_type.name)
        table_entry = pinned.tables[table_key]
        pinned_graph = pin_graph(pinned.store, {table_key: (table_entry.location, table_entry.lance_version)})
        column_names = [field.name for field in schema]
        filter_json = self.lowercase_options.get("filters")
        row_filter = SparkFilter() if filter_json is None else parse_filter(entity_type, filter_json)
        fragment_groups = group_fragments(fragment_row_counts(pinned.table(table_key)))
        lease = lease_for_table(self._open_branch(pinned.store), pinned, table_key)
        return GraphReader(pinned_graph, table_key, entity_type, column_names, fragment_groups, row_filter, lease)

    def writer(self, schema: Any, overwrite: bool) -> "GraphWriter":
        """Return a writer for the branch."""
        if "at" in self.lowercase_options or "version" in self.lowercase_options:
            raise UsageError(reason="cannot write to a past version: pass a branch")
        pinned, branch_name = self._pinned_snapshot(), self.lowercase_options.get("branch", MAIN)
        entity_type = self._entity_type(pinned)
        load_mode = "overwrite" if overwrite else self.lowercase_options.get("loadmode")
        if load_mode not in (None, *_WRITE_MODES):
            hint = "delete rows with graph.load({type: frame}, mode='delete')" if load_mode == "delete" else None
            reason = f"unknown loadMode '{load_mode}'; expected one of {', '.join(_WRITE_MODES)}"
            raise UsageError(reason=reason, hint=hint)
        gc_epoch = open_branch(pinned.store, branch_name).last_known().state.head.gc_epoch
        type_write = prepare_type_write(
            pinned,
            TableKey.of(entity_type.kind, entity_type.name),
            branch_name,
            load_mode or "append",  # type: ignore[arg-type]
            gc_epoch,
        )
        return GraphWriter(type_write)

    def _open_snapshot(self, commit_id: str | None = None) -> Snapshot:
        store = open_store(self.uri, effects=Effects(read_only=True))
        branch_state = self._open_branch(store)
        version = self.lowercase_options.get("version")
        revision = commit_id or self.lowercase_options.get("at") or (int(version) if version else None)
        return load_snapshot(store, branch_state, revision)

    def _open_branch(self, store: Store) -> BranchState:
        return open_branch(store, self.lowercase_options.get("branch", MAIN))

    def _pinned_snapshot(self) -> Snapshot:
        return self._open_snapshot(self.commit_id)

    def _entity_type(self, pinned: Snapshot) -> NodeType | EdgeType:
        kind, type_name = self.lowercase_options.get("kind"), self.lowercase_options["type"]
        return resolve_type(pinned.schema.ir.catalog, type_name, kind, ignore_case=kind is None)

    def _selected_columns(self, pinned: Snapshot) -> list[str]:
        entity_type = self._entity_type(pinned)
        columns_option = self.lowercase_options.get("columns")
        column_names = [column.strip() for column in columns_option.split(",")] if columns_option else None
        return select_columns(
            TableKey.of(entity_type.kind, entity_type.name), columns_of_type(entity_type), column_names
        )


class FragmentPartition(api.InputPartition):
    """The fragments that one task reads."""

    def __init__(self, fragments: Sequence[int]) -> None:
        super().__init__(tuple(fragments))


class GraphReader(api.DataSourceReader):
    """A reader for the fragments in one table version."""

    def __init__(  # noqa: PLR0913, PLR0917 - constructed in one place
        self,
        pinned_graph: PinnedGraph,
        table_key: TableKey,
        entity_type: NodeType | EdgeType,
        column_names: list[str],
        fragment_groups: list[list[int]],
        row_filter: SparkFilter,
        lease: DataFrameLease,
    ) -> None:
        self.pinned_graph = pinned_graph
        self.table_key = table_key
        self.entity_type = entity_type
        self.column_names = column_names
        self.fragment_groups = fragment_groups
        self.row_filter, self.lease = row_filter, lease

    def partitions(self) -> Sequence[api.InputPartition]:
        """Return one partition per task, and at least one partition even if the table has no rows."""
        return [FragmentPartition(fragment_group) for fragment_group in self.fragment_groups] or [FragmentPartition(())]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows in a partition."""
        if not partition.value:
            return
        spark_schema = spark_arrow_schema(self.entity_type, self.column_names)
        read_columns = list(dict.fromkeys([*self.column_names, *self.row_filter.batch_columns]))
        with self.lease.keep_alive():
            pinned_table = self.pinned_graph.table(self.table_key)
            for rows in read_fragments(pinned_table, partition.value, read_columns, self.row_filter.storage_filter):
                yield cast_to_spark(self.row_filter.apply_to_batch(rows), spark_schema)
