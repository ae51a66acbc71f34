"""`spark.read.format("omnigraph")` and `df.write.format("omnigraph")`: a type as a data source.

Reading pins one commit when the DataFrame is created, with the columns and filter of its options.
`pushFilters` must not be implemented: Spark 4.3 keeps the filters that one query pushed for every
other use of the same DataFrame, and loses rows. A write is one commit under the rules of a load.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource as api

from omnigraph.errors import UsageError
from omnigraph.history.branches import open_line
from omnigraph.history.line import Line
from omnigraph.history.snapshot import Snapshot, snapshot
from omnigraph.ingest.load import MODES
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.storage.effects import Effects
from omnigraph.storage.fragments import fragment_sizes, read_fragments
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Store, open_store

from .filters import Filter, filter_of
from .held import Hold, hold_of
from .place import Place, place_of, type_of
from .scan import chosen, tasks_of
from .stage import key_named
from .types import arrow_schema, as_spark, columns_of, ddl
from .writer import GraphWriter, write_to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KNOWN = (
    "graph", "path", "type", "kind", "branch", "at", "version", "columns", "filters", "loadmode",
)  # fmt: skip


def register(spark: "SparkSession") -> None:
    """Register the format with a session."""
    spark.dataSource.register(GraphSource)


class GraphSource(api.DataSource):
    """One node or edge type of a graph, at one commit."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.given = {name.lower(): value for name, value in dict(options).items()}
        unknown = sorted(set(self.given) - set(_KNOWN))
        if unknown:
            raise UsageError(
                reason=f"unknown option '{unknown[0]}'; expected one of {', '.join(_KNOWN)}"
            )
        if "type" not in self.given or not ("graph" in self.given or "path" in self.given):
            raise UsageError(reason="the options 'graph' and 'type' are required")
        named = [name for name in ("branch", "at", "version") if name in self.given]
        if len(named) > 1:
            raise UsageError(reason=f"{' and '.join(named)} are mutually exclusive: give one")
        self.uri = self.given.get("graph") or self.given["path"]
        # Pinned here, once: everything planned from this object must read the same commit.
        self.commit = self._shown().commit_id

    @classmethod
    def name(cls) -> str:
        """Return the name that `format(...)` takes."""
        return "omnigraph"

    def schema(self) -> str:
        """Return the columns of the type."""
        shown = self._pinned()
        return ddl(self._type(shown), self._columns(shown))

    def reader(self, schema: Any) -> "GraphReader":
        """Return a reader of the pinned commit."""
        shown = self._pinned()
        one = self._type(shown)
        key = f"{one.kind}:{one.name}"
        entry = shown.tables[key]
        place = place_of(shown.store, {key: (entry.location, entry.lance_version)})
        names = [field.name for field in schema]
        asked = self.given.get("filters")
        where = Filter() if asked is None else filter_of(one, asked)
        tasks = tasks_of(fragment_sizes(shown.table(key)))
        hold = hold_of(self._line(shown.store), shown, key)
        return GraphReader(place, key, one, names, tasks, where, hold)

    def writer(self, schema: Any, overwrite: bool) -> "GraphWriter":
        """Return a writer to the branch."""
        if "at" in self.given or "version" in self.given:
            raise UsageError(reason="cannot write to a past version: give a branch")
        shown, branch = self._pinned(), self.given.get("branch", MAIN)
        one, mode = self._type(shown), "overwrite" if overwrite else self.given.get("loadmode")
        if mode not in (None, *MODES):
            raise UsageError(reason=f"unknown loadMode '{mode}'; expected {', '.join(MODES)}")
        epoch = open_line(shown.store, branch).base().state.head.gc_epoch
        made = write_to(shown, f"{one.kind}:{one.name}", branch, mode or "append", epoch)  # type: ignore[arg-type]
        return GraphWriter(made)

    def _shown(self, commit: str | None = None) -> Snapshot:
        store = open_store(self.uri, effects=Effects(read_only=True))
        line = self._line(store)
        version = self.given.get("version")
        at = commit or self.given.get("at") or (int(version) if version else None)
        return snapshot(store, line, at)

    def _line(self, store: Store) -> Line:
        return open_line(store, self.given.get("branch", MAIN))

    def _pinned(self) -> Snapshot:
        return self._shown(self.commit)

    def _type(self, shown: Snapshot) -> Node | Edge:
        kind, name = self.given.get("kind"), self.given["type"]
        ir = shown.schema.ir
        key = f"{kind}:{name}" if kind else key_named(ir, name)
        if key not in shown.tables:
            raise UsageError(reason=f"the graph has no {key.replace(':', ' type ')}")
        return type_of(ir, key)

    def _columns(self, shown: Snapshot) -> list[str]:
        one = self._type(shown)
        asked = self.given.get("columns")
        wanted = [name.strip() for name in asked.split(",")] if asked else None
        return chosen(f"{one.kind}:{one.name}", columns_of(one), wanted)


class Fragments(api.InputPartition):
    """The fragments that one task reads."""

    def __init__(self, fragments: Sequence[int]) -> None:
        super().__init__(tuple(fragments))


class GraphReader(api.DataSourceReader):
    """Reads fragments of one table version."""

    def __init__(  # noqa: PLR0913, PLR0917 - constructed in one place
        self,
        place: Place,
        key: str,
        one: Node | Edge,
        names: list[str],
        tasks: list[list[int]],
        where: Filter,
        hold: Hold,
    ) -> None:
        self.place, self.key, self.one, self.names, self.tasks = place, key, one, names, tasks
        self.where, self.hold = where, hold

    def partitions(self) -> Sequence[api.InputPartition]:
        """Return one partition per task; a table without rows still has one."""
        return [Fragments(one) for one in self.tasks] or [Fragments(())]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        if not partition.value:
            return
        schema = arrow_schema(self.one, self.names)
        names = list(dict.fromkeys([*self.names, *self.where.columns]))
        with self.hold.alive():
            table = self.place.table(self.key)
            for rows in read_fragments(table, partition.value, names, self.where.stored):
                yield as_spark(self.where.kept(rows), schema)
