"""What a merge stands on: both sides as they are now, their best common ancestors, the outcome.

Owns the capture. Ancestry is decided over the whole graph of commits, never by version numbers;
what happens to a branch after the capture does not change what is merged.
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
    """Two captured sides. `ours` is the target, `theirs` what is merged into it.

    `bases` are the best common ancestors, by id; `foreign` are commits that only `theirs` stands
    on, oldest first.
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
        """The common ancestor, the first of several."""
        return self.bases[0]


def capture(source: Line, target: Line) -> Frame:
    """Both branches as they are now, and how they are related."""
    theirs = of_state(source.store, source, source.refresh())
    return _related(source, target, theirs)


def recapture(frame: Frame) -> Frame:
    """The same on the newest state of the target; what is merged stays what it was."""
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
    """The best common ancestor of two snapshots, the first of several."""
    found, _ = best_bases(one, other)
    if not found:
        raise InputError("the two states have no common history", reason="no common ancestor")
    return snapshot_of(one, one.log, found[0])


def best_bases(ours: Snapshot, theirs: Snapshot) -> tuple[tuple[str, ...], list[Commit]]:
    """The best common ancestors, by id, and what only `theirs` stands on (or a little more).

    Both pasts are walked side by side until they meet: what lies below a common commit is looked
    at only as far as a walk had come by then. So the cost is that of what is new on both sides.
    """
    marks = _painted(ours, theirs)
    found = sorted(one for one, mark in marks.items() if mark == _BOTH)
    if len(found) > 1:  # one of them may stand on another by a way that was not walked
        mine, other = (each.log.ancestors(each.commit_id) for each in (ours, theirs))
        found = list(merge_bases(mine, other))
    only = [theirs.log.get(one) for one, mark in marks.items() if mark == _THEIRS]
    return tuple(found), only


_OURS, _THEIRS, _BELOW = 1, 2, 4
_BOTH = _OURS | _THEIRS


def _painted(ours: Snapshot, theirs: Snapshot) -> dict[str, int]:
    """By which side each commit is reached, and whether it lies below one that both reach."""
    marks = {ours.commit_id: _OURS}
    marks[theirs.commit_id] = marks.get(theirs.commit_id, 0) | _THEIRS
    waiting, queued = deque(marks), set(marks)
    above = len(queued)  # of those waiting, how many do not lie below a common one
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
