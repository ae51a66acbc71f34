"""Run merges, reverts and cherry-picks on a server, and resolve conflicts with a function from the caller.

The server cannot call the function. The client requests a preview, calls the function for each conflict, and sends the
decisions with the merge. If the target changes in the meantime, the client starts over.
"""

from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.errors import EntityConflict, PreconditionFailed, ReadSetConflict
from omnigraph.merging.strategy import ConflictAnswer
from omnigraph.records.frozen import record

from .answers import Document
from .conflicts import write_decision
from .handle import RemoteHandle
from .merges import RemoteMergeResult, run_merge

ConflictFunction = Callable[[EntityConflict], ConflictAnswer]
_MAX_ROUNDS = 16  # a decision may reveal another conflict
_MAX_ATTEMPTS = 8


@record(eq=False)
class DecidedMerge:
    """A merge whose conflicts are resolved by a function: the function, the request paths, and the request body."""

    handle: RemoteHandle
    segments: tuple[str, ...]
    preview_segments: tuple[str, ...]
    body: Document
    decide: ConflictFunction

    def run(self, condition: str | None, *, dry_run: bool) -> RemoteMergeResult:
        """Merge with the decisions of the function, or return the preview with these decisions."""
        for _ in range(_MAX_ATTEMPTS):
            resolutions, preview = self._resolve_conflicts()
            if dry_run:
                return preview
            body = {**self.body, "resolutions": resolutions, "strategy": None}
            try:
                return run_merge(self.handle, self.segments, body, condition or preview.target)
            except PreconditionFailed:
                if condition is not None:
                    raise
        raise ReadSetConflict(member=f"branch '{self.handle.branch_name}'")

    def _resolve_conflicts(self) -> tuple[list[Any], RemoteMergeResult]:
        decisions: dict[EntityConflict, Mapping[str, Any]] = {}
        preview = self._run_preview([])
        for _ in range(_MAX_ROUNDS):
            known_count = len(decisions)
            for conflict in preview.conflicts:
                answer = None if conflict in decisions else self.decide(conflict)
                if answer is not None:
                    decisions[conflict] = write_decision(self.handle, conflict, answer)
            if len(decisions) == known_count:
                break
            preview = self._run_preview(list(decisions.values()))
        return list(decisions.values()), preview

    def _run_preview(self, resolutions: list[Any]) -> RemoteMergeResult:
        body = {**self.body, "resolutions": resolutions, "strategy": None, "dry_run": True}
        return run_merge(self.handle, self.preview_segments, body, None, is_read=True)
