"""Merge one branch into another: capture, plan, resolve conflicts, publish.

Owns the order of these steps. A merge that was already done is detected before anything is read; a
fast-forward adopts the tables of the source, and reads no rows at all.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.errors import (
    EntityConflict,
    HistoryReclaimed,
    InputError,
    InternalError,
    MergeConflict,
    PreconditionFailed,
    ReadSetConflict,
)
from omnigraph.history.bases import Frame, Outcome, capture
from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.plan import Signature
from omnigraph.history.schemas import BRING_OVER, schemas_agree, schemas_differ
from omnigraph.rules.delta import Delta

from .edges import Parallel
from .land import land
from .lost import LostEdge
from .strategy import Strategy, checked, settle, spelled
from .work import Decisions, Judged, Options, Work

ATTEMPTS = 4  # maintenance of the target must not make a merge fail


@dataclass(frozen=True)
class Merged:
    """What a merge did or, in a dry run, would do."""

    frame: Frame
    outcome: Outcome
    commit: Commit | None = None
    judged: Judged | None = None
    resolved: int = 0

    @property
    def conflicts(self) -> tuple[EntityConflict, ...]:
        """Unresolved conflicts."""
        return () if self.judged is None else tuple(one.conflict for one in self.judged.found)

    @property
    def lost(self) -> tuple[LostEdge, ...]:
        """Edges deleted with nodes that the merge keeps."""
        return () if self.judged is None else self.judged.lost

    @property
    def parallel(self) -> tuple[Parallel, ...]:
        """Edges that both sides added, with the same endpoints and properties."""
        return () if self.judged is None else self.judged.parallel


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks of a merge."""

    options: Options = field(default_factory=Options)
    strategy: Strategy = None
    if_commit: str | None = None
    dry_run: bool = False
    signature: Signature = field(default_factory=Signature)


def open_merge(source: Line, target: Line, if_commit: str | None = None) -> Frame:
    """Capture both branches; raise if they cannot be merged at all."""
    if source.ulid == target.ulid:
        hint = "name two different branches as source and as target (`into`)"
        message = f"'{source.name}' cannot be merged into itself"
        raise InputError(message, reason="one branch", hint=hint)
    frame = capture(source, target)
    if if_commit is not None and frame.ours.commit_id != if_commit:
        actual = frame.ours.commit_id
        raise PreconditionFailed(branch=target.name, expected=if_commit, actual=actual)
    if frame.outcome == "already_up_to_date":
        return frame
    if not schemas_agree(frame.theirs.schema, frame.ours.schema):
        alike = frame.theirs.schema.ir.catalog == frame.ours.schema.ir.catalog
        raise schemas_differ(source.name, target.name, alike=alike)
    return frame


def merge(source: Line, target: Line, asked: Request) -> Merged:
    """Merge a branch into another.

    Raises `MergeConflict` with every unresolved conflict, unless it is a dry run.
    """
    for attempt in range(ATTEMPTS):
        frame = open_merge(source, target, asked.if_commit)
        checked(asked.strategy, _type_names(frame))
        try:
            return merge_frame(frame, asked)
        except ReadSetConflict:
            if attempt + 1 == ATTEMPTS or not only_tended(frame):
                raise
        except HistoryReclaimed as error:  # of the merge base, or of one of the branches
            error.hint = BRING_OVER.format(source=source.name, target=target.name)
            raise
    raise InternalError("unreachable")


def only_tended(frame: Frame) -> bool:
    """Whether the target has moved without any change of its content."""
    now, then = frame.target.refresh().state, frame.ours
    contents = {key: one.content_id for key, one in now.tables.items()}
    moved = now.head.commit_id != then.commit_id and not now.head.closed
    same = contents == {key: one.content_id for key, one in then.tables.items()}
    return moved and same and now.schema == then.schema_row


def merge_frame(
    frame: Frame,
    asked: Request,
    work: Work | None = None,
    decisions: Decisions | None = None,
    resolved: int = 0,
) -> Merged:
    """Merge what was captured, reusing a planner and earlier decisions."""
    if frame.outcome == "already_up_to_date":
        return Merged(frame, frame.outcome)
    work = work or Work(frame, asked.options)
    if frame.outcome == "fast_forward":
        # The result is the source, which was validated when it was written.
        adopted = {key: work.entry_of(key) for key in work.touched() if not work.unmoved(key)}
        judged = Judged((), Delta(), adopted)
    else:
        judged, count = settle(work, asked.strategy, decisions)
        resolved += count
    merged = Merged(frame, frame.outcome, judged=judged, resolved=resolved)
    if judged.found:
        if asked.dry_run:
            return replace(merged, outcome="conflict")
        raise MergeConflict(conflicts=merged.conflicts)
    if asked.dry_run:
        return merged
    told = details(asked, resolved=resolved, lost=len(judged.lost))
    commit = land(frame, judged.delta, judged.adopted, asked.signature, told)
    return replace(merged, commit=commit)


def details(asked: Request, *, resolved: int, lost: int = 0) -> dict[str, Any]:
    """Return how a merge was done, for its commit; defaults are omitted."""
    told: dict[str, Any] = {}
    if asked.options.granularity != "entity":
        told["granularity"] = asked.options.granularity
    if asked.options.collapse_edges:
        told["collapse_edges"] = True
    if asked.strategy is not None:
        told["strategy"] = spelled(asked.strategy)
    if resolved:
        told["resolved"] = resolved
    if lost:
        told["lost_edges"] = lost
    return told


def _type_names(frame: Frame) -> list[str]:
    catalog = frame.ours.schema.ir.catalog
    return [*(one.name for one in catalog.nodes), *(one.name for one in catalog.edges)]
