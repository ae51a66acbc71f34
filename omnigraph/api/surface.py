"""The public interface of a graph, as a protocol that local and remote graphs share.

mypy checks `Graph` against `GraphSurface`, and the HTTP client implements the same protocol. The protocol omits only
members that need direct access to the files, namely `Graph.snapshot`, `Graph.table`, `Graph.scan`, `Graph.duckdb`,
`Graph.pool` and `Graph.schema.contract`. The methods are documented where they are implemented.
"""

# ruff: noqa: D102, PLR0913

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, Unpack, overload

from omnigraph.api.facet_surfaces import SearchSurface

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from os import PathLike

    from omnigraph.api.blobs import Blob
    from omnigraph.api.branch_exits import BranchExit
    from omnigraph.api.builders.entity_sets import EdgeSet, NodeSet
    from omnigraph.api.builders.prepared_queries import Prepared, QuerySource
    from omnigraph.api.change_feed.feed import ChangeFilterNames
    from omnigraph.api.data_files import ProgressOption
    from omnigraph.api.engine_choice import Engine
    from omnigraph.api.export_files import ExportFormat
    from omnigraph.api.facet_surfaces import (
        BranchesSurface,
        ChangesSurface,
        MaintenanceSurface,
        RevisionsSurface,
        SparkSurface,
        TagsSurface,
    )
    from omnigraph.api.loads import Format
    from omnigraph.api.merge_sessions import MergeResult
    from omnigraph.api.queries import Params
    from omnigraph.api.results.commit_log import CommitLog
    from omnigraph.api.results.diff import Diff
    from omnigraph.api.results.node import Node
    from omnigraph.api.results.receipt import LoadReport, Receipt
    from omnigraph.api.results.result import Result, ResultStream
    from omnigraph.api.results.subgraph import Subgraph
    from omnigraph.api.schema_surface import GraphSchemaSurface
    from omnigraph.api.stored_queries import StoredQueries
    from omnigraph.api.transactions import Transaction
    from omnigraph.api.writes import RecordKeywords, WriteKeywords
    from omnigraph.history.commit import Commit
    from omnigraph.history.revisions import Revision
    from omnigraph.history.tags import Tag
    from omnigraph.ingest.csv_options import CsvOptions
    from omnigraph.ingest.load import LoadMode, OnError
    from omnigraph.maintenance.health_thresholds import LimitWarning
    from omnigraph.merging.merge_limits import MergeLimits
    from omnigraph.merging.strategy import Strategy
    from omnigraph.merging.table_merge import Granularity

    Path = str | PathLike[str]

Answer = TypeVar("Answer")


class GraphSurface(SearchSurface, Protocol):
    """An open graph, either local or on a server."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    @property
    def uri(self) -> str: ...

    @property
    def branch_name(self) -> str: ...

    @property
    def head(self) -> Commit: ...

    @property
    def read_only(self) -> bool: ...

    @property
    def actor(self) -> str | None: ...

    @property
    def warnings(self) -> list[LimitWarning]: ...

    @property
    def is_remote(self) -> bool: ...

    def refresh(self) -> Self: ...

    def close(self) -> None: ...

    @property
    def branches(self) -> BranchesSurface: ...

    @property
    def tags(self) -> TagsSurface: ...

    @property
    def revisions(self) -> RevisionsSurface: ...

    @property
    def schema(self) -> GraphSchemaSurface: ...

    @property
    def changes(self) -> ChangesSurface: ...

    @property
    def queries(self) -> StoredQueries: ...

    @property
    def maintenance(self) -> MaintenanceSurface: ...

    @property
    def spark(self) -> SparkSurface: ...

    @overload
    def query(self, source: QuerySource, /, *, lazy: Literal[True], **options: Any) -> ResultStream: ...

    @overload
    def query(
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        lazy: Literal[False] = False,
        **values: Any,
    ) -> Result: ...

    def stream(
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> ResultStream: ...

    def explain(
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        analyze: bool = False,
        **values: Any,
    ) -> Any: ...

    def subgraph(
        self,
        source: QuerySource | Result,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        **values: Any,
    ) -> Subgraph: ...

    def prepare(self, source: QuerySource, /, *, name: str | None = None) -> Prepared: ...

    def nodes(self, type_name: str, /) -> NodeSet: ...

    def edges(self, type_name: str, /) -> EdgeSet: ...

    def node(self, type_name: str, key: Any, /) -> Node | None: ...

    def blob(
        self,
        type_name: str,
        key: Any,
        property_name: str,
        /,
        *,
        kind: str | None = None,
        if_match: str | None = None,
    ) -> Blob: ...

    def __getitem__(self, wanted: tuple[str, Any]) -> Node: ...

    @overload
    def export(
        self,
        path: None = None,
        /,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: Revision | None = None,
        iso_dates: bool = False,
        since: Revision | None = None,
        format: ExportFormat | None = None,
    ) -> Iterator[bytes]: ...

    @overload
    def export(
        self,
        path: Path,
        /,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: Revision | None = None,
        iso_dates: bool = False,
        since: Revision | None = None,
        format: ExportFormat | None = None,
    ) -> int: ...

    def mutate(
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> Receipt: ...

    def insert(self, type_name: str, /, *records: Any, **options: Unpack[RecordKeywords]) -> Receipt: ...

    def upsert(self, type_name: str, /, *records: Any, **options: Unpack[RecordKeywords]) -> Receipt: ...

    def patch(self, type_name: str, /, *records: Any, **options: Unpack[RecordKeywords]) -> Receipt: ...

    def connect_nodes(
        self, edge_type: str, ends: Iterable[tuple[Any, ...]], /, **options: Unpack[RecordKeywords]
    ) -> Receipt: ...

    def update(
        self,
        type_name: str,
        /,
        *,
        where: str,
        set: Mapping[str, Any],
        params: Params = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> Receipt: ...

    def delete(
        self,
        type_name: str,
        /,
        *,
        where: str,
        params: Params = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> Receipt: ...

    def put_blob(
        self,
        type_name: str,
        key: Any,
        property_name: str,
        content: Any,
        /,
        *,
        media_type: str | None = None,
        if_match: str | None = None,
        progress: ProgressOption = None,
        **options: Unpack[WriteKeywords],
    ) -> Receipt: ...

    def load(
        self,
        data: Any,
        *,
        mode: LoadMode,
        branch: str | None = None,
        from_: str | None = None,
        format: Format | None = None,
        mapping: Mapping[str, Mapping[str, str]] | None = None,
        csv: CsvOptions | None = None,
        on_error: OnError = "raise",
        engine: Engine = "auto",
        spark: Any = None,
        rejects: Path | None = None,
        max_errors: int | None = None,
        dry_run: bool = False,
        progress: ProgressOption = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        assume_utc: bool = False,
        max_row_bytes: int | None = None,
    ) -> Receipt | LoadReport: ...

    def retry(self, fn: Callable[[Self], Answer], *, attempts: int = 12) -> Answer: ...

    def transaction(
        self,
        *,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Transaction: ...

    def acting(self, actor: str | None) -> GraphSurface: ...

    def checkout(self, branch: str) -> GraphSurface: ...

    def branch(
        self,
        name: str,
        *,
        from_: Revision | None = None,
        exist_ok: bool = False,
        delete: bool = False,
        on_exit: BranchExit = "keep",
    ) -> AbstractContextManager[GraphSurface]: ...

    def at(self, point: Revision) -> GraphSurface: ...

    def tag(self, name: str, point: Revision | None = None, *, message: str | None = None) -> Tag: ...

    def log(
        self,
        branch: str | None = None,
        *,
        limit: int | None = None,
        since: datetime | None = None,
        actor: str | None = None,
        type: str | None = None,
        all: bool = False,
    ) -> CommitLog: ...

    def diff(
        self,
        a: Revision | Self | None,
        b: Revision | Self | None = None,
        *,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> Diff: ...

    def merge(
        self,
        source: str | None = None,
        into: str | None = None,
        *,
        message: str | None = None,
        actor: str | None = None,
        delete_branch: bool = False,
        if_commit: str | None = None,
        strategy: Strategy = None,
        granularity: Granularity = "property",
        collapse_edges: bool = False,
        dry_run: bool = False,
        limits: MergeLimits | None = None,
        engine: Engine = "auto",
        spark: Any = None,
        idempotency_key: str | None = None,
    ) -> MergeResult: ...
