"""The results of a merge: `MergeResult`, and `MergeSession` to resolve conflicts one by one.

Both work on two captured states. A session changes nothing before its `commit`.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from omnigraph.boundary import Guarded
from omnigraph.comparison import Diff, Found, summed
from omnigraph.errors import EntityConflict, InputError, MergeConflict, ReadSetConflict
from omnigraph.errors.conflict import conflict_table
from omnigraph.errors.conflict_card import conflict_card
from omnigraph.history.bases import Frame, Outcome, recapture
from omnigraph.history.commit import Commit
from omnigraph.history.diff import diff_snapshots, matched
from omnigraph.history.entities import TableChanges
from omnigraph.history.plan import Signature
from omnigraph.merging import conflicts as found_conflicts
from omnigraph.merging.edges import Parallel
from omnigraph.merging.far import FarDelta
from omnigraph.merging.lost import LostEdge
from omnigraph.merging.merge import ATTEMPTS, Merged, Request, merge_frame, only_tended
from omnigraph.merging.strategy import Answer, add, settle
from omnigraph.merging.work import Decision, Judged, Work
from omnigraph.rules.delta import TableDelta
from omnigraph.storage.find import find
from omnigraph.storage.store import Store


@dataclass(frozen=True, repr=False)
class MergeResult(Guarded):
    """What a merge did, or would do. True if the target now contains everything of the source.

    `outcome` is `already_up_to_date`, `fast_forward` or `merged`, and `conflict` in a dry run with
    conflicts. `base`, `source` and `target` are the merged commits. `lost_edges` were deleted with
    a node that one side deleted and the merge keeps: they are not restored.
    """

    outcome: Outcome
    commit: Commit | None
    conflicts: tuple[EntityConflict, ...] = ()
    parallel_edges: tuple[Parallel, ...] = ()
    base: str = ""
    source: str = ""
    target: str = ""
    branch_deleted: bool = False
    branch_delete_error: str | None = None
    lost_edges: tuple[LostEdge, ...] = ()
    merged: Merged | None = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return self.outcome != "conflict"

    def __repr__(self) -> str:
        found = f", {len(self.conflicts)} conflicts" if self.conflicts else ""
        landed = f", commit {self.commit.id}" if self.commit is not None else ""
        return f"<Merge of {self.source} into {self.target}: {self.outcome}{found}{landed}>"

    @cached_property
    def delta(self) -> Diff:
        """What changed on the target, or would change; computed on first use."""
        if self.merged is None or self.outcome == "already_up_to_date":
            return Diff(Found(lambda: iter(())), self.target, self.target)
        landed = self.commit.id if self.commit is not None else self.source
        merged = self.merged
        return Diff(Found(lambda: _changes(merged)), self.target, landed)

    @cached_property
    def stats(self) -> dict[str, Any]:
        """Counts of changes, conflicts, resolutions and combined properties."""
        judged = self.merged.judged if self.merged is not None else None
        return {
            **self._counted(),
            "conflicts": len(self.conflicts),
            "resolved": self.merged.resolved if self.merged is not None else 0,
            "merged_properties": judged.merged_properties if judged is not None else 0,
            "parallel_edges": len(self.parallel_edges),
            "lost_edges": len(self.lost_edges),
        }

    def _counted(self) -> dict[str, Any]:
        """Count the changes; rows of tables compared by an offload engine are not read."""
        judged = self.merged.judged if self.merged is not None else None
        if self.merged is None or judged is None or not judged.far:
            return self.delta.summary()
        merged, far = self.merged, judged.far
        near = Diff(Found(lambda: _changes(merged, set(far))), self.target, self.target)
        counts = {key: one.counts() for key, one in far.items()}
        return summed({**near.counts(), **{k: c for k, c in counts.items() if any(c.values())}})

    def to_arrow(self) -> pa.Table:
        """Return the conflicts as an Arrow table."""
        table: pa.Table = conflict_table(self.conflicts, pa)
        return table

    def _repr_html_(self) -> str:
        if self.conflicts:
            return conflict_card(self.conflicts, f"{self.source} into {self.target}")
        return self.delta._repr_html_()


def result_of(merged: Merged) -> MergeResult:
    """Return the user-facing result of a merge."""
    frame = merged.frame
    return MergeResult(
        merged.outcome,
        merged.commit,
        merged.conflicts,
        merged.parallel,
        frame.base.commit_id,
        frame.theirs.commit_id,
        frame.ours.commit_id,
        lost_edges=merged.lost,
        merged=merged,
    )


class MergeSession(Guarded):
    """A merge whose conflicts are resolved one by one: `resolve`, inspect, `commit`.

    Conflicts keep their numbers. A decision may reveal others; they are appended.
    """

    def __init__(
        self, frame: Frame, request: Request, done: Callable[[Merged], MergeResult]
    ) -> None:
        self._frame = frame
        self._request = request
        self._done = done
        self._work = Work(frame, request.options)
        self._decisions: dict[found_conflicts.Entity, Decision] = {}
        self._found: list[found_conflicts.Found] = []
        self._judged: Judged | None = None

    def _guarded_store(self) -> Store:
        return self._frame.target.store

    @property
    def conflicts(self) -> tuple[EntityConflict, ...]:
        """All conflicts found so far, resolved or not."""
        self._judge()
        return tuple(one.conflict for one in self._found)

    @property
    def open(self) -> tuple[EntityConflict, ...]:
        """The unresolved conflicts."""
        judged = self._judge()
        return () if judged is None else tuple(one.conflict for one in judged.found)

    def __len__(self) -> int:
        return len(self.open)

    def __repr__(self) -> str:
        names = f"{self._frame.theirs.branch!r} into {self._frame.ours.branch!r}"
        return f"<MergeSession of {names}: {len(self.open)} of {len(self.conflicts)} left>"

    def resolve(self, which: int | EntityConflict, choice: Answer) -> "MergeSession":
        """Resolve one conflict: `ours`, `theirs`, or a dict of properties and their values."""
        every = self.conflicts
        try:
            at = (
                every.index(which)
                if isinstance(which, EntityConflict)
                else range(len(every))[which]
            )
        except (IndexError, ValueError):
            message = f"unknown conflict {which}; there are {len(every)}"
            raise InputError(message, reason="unknown conflict") from None
        self._decide([self._found[at]], choice)
        return self

    def resolve_all(
        self, choice: Answer, *, type: str | None = None, kind: str | None = None
    ) -> "MergeSession":
        """Resolve every open conflict, or those of a type or a kind."""
        judged = self._judge()
        chosen = [
            one
            for one in (judged.found if judged is not None else ())
            if (type is None or one.conflict.type_name == type)
            and (kind is None or one.conflict.kind == kind)
        ]
        self._decide(chosen, choice)
        return self

    def preview(self) -> MergeResult:
        """Return what a commit would do now, with the remaining conflicts."""
        return result_of(self._merge(replace(self._request, dry_run=True)))

    def commit(self, *, message: str | None = None, actor: str | None = None) -> MergeResult:
        """Publish the merge; concurrent maintenance of the target does not block it.

        Raises `MergeConflict` if a conflict remains, `ReadSetConflict` if the target has changed.
        """
        left = self.open
        if left:
            raise MergeConflict(conflicts=left)
        old = self._request.signature
        signature = Signature(actor or old.actor, message if message is not None else old.message)
        return self._done(self._landed(replace(self._request, signature=signature)))

    def to_arrow(self) -> pa.Table:
        """Return all conflicts as an Arrow table, for a notebook or a file."""
        table: pa.Table = conflict_table(self.conflicts, pa)
        return table

    def _repr_html_(self) -> str:
        return conflict_card(self.open, repr(self)[1:-1])

    def _landed(self, request: Request) -> Merged:
        """Publish the merge; plan it again if only maintenance changed the target meanwhile."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._merge(request)
            except ReadSetConflict:
                if not only_tended(self._frame):
                    raise
                self._frame = recapture(self._frame)
                self._work, self._judged = Work(self._frame, request.options), None
        return self._merge(request)

    def _merge(self, request: Request) -> Merged:
        resolved = len(self.conflicts) - len(self.open)
        return merge_frame(self._frame, request, self._work, self._decisions, resolved)

    def _decide(self, chosen: list[found_conflicts.Found], choice: Answer) -> None:
        for one in chosen:
            for entity in one.involved:  # a second decision replaces the first
                self._decisions.pop(entity, None)
        add(self._work, self._decisions, [(one, choice) for one in chosen])
        self._judged = None

    def _judge(self) -> Judged | None:
        if self._frame.outcome != "merged":
            return None
        if self._judged is None:
            self._judged, _ = settle(self._work, None, self._decisions)
            known = {one.order for one in self._found}
            self._found += [one for one in self._judged.found if one.order not in known]
        return self._judged


def _changes(merged: Merged, without: Collection[str] = ()) -> Iterator[TableChanges]:
    """Yield what a merge changes on the target, table by table, except some tables."""
    frame, judged = merged.frame, merged.judged
    if judged is None:
        return
    for key in sorted({*judged.delta.tables, *judged.adopted} - {*without}):
        if key in judged.adopted:
            yield from diff_snapshots(frame.ours, frame.theirs, [key])
            continue
        found = _written(frame, judged.delta.tables[key])
        if not found.empty:
            yield found


def _written(frame: Frame, one: TableDelta) -> TableChanges:
    table = frame.ours.table(one.key)
    rows = one.whole_rows() if isinstance(one, FarDelta) else one.rows
    ids = pa.concat_arrays([one.ids, one.removed_ids])
    before = find(table, {"id": ids}, table.schema.names)
    return matched(one.key, before, rows, rows.schema)
