"""The inputs of a merge: both sides as captured, their best common ancestors, and the outcome.

Owns the capture. Ancestry is decided over the whole commit graph, never by version numbers.
Changes made to a branch after the capture do not affect what is merged.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import InputError

from .commit import Commit
from .diff import snapshot_of
from .line import Line
from .log import in_order, merge_bases
from .manifest import Opened
from .snapshot import Snapshot, of_state

Outcome = Literal["already_up_to_date", "fast_forward", "merged", "conflict"]


@dataclass(frozen=True, slots=True)
class Frame:
    """Two captured sides: `source_snapshot` is merged into `target_snapshot`.

    `base_snapshots` are the best common ancestors, ordered by commit id; `incoming_commits` are
    reachable only from the source, oldest first.
    """

    source: Line | None
    target: Line
    opened: Opened
    ours: Snapshot
    theirs: Snapshot
    bases: tuple[Snapshot, ...]
    outcome: Outcome
    foreign: tuple[Commit, ...] = ()

    @property
    def base(self) -> Snapshot:
        """Return the common ancestor, the first if there are several."""
        return self.bases[0]


def capture(source: Line, target: Line) -> Frame:
    """Capture both branches as they are now, and how they are related."""
    theirs = of_state(source.store, source, source.refresh())
    return _related(source, target, theirs)


def recapture(frame: Frame) -> Frame:
    """Capture the target again at its newest state; what is merged into it stays the same."""
    return _related(frame.source, frame.target, frame.theirs)


def _related(source: Line | None, target: Line, theirs: Snapshot) -> Frame:
    opened = target.refresh()
    ours = of_state(target.store, target, opened)
    found, only = best_bases(ours, theirs)
    if not found:
        raise InputError(
            f"branches '{theirs.branch}' and '{target.name}' have no common history",
            reason="no common ancestor",
        )
    outcome: Outcome = "merged"
    if found == (theirs.commit_id,):
        outcome = "already_up_to_date"
    elif found == (ours.commit_id,):
        outcome = "fast_forward"
    bases = tuple(snapshot_of(ours, ours.log, one) for one in found)
    foreign = tuple(reversed(in_order(only)))
    return Frame(source, target, opened, ours, theirs, bases, outcome, foreign)


def common_base(one: Snapshot, other: Snapshot) -> Snapshot:
    """Return the best common ancestor of two snapshots, the first if there are several."""
    found, _ = best_bases(one, other)
    if not found:
        raise InputError("the two snapshots have no common history", reason="no common ancestor")
    return snapshot_of(one, one.log, found[0])


def best_bases(ours: Snapshot, theirs: Snapshot) -> tuple[tuple[str, ...], list[Commit]]:
    """Return the ids of the best common ancestors, and the commits that only the source reaches.

    Both histories are walked side by side until they meet. Below a common commit nothing is read
    beyond the point that a walk had reached by then, so the cost is that of what is new on both
    sides. The list of commits may therefore contain a few that the target reaches, too.
    """
    marks = _painted(ours, theirs)
    found = sorted(one for one, mark in marks.items() if mark == _BOTH)
    if len(found) > 1:  # one may be an ancestor of another along a path that was not walked
        mine, other = (each.log.ancestors(each.commit_id) for each in (ours, theirs))
        found = list(merge_bases(mine, other))
    only = [theirs.log.get(one) for one, mark in marks.items() if mark == _THEIRS]
    return tuple(found), only


_OURS, _THEIRS, _BELOW = 1, 2, 4
_BOTH = _OURS | _THEIRS


def _painted(ours: Snapshot, theirs: Snapshot) -> dict[str, int]:
    """Return which sides reach each commit, and whether it lies below one that both reach."""
    marks = {ours.commit_id: _OURS}
    marks[theirs.commit_id] = marks.get(theirs.commit_id, 0) | _THEIRS
    waiting, queued = deque(marks), set(marks)
    above = len(queued)  # queued commits that do not lie below a common one
    while above:
        at = waiting.popleft()
        queued.discard(at)
        mark = marks[at]
        above -= not mark & _BELOW
        log = ours.log if mark & _OURS else theirs.log
        paint = mark | _BELOW if mark & _BOTH == _BOTH else mark
        for parent in log.get(at).parents:
            was = marks.get(parent, 0)
            if was | paint == was:
                continue
            marks[parent] = was | paint
            if parent in queued:
                above -= not was & _BELOW
            else:
                waiting.append(parent)
                queued.add(parent)
            above += not marks[parent] & _BELOW
    return marks
