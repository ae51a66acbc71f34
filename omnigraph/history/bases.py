"""What a merge stands on: both sides as they are now, their best common ancestors, the outcome.

Owns the capture. Ancestry is decided over the whole graph of commits, never by version numbers;
what happens to a branch after the capture does not change what is merged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import InputError

from .commit import Commit
from .diff import snapshot_of
from .line import Line
from .log import Log, in_order, merge_bases
from .manifest import Opened
from .snapshot import Snapshot, of_state

Outcome = Literal["already_up_to_date", "fast_forward", "merged", "conflict"]


@dataclass(frozen=True, slots=True)
class Frame:
    """Two captured sides. `ours` is the target, `theirs` what is merged into it.

    `bases` are the best common ancestors, by id; `ancestry` all commits that `ours` stands on.
    `foreign` are commits that only `theirs` stands on, oldest first.
    """

    source: Line | None
    target: Line
    opened: Opened
    ours: Snapshot
    theirs: Snapshot
    bases: tuple[Snapshot, ...]
    outcome: Outcome
    ancestry: Mapping[str, Commit]
    foreign: tuple[Commit, ...] = ()

    @property
    def base(self) -> Snapshot:
        """The common ancestor, the first of several."""
        return self.bases[0]


def capture(source: Line, target: Line) -> Frame:
    """Both branches as they are now, and how they are related."""
    taken, opened = source.refresh(), target.refresh()
    theirs = of_state(source.store, source, taken)
    ours = of_state(target.store, target, opened)
    mine = ours.log.ancestors(ours.commit_id)
    if theirs.commit_id in mine:
        outcome: Outcome = "already_up_to_date"
        return Frame(source, target, opened, ours, theirs, (theirs,), outcome, mine)
    other = theirs.log.ancestors(theirs.commit_id)
    found = merge_bases(mine, other)
    if not found:
        raise InputError(
            f"branches '{source.name}' and '{target.name}' have no common history",
            reason="no common ancestor",
        )
    outcome = "fast_forward" if found == (ours.commit_id,) else "merged"
    bases = tuple(snapshot_of(ours, ours.log, one) for one in found)
    foreign = tuple(reversed(in_order(other[one] for one in other.keys() - mine.keys())))
    return Frame(source, target, opened, ours, theirs, bases, outcome, mine, foreign)


def common_base(one: Snapshot, other: Snapshot) -> Snapshot:
    """The best common ancestor of two snapshots, the first of several."""
    mine, theirs = (each.log.ancestors(each.commit_id) for each in (one, other))
    found = merge_bases(mine, theirs)
    if not found:
        raise InputError("the two states have no common history", reason="no common ancestor")
    log: Log = one.log
    return snapshot_of(one, log, found[0])
