"""Merge sessions on a server. Conflicts are resolved one by one, and the decisions are sent with each preview.

The server keeps no state between requests. The session therefore records the commits of the source and the target when
it is opened. Its method `commit` fails if the target has changed since then.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.errors import EntityConflict, InputError, MergeConflict, PreconditionFailed, ReadSetConflict
from omnigraph.errors.conflict_card import conflict_card
from omnigraph.errors.merge_conflict import conflict_table
from omnigraph.merging.strategy import ConflictAnswer

from .conflicts import is_schema_conflict, write_decision
from .handle import RemoteHandle
from .merges import RemoteMergeResult, run_merge

if TYPE_CHECKING:
    import pyarrow as pa


class RemoteMergeSession:
    """A merge session on a server. Resolve conflicts one at a time with `resolve`, then publish with `commit`.

    A conflict's number never changes. A new decision about a schema conflict discards all decisions about rows.
    """

    def __init__(
        self, handle: RemoteHandle, source: str, target: str, *, message: str | None, options: Mapping[str, Any]
    ) -> None:
        self._handle, self._source, self._target = handle, source, target
        self._source_id = handle.resolve(source)
        self._message, self._options = message, options
        self._decisions: dict[EntityConflict, Mapping[str, Any]] = {}
        self._conflicts: list[EntityConflict] = []
        self._preview = self._run_preview({})
        self._add_conflicts()

    @property
    def conflicts(self) -> tuple[EntityConflict, ...]:
        """All conflicts found so far, whether resolved or not."""
        return tuple(self._conflicts)

    @property
    def open(self) -> tuple[EntityConflict, ...]:
        """The unresolved conflicts."""
        return self._preview.conflicts

    def __len__(self) -> int:
        return len(self.open)

    def __repr__(self) -> str:
        progress = f"{len(self.open)} of {len(self.conflicts)} left"
        return f"<MergeSession of {self._source!r} into {self._target!r}: {progress}>"

    def resolve(self, which: int | EntityConflict, choice: ConflictAnswer) -> "RemoteMergeSession":
        """Resolve one conflict with `ours`, `theirs`, or a dict of property values; see `MergeSession.resolve`."""
        try:
            index = self._conflicts.index(which) if isinstance(which, EntityConflict) else which
            conflict = self._conflicts[index]
        except (IndexError, ValueError):
            count = len(self._conflicts)
            message = f"unknown conflict {which}; the merge has {count} conflict{'s'[: count != 1]}"
            raise InputError(message, reason="unknown conflict") from None
        self._decide([conflict], choice)
        return self

    def resolve_all(
        self, choice: ConflictAnswer, *, type: str | None = None, kind: str | None = None
    ) -> "RemoteMergeSession":
        """Resolve all open conflicts, or only those of one type or kind, starting with schema conflicts."""

        def select_open() -> list[EntityConflict]:
            return [
                conflict
                for conflict in self.open
                if type in (None, conflict.type_name) and kind in (None, conflict.kind)
            ]

        selected = select_open()
        while any(map(is_schema_conflict, selected)):  # a decision may reveal the next conflict
            self._decide(selected, choice)
            selected = select_open()
        if selected:
            self._decide(selected, choice)
        return self

    def preview(self) -> RemoteMergeResult:
        """Return a preview of the merge and the remaining conflicts."""
        return self._preview

    def commit(self, *, message: str | None = None, actor: str | None = None) -> RemoteMergeResult:
        """Publish the merge.

        Raises `MergeConflict` if a conflict remains, and `ReadSetConflict` if the target has changed.
        """
        self._handle.reject_actor(actor)
        if self.open:
            raise MergeConflict(conflicts=self.open)
        body = self._body(self._decisions) | {"message": self._default_message() if message is None else message}
        try:
            return run_merge(self._handle, ("branches", "merge"), body, self._preview.target)
        except PreconditionFailed as error:
            raise self._changed_target(error.actual) from None

    def _default_message(self) -> str | None:
        """Return a message that contains the source's branch name, because the request contains only a commit id."""
        if self._message is not None or self._source not in self._handle.exchange.get("branches")["branches"]:
            return self._message
        return f"Merge branch '{self._source}' into {self._target}"

    def to_arrow(self) -> "pa.Table":
        """Return all conflicts as an Arrow table, to view in a notebook or save to a file."""
        import pyarrow as pa

        arrow_table: pa.Table = conflict_table(self.conflicts, pa)
        return arrow_table

    def _repr_html_(self) -> str:
        return conflict_card(self.open, repr(self)[1:-1])

    def _decide(self, conflicts: list[EntityConflict], choice: ConflictAnswer) -> None:
        """Add a decision, and preview the merge with it. A rejected decision has no effect."""
        has_schema_conflict = any(map(is_schema_conflict, conflicts))
        kept = {
            conflict: decision
            for conflict, decision in self._decisions.items()
            if not has_schema_conflict or is_schema_conflict(conflict)
        }
        decisions = kept | {conflict: write_decision(self._handle, conflict, choice) for conflict in conflicts}
        preview = self._run_preview(decisions)
        self._decisions, self._preview = decisions, preview
        if has_schema_conflict:
            self._conflicts = list(filter(is_schema_conflict, self._conflicts))
        self._add_conflicts()

    def _add_conflicts(self) -> None:
        self._conflicts += [conflict for conflict in self._preview.conflicts if conflict not in self._conflicts]

    def _run_preview(self, decisions: Mapping[EntityConflict, Mapping[str, Any]]) -> RemoteMergeResult:
        result = run_merge(self._handle, ("branches", "merge", "preview"), self._body(decisions), None, is_read=True)
        captured = getattr(self, "_preview", result)
        if result.target != captured.target:
            raise self._changed_target(result.target)
        return replace(result, conflicts=tuple(map(self._name_source, result.conflicts)))

    def _name_source(self, conflict: EntityConflict) -> EntityConflict:
        """Return a conflict whose message contains the caller's name for the source instead of its commit id."""
        return replace(conflict, message=conflict.message.replace(self._source_id, self._source))

    def _body(self, decisions: Mapping[EntityConflict, Mapping[str, Any]]) -> dict[str, Any]:
        resolutions = list(decisions.values())
        return {"source": self._source_id, "target": self._target, "resolutions": resolutions, **self._options}

    def _changed_target(self, commit_id: str | None) -> ReadSetConflict:
        member = f"branch '{self._target}'"
        return ReadSetConflict(member=member, expected=self._preview.target, actual=commit_id)
