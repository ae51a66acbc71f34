"""The facets' public interface, as protocols. `surface.py` defines the graph's own interface.

The methods are documented where they are implemented.
"""

# ruff: noqa: D102, PLR0913

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from omnigraph.api.schema_surface import GraphSchemaSurface  # noqa: F401 - the surface of one more facet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from os import PathLike
    from threading import Event

    from omnigraph.api.builders.search_text import PropertyNames
    from omnigraph.api.change_feed.baseline import Baseline
    from omnigraph.api.change_feed.feed import BlockChanges, ChangeBlock, ChangeFilterNames, Feed
    from omnigraph.api.change_feed.pages import ChangePage, CommitPage
    from omnigraph.api.changes import Wait
    from omnigraph.api.engine_choice import Engine
    from omnigraph.api.merge_sessions import MergeResult, MergeSession
    from omnigraph.api.results.receipt import Receipt
    from omnigraph.api.results.result import Result
    from omnigraph.api.surface import GraphSurface
    from omnigraph.history.branch_info import BranchInfo
    from omnigraph.history.commit import Commit
    from omnigraph.history.entity_history import Blamed, EntityHistory
    from omnigraph.history.recovery_records import RecoveryRecord
    from omnigraph.history.revisions import Revision
    from omnigraph.history.tags import Tag
    from omnigraph.ingest.load import LoadMode
    from omnigraph.maintenance.copy import CopyProgress, CopySummary
    from omnigraph.maintenance.finding import Checkup
    from omnigraph.maintenance.optimize_report import OptimizeReport
    from omnigraph.maintenance.repair_report import Repair
    from omnigraph.maintenance.retention.absence_report import Absence
    from omnigraph.maintenance.retention.collect_garbage import CleanupProgress
    from omnigraph.maintenance.retention.policy import Duration
    from omnigraph.maintenance.retention.report import Cleanup
    from omnigraph.maintenance.status_report import Status
    from omnigraph.merging.strategy import Strategy
    from omnigraph.merging.table_merge import Granularity
    from omnigraph.publish.intent import PendingIntent, SetAsideIntent
    from omnigraph.spark.snapshot_frames import SparkGraph


class BranchesSurface(Protocol):
    """The members of `graph.branches`."""

    def names(self) -> list[str]: ...

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int: ...

    def __contains__(self, name: object) -> bool: ...

    def __getitem__(self, name: str) -> BranchInfo: ...

    def get(self, name: str) -> BranchInfo | None: ...

    def create(
        self, name: str, *, from_: Revision | None = None, commit: Revision | None = None, exist_ok: bool = False
    ) -> GraphSurface: ...

    def rename(self, name: str, new: str) -> GraphSurface: ...

    def delete(self, name: str, *, force: bool = False) -> None: ...

    def reset(
        self,
        name: str,
        *,
        to: Revision,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> MergeResult: ...

    def merge_session(
        self,
        source: str | None = None,
        into: str | None = None,
        *,
        granularity: Granularity = "property",
        collapse_edges: bool = False,
        message: str | None = None,
        actor: str | None = None,
        engine: Engine = "auto",
        spark: Any = None,
    ) -> MergeSession: ...


class TagsSurface(Protocol):
    """The members of `graph.tags`."""

    def values(self) -> list[Tag]: ...

    def names(self) -> list[str]: ...

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int: ...

    def __contains__(self, name: object) -> bool: ...

    def __getitem__(self, name: str) -> Tag: ...

    def get(self, name: str) -> Tag | None: ...

    def create(self, name: str, point: Revision | None = None, *, message: str | None = None) -> Tag: ...

    def delete(self, name: str) -> None: ...


class RevisionsSurface(Protocol):
    """The members of `graph.revisions`."""

    def commit(self, commit_id: str) -> Commit: ...

    def pin(self) -> GraphSurface: ...

    def history(
        self, type_name: str, key: Any, /, *, kind: str | None = None, limit: int | None = None
    ) -> EntityHistory: ...

    def blame(self, type_name: str, key: Any, /, *, kind: str | None = None) -> dict[str, Blamed]: ...

    def revert(
        self,
        commit: Revision,
        *,
        mainline: int | None = None,
        branch: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        strategy: Strategy = None,
        granularity: Granularity = "property",
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> MergeResult: ...

    def cherry_pick(
        self,
        commit: Revision,
        into: str | None = None,
        *,
        mainline: int | None = None,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        strategy: Strategy = None,
        granularity: Granularity = "property",
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> MergeResult: ...


class ChangesSurface(Protocol):
    """The members of `graph.changes`."""

    def feed(
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> Feed: ...

    def follow(
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        poll: float = 2.0,
        stop: Event | None = None,
        wait: Wait | None = None,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> Iterator[ChangeBlock]: ...

    def poll(
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        page_token: str | None = None,
        limit: int = ...,
        max_bytes: int = ...,
        max_commits: int = ...,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> ChangePage: ...

    def of_commit(
        self,
        commit: Commit | Revision,
        *,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> BlockChanges: ...

    def commit_page(
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int = ...,
        max_bytes: int = ...,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> CommitPage: ...

    def commit_pages(
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int = ...,
        max_bytes: int = ...,
        **filters: ChangeFilterNames,
    ) -> Iterator[CommitPage]: ...

    def baseline(
        self,
        path: str | PathLike[str] | None = None,
        *,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> Baseline: ...


class OperationsSurface(Protocol):
    """The members of `graph.maintenance.operations`."""

    def recoveries(self) -> list[RecoveryRecord]: ...

    def pending(self) -> list[PendingIntent]: ...

    def set_aside(self) -> list[SetAsideIntent]: ...

    def retry(self, operation_id: str) -> RecoveryRecord | None: ...

    def drop(self, operation_id: str) -> RecoveryRecord: ...


class MaintenanceSurface(Protocol):
    """The members of `graph.maintenance`."""

    @property
    def operations(self) -> OperationsSurface: ...

    def optimize(
        self,
        *,
        types: Collection[str] | None = None,
        engine: Engine = "auto",
        spark: Any = None,
        branch: str | None = None,
        actor: str | None = None,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
    ) -> OptimizeReport: ...

    def ensure_indices(
        self,
        *,
        rebuild: bool | Collection[str] = False,
        engine: Engine = "auto",
        spark: Any = None,
        branch: str | None = None,
        actor: str | None = None,
    ) -> Receipt: ...

    def pending_indices(self) -> list[tuple[str, str, str]]: ...

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        confirm: bool = False,
        grace: Duration | None = None,
        erase: bool = False,
        purge_dropped: bool = False,
        engine: Engine = "auto",
        spark: Any = None,
        progress: CleanupProgress | None = None,
    ) -> Cleanup: ...

    def hold(self) -> AbstractContextManager[GraphSurface]: ...

    def check_absent(
        self, type_name: str, entity_id: str, *, also: str | PathLike[str] | Sequence[str | PathLike[str]] = ()
    ) -> Absence: ...

    def check(
        self,
        *,
        quick: bool = False,
        sample: float | None = None,
        engine: Engine = "auto",
        spark: Any = None,
        progress: Callable[[str], object] | None = None,
    ) -> Checkup: ...

    def status(self) -> Status: ...

    def repair(
        self,
        *,
        confirm: bool = False,
        force: bool = False,
        restore: str | None = None,
        name: str | None = None,
        tag: bool = False,
        drop: str | None = None,
        commit: str | None = None,
    ) -> Repair: ...

    def copy_to(
        self,
        uri: str | PathLike[str],
        *,
        progress: CopyProgress | None = None,
        storage_options: Mapping[str, object] | None = None,
        verify: bool = True,
    ) -> CopySummary: ...


class SparkSurface(Protocol):
    """The members of `graph.spark`."""

    def frames(self, session: Any = None, *, master: str | None = None, remote: str | None = None) -> SparkGraph: ...

    def stream_load(
        self,
        frame: Any,
        type_name: str,
        *,
        name: str,
        checkpoint: str | PathLike[str],
        mode: LoadMode = "append",
        branch: str | None = None,
        rejects: str | PathLike[str] | None = None,
        available_now: bool = False,
    ) -> Any: ...


class SearchSurface(Protocol):
    """The `search` method of an open graph, either local or on a server."""

    def search(
        self,
        type_name: str,
        /,
        *,
        text: str | None = None,
        vector: Sequence[float] | None = None,
        k: int = 10,
        properties: PropertyNames = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
    ) -> Result: ...
