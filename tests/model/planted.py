"""Defects of a merge, planted on purpose: what each does wrong, and a program that shows it.

Every one is a way in which merges of other systems went wrong. The program runs as it is in the
quick suite; with the defect in place it must fail, which the full run checks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.history import bases
from omnigraph.history.commit import Commit
from omnigraph.history.entities import TableChanges
from omnigraph.history.log import merge_bases
from omnigraph.merging import merge, work
from omnigraph.merging.sides import Sides, ids_of
from omnigraph.rules import cardinality
from omnigraph.rules.check import check as check_delta
from omnigraph.rules.delta import NO_IDS, Delta, TableDelta
from tests.model.programs import Program

Patch = pytest.MonkeyPatch
Ancestors = Mapping[str, Commit]


@dataclass(frozen=True)
class Defect:
    """A planted defect, and a small program that fails with it."""

    plant: Callable[[Patch], None]
    program: Program = ()


def wrong_base(patch: Patch) -> None:
    """An older common ancestor than the best one is the base."""

    def older(ours: Ancestors, theirs: Ancestors) -> tuple[str, ...]:
        return (min(ours.keys() & theirs.keys()),)

    patch.setattr(bases, "merge_bases", older)


def one_of_several_bases(patch: Patch) -> None:
    """Of the bases of a criss-cross history only the first is looked at."""
    patch.setattr(bases, "merge_bases", lambda ours, theirs: merge_bases(ours, theirs)[:1])


def ordered_by_version(patch: Patch) -> None:
    """The common ancestor of the highest version number is the base."""

    def highest(ours: Ancestors, theirs: Ancestors) -> tuple[str, ...]:
        shared = ours.keys() & theirs.keys()
        return (max(shared, key=lambda one: (ours[one].manifest_version, one)),)

    patch.setattr(bases, "merge_bases", highest)


def swapped_sides(patch: Patch) -> None:
    """What the target changed is taken for what the source changed."""
    patch.setattr(work, "Sides", lambda key, ours, theirs, how: Sides(key, theirs, ours, how))


def resurrected_edges(patch: Patch) -> None:
    """What the target deleted, and the source never touched, comes back."""

    def sides(key: str, ours: TableChanges, theirs: TableChanges, how: Any) -> Sides:
        back = pc.invert(pc.is_in(ours.deleted["id"], value_set=ids_of(theirs)))
        again = pa.concat_tables([theirs.inserted, ours.deleted.filter(back)]).sort_by("id")
        kept = ours.deleted.filter(pc.invert(back))
        return Sides(key, replace(ours, deleted=kept), replace(theirs, inserted=again), how)

    patch.setattr(work, "Sides", sides)


def no_orphan_check(patch: Patch) -> None:
    """Nobody looks whether edges still have their nodes."""
    _judging(patch, lambda found: [one for one in found if one.rule != "endpoint"])


def no_unique_check(patch: Patch) -> None:
    """Nobody looks whether two entities have one unique value."""
    _judging(patch, lambda found: [one for one in found if one.rule != "@unique"])


def stale_cardinality(patch: Patch) -> None:
    """Edges that the target has by now are not counted."""

    def check(*args: Any, **options: Any) -> Any:
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(cardinality, "_kept", lambda *_: NO_IDS)
            return check_delta(*args, **options)

    patch.setattr(work, "check", check)


def carried_row_ids(patch: Patch) -> None:
    """Updated rows get other row ids than those that the target gave them."""

    def shifted(one: TableDelta) -> TableDelta:
        return replace(one, row_ids=one.row_ids + (one.row_ids >= 0))

    def check(*args: Any, **options: Any) -> Any:
        delta, found = check_delta(*args, **options)
        return Delta({key: shifted(one) for key, one in delta.tables.items()}), found

    patch.setattr(work, "check", check)


def no_foreign_commits(patch: Patch) -> None:
    """The commits of the source are not brought along."""
    patch.setattr(merge, "capture", lambda *lines: replace(bases.capture(*lines), foreign=()))


def merged_again(patch: Patch) -> None:
    """A merge that was done is done once more."""

    def capture(*lines: Any) -> Any:
        frame = bases.capture(*lines)
        done = frame.outcome == "already_up_to_date"
        return replace(frame, outcome="fast_forward" if done else frame.outcome)

    patch.setattr(merge, "capture", capture)


def _judging(patch: Patch, keep: Callable[[list[Any]], list[Any]]) -> None:

    def check(*args: Any, **options: Any) -> Any:
        delta, found = check_delta(*args, **options)
        return delta, keep(found)

    patch.setattr(work, "check", check)


DEFECTS: dict[str, Defect] = {
    one.__name__: Defect(one)
    for one in (
        wrong_base,
        one_of_several_bases,
        ordered_by_version,
        swapped_sides,
        resurrected_edges,
        no_orphan_check,
        no_unique_check,
        stale_cardinality,
        carried_row_ids,
        no_foreign_commits,
        merged_again,
    )
}
