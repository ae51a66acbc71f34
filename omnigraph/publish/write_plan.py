"""The plan for a write: its table changes, and its requirements on the state that the write is published to.

This module defines the data classes that describe a write. After a lost swap, every requirement is checked again on the
next base. A plan that is still valid is replayed on that base. Otherwise, a new plan is prepared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.history.commit import Commit, SchemaRow, TableEntry
from omnigraph.publish.requirements import AbsentTable, Requirement, SameContent
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.table import StagedChange
from omnigraph.values.table_key import TableKey


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """Everything that one publish makes visible. A plan is complete before any part of it becomes visible.

    `writes` are the staged changes by table key, `new_tables` are the tables to register, `dropped_tables` are the
    tables to remove, and `adopted_tables` are existing versions taken over from another state. For a merge,
    `incoming_commits` are the source's new commits, and `merged_head` is the source's head. `details` is stored in the
    commit. If `maintenance` is true, the plan does not change any content and therefore keeps the
    content ids. `gc_epoch` is the collector epoch in which the files were staged, by default the base's epoch. In a
    later epoch, a collector may have removed the files. If `protected_by_intent` is true, the epoch does not matter.
    """

    operation: str
    writes: Mapping[TableKey, StagedChange] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()
    maintenance: bool = False
    new_tables: Mapping[TableKey, TableEntry] = field(default_factory=dict)
    dropped_tables: frozenset[TableKey] = frozenset()
    adopted_tables: Mapping[TableKey, TableEntry] = field(default_factory=dict)
    schema: SchemaRow | None = None
    incoming_commits: tuple[Commit, ...] = ()
    merged_head: str | None = None
    streams: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    file_checksums: FileChecksums = field(default_factory=dict)
    gc_epoch: int | None = None
    protected_by_intent: bool = False

    def with_base_requirements(self, txn: WriteTxn) -> "PublishPlan":
        """Return the plan with its implicit assumptions about the base turned into explicit requirements.

        A plan that replaces tables, or assumes that tables do not exist, depends on their current state. By default,
        the plan's files are safe only in the base's collector epoch.
        """
        replaced_keys = sorted({*self.new_tables, *self.adopted_tables, *self.dropped_tables})
        base_requirements = tuple(
            _require_unchanged(table_key, txn.table_entry(table_key)) for table_key in replaced_keys
        )
        gc_epoch = txn.base.state.head.gc_epoch if self.gc_epoch is None else self.gc_epoch
        return replace(self, requirements=(*self.requirements, *base_requirements), gc_epoch=gc_epoch)


def _require_unchanged(table_key: TableKey, entry: TableEntry | None) -> Requirement:
    return AbsentTable(table_key) if entry is None else SameContent(table_key, entry.content_id, entry.version)


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """A write's author, message and idempotency key, which identifies repeated requests."""

    actor: str | None = None
    message: str | None = None
    idempotency_key: str | None = None
    request_hash: str | None = None


PreparePlan = Callable[[WriteTxn], PublishPlan | None]
