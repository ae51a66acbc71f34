"""Planted merge defects: what each does wrong, and a program that shows it.

Every one is a way in which merges of other systems went wrong. The program runs as it is in the
quick suite; with the defect in place it must fail, which the full run checks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.history import diff, entity_history, merge_inputs
from omnigraph.history.commit import Commit
from omnigraph.history.entities import TableChanges
from omnigraph.history.matched_types import TypeTransition
from omnigraph.history.merge_bases import find_merge_bases
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest import assign_ids
from omnigraph.lang.schema.ir import ordered_key_columns
from omnigraph.maintenance.retention import mark_live
from omnigraph.merging import merge, merged_schema, parallel_edges, planner, recursive_base, schema_alignment, strategy
from omnigraph.merging.conflicts import DetectedConflict
from omnigraph.merging.discarded_changes import find_discarded_changes
from omnigraph.merging.table_merge import TableSides, changed_ids
from omnigraph.rules import cardinality
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import NO_IDS, Delta, TableDelta
from omnigraph.values.table_key import TableKey
from tests.model.planted_schema_defects import PROGRAMS
from tests.model.random_programs import Program

Patch = pytest.MonkeyPatch
Ancestors = Mapping[str, Commit]
Ids = tuple[str, ...]


@dataclass(frozen=True)
class Defect:
    """A planted defect, and a small program that fails with it."""

    plant: Callable[[Patch], None]
    program: Program


def wrong_base(patch: Patch) -> None:
    """An older common ancestor than the best one is the base."""
    _choosing(patch, lambda _, shared: (min(shared),))


def one_of_several_bases(patch: Patch) -> None:
    """Of the bases of a criss-cross history only the first is looked at."""
    _choosing(patch, lambda found, _: found[:1])


def ordered_by_version(patch: Patch) -> None:
    """The common ancestor of the highest version number is the base."""

    def highest(_: Ids, shared: Ancestors) -> Ids:
        return (max(shared, key=lambda one: (shared[one].manifest_version, one)),)

    _choosing(patch, highest)


def _choosing(patch: Patch, choose: Callable[[Ids, Ancestors], Ids]) -> None:
    def chosen(ours: Snapshot, theirs: Snapshot) -> tuple[Ids, list[Commit]]:
        found, only = find_merge_bases(ours, theirs)
        mine, other = (one.log.ancestors(one.commit_id) for one in (ours, theirs))
        return choose(found, {one: mine[one] for one in mine.keys() & other.keys()}), only

    patch.setattr(merge_inputs, "find_merge_bases", chosen)


def swapped_sides(patch: Patch) -> None:
    """What the target changed is taken for what the source changed."""
    patch.setattr(planner, "TableSides", lambda key, ours, theirs, how: TableSides(key, theirs, ours, how))


def resurrected_edges(patch: Patch) -> None:
    """What the target deleted, and the source never touched, comes back."""

    def sides(key: TableKey, ours: TableChanges, theirs: TableChanges, how: Any) -> TableSides:
        back = pc.invert(pc.is_in(ours.deleted["id"], value_set=changed_ids(theirs)))
        again = pa.concat_tables([theirs.inserted, ours.deleted.filter(back)]).sort_by("id")
        kept = ours.deleted.filter(pc.invert(back))
        return TableSides(key, replace(ours, deleted=kept), replace(theirs, inserted=again), how)

    patch.setattr(planner, "TableSides", sides)


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
            inside.setattr(cardinality, "_read_retained_sources", lambda *_: NO_IDS)
            return check_delta(*args, **options)

    patch.setattr(planner, "check_delta", check)


def carried_row_ids(patch: Patch) -> None:
    """Updated rows get other row ids than those that the target gave them."""

    def shifted(one: TableDelta) -> TableDelta:
        return replace(one, row_ids=one.row_ids + (one.row_ids >= 0))

    def check(*args: Any, **options: Any) -> Any:
        delta, found = check_delta(*args, **options)
        return Delta({key: shifted(one) for key, one in delta.tables.items()}), found

    patch.setattr(planner, "check_delta", check)


def no_foreign_commits(patch: Patch) -> None:
    """The commits of the source are not brought along."""
    patch.setattr(
        merge,
        "capture_merge_inputs",
        lambda *lines: replace(merge_inputs.capture_merge_inputs(*lines), incoming_commits=()),
    )


def merged_again(patch: Patch) -> None:
    """A merge that was done is done once more."""

    def capture(*lines: Any) -> Any:
        frame = merge_inputs.capture_merge_inputs(*lines)
        done = frame.outcome == "already_up_to_date"
        return replace(frame, outcome="fast_forward" if done else frame.outcome)

    patch.setattr(merge, "capture_merge_inputs", capture)


def fills_as_edits(patch: Patch) -> None:
    """The default that a branch filled in counts as an edit of every row."""
    for module in (schema_alignment, recursive_base):
        patch.setattr(module, "align_filled_values", lambda rows, *others: rows)


def columns_by_name(patch: Patch) -> None:
    """Columns of an older schema are found by their names, not by their numbers."""

    def same_names(self: TypeTransition) -> dict[str, str]:
        names = (one.name for one in self.new_type.properties)
        return {name: name for name in names if self.old_type.property(name) is not None}

    patch.setattr(TypeTransition, "old_property_names", property(same_names))


def forgotten_edits(patch: Patch) -> None:
    """Values vanish without a word if the other branch drops their property."""
    patch.setattr(merged_schema, "find_edited_drops", lambda _: ())


def values_not_restored(patch: Patch) -> None:
    """A property that a decision brings back has only the values that were edited."""
    patch.setattr(planner, "with_target_rows", lambda delta, _: delta)


def hidden_values(patch: Patch) -> None:
    """States with the same files are taken for equal, though one of them no longer names a column."""
    for module in (diff, schema_alignment):
        patch.setattr(module, "contains_hidden_values", lambda *_: False)


def forgotten_bases(patch: Patch) -> None:
    """A cleanup takes what two branches stand on together."""
    patch.setattr(mark_live, "merge_bases_of_refs", lambda _: ())


def side_takes_all(patch: Patch) -> None:
    """A side that is chosen for one value takes the whole entity, and drops the edits of the other."""
    patch.setattr(strategy, "extend_decision", lambda _sides, _id, earlier, side, _columns: earlier or side)


def rule_takes_all(patch: Patch) -> None:
    """A side that is chosen because of a rule takes whole entities, not the values of the rule."""

    def columns_of(self: DetectedConflict, _: Any) -> tuple[str, ...]:
        return self.columns if self.conflict.kind.startswith("divergent") else ()

    patch.setattr(DetectedConflict, "columns_of", columns_of)


def unnamed_discard(patch: Patch) -> None:
    """One of the changes that a merge discards is not named."""
    patch.setattr(planner, "find_discarded_changes", lambda *given: find_discarded_changes(*given)[1:])


def blame_of_the_load(patch: Patch) -> None:
    """A value about which a merge decided is credited to whoever had it first."""
    patch.setattr(entity_history, "is_decided", lambda *_: False)


def bases_by_entity(patch: Patch) -> None:
    """Bases that changed different values of one entity count as contradicting each other."""

    def sides(key: TableKey, ours: TableChanges, theirs: TableChanges, how: Any, *more: Any) -> TableSides:
        return TableSides(key, ours, theirs, "entity" if not key else how, *more)

    patch.setattr(recursive_base, "TableSides", sides)


def id_ignores_a_member(patch: Patch) -> None:
    """The id of a keyed edge leaves out the last member of the key."""

    def fewer(ir: Any, type_name: str, kind: Any = "node") -> tuple[str, ...]:
        columns = ordered_key_columns(ir, type_name, kind)
        return columns[:-1] if kind == "edge" else columns

    patch.setattr(assign_ids, "ordered_key_columns", fewer)


def keyed_edges_as_parallel(patch: Patch) -> None:
    """Equal edges that both sides added are parallel, although a key gives them one id."""
    patch.setattr(parallel_edges, "_rows_absent_from", lambda rows, _: rows)


def keyed_edges_not_compared(patch: Patch) -> None:
    """An edge that both sides added under one key is taken from the source, whatever the target has."""

    def sides(key: TableKey, ours: TableChanges, theirs: TableChanges, how: Any) -> TableSides:
        twice = pc.is_in(ours.inserted["id"], value_set=theirs.inserted["id"].combine_chunks())
        kept = ours.inserted.filter(pc.invert(twice)) if key.is_edge else ours.inserted
        return TableSides(key, replace(ours, inserted=kept), theirs, how)

    patch.setattr(planner, "TableSides", sides)


def _judging(patch: Patch, keep: Callable[[list[Any]], list[Any]]) -> None:

    def check(*args: Any, **options: Any) -> Any:
        delta, found = check_delta(*args, **options)
        return delta, keep(found)

    patch.setattr(planner, "check_delta", check)


_ADA = (("name", "a"), ("age", 1), ("nick", "A"), ("score", 0.0))


def _ada(**values: Any) -> Any:
    """The first person, with other values."""
    return ((("node:Person", "a"), tuple({**dict(_ADA), **values}.items())),)


def _two_edits(how: str) -> Program:
    """Both branches set one value, one of them sets another, too; merged both ways."""
    return (
        ("fork", "main", "p", None),
        ("put", "p", _ada(age=5, score=2.5)),
        ("put", "main", _ada(age=6)),
        ("fork", "main", "q", None),
        ("merge", "p", "main", how),
        ("merge", "q", "p", how),
    )


def _rates(kind: str, stars: int) -> Any:
    """A keyed edge."""
    row = (("src", "a"), ("dst", "c"), ("kind", kind), ("stars", stars))
    return (("edge:Rates", f'["a","c","{kind}"]'), row)


DEFECTS: dict[str, Defect] = {
    "fills_as_edits": Defect(
        fills_as_edits,
        (
            ("fork", "main", "p", None),
            ("schema", "main", "filla"),
            ("schema", "p", "fillb"),
            ("merge", "p", "main", "ours"),
        ),
    ),
    "id_ignores_a_member": Defect(id_ignores_a_member, (("put", "main", (_rates("x", 1), _rates("y", 1))),)),
    "keyed_edges_as_parallel": Defect(
        keyed_edges_as_parallel,
        (
            ("fork", "main", "p", None),
            ("put", "main", (_rates("x", 1), _rates("y", 2))),
            ("put", "p", (_rates("x", 1),)),
            ("merge", "p", "main", "collapse"),
        ),
    ),
    "keyed_edges_not_compared": Defect(
        keyed_edges_not_compared,
        (
            ("fork", "main", "p", None),
            ("put", "main", (_rates("x", 1),)),
            ("put", "p", (_rates("x", 2),)),
            ("merge", "p", "main", "none"),
        ),
    ),
    "side_takes_all": Defect(side_takes_all, _two_edits("theirs")),
    "rule_takes_all": Defect(
        rule_takes_all,
        (
            ("fork", "main", "p", None),
            ("put", "main", ((("node:Person", "b"), (("name", "b"), ("age", 7), ("nick", "B"), ("score", None))),)),
            ("put", "p", ((("node:Person", "c"), (("name", "c"), ("age", 8), ("nick", "B"), ("score", 1.5))),)),
            ("merge", "p", "main", "theirs"),
        ),
    ),
    "unnamed_discard": Defect(unnamed_discard, _two_edits("ours")),
    "blame_of_the_load": Defect(blame_of_the_load, _two_edits("entity theirs")),
    "bases_by_entity": Defect(
        bases_by_entity,
        (
            ("fork", "main", "p", None),
            ("put", "p", _ada(age=5)),
            ("put", "main", _ada(score=2.5)),
            ("fork", "main", "q", None),
            ("merge", "p", "main", "none"),
            ("merge", "q", "p", "none"),
            ("put", "p", _ada(age=9, score=2.5)),
            ("merge", "p", "main", "none"),
        ),
    ),
    "wrong_base": Defect(
        wrong_base,
        (
            ("fork", "main", "p", None),
            ("put", "main", ((("node:Team", "t"), (("title", "y"),)),)),
            ("merge", "main", "p", "collapse"),
        ),
    ),
    "one_of_several_bases": Defect(
        one_of_several_bases,
        (
            ("fork", "main", "p", None),
            ("put", "main", ((("node:Person", "a"), (("name", "a"), ("age", 5), ("nick", "A"), ("score", 0.0))),)),
            ("fork", "main", "q", None),
            ("put", "p", ((("node:Person", "b"), (("name", "b"), ("age", 6), ("nick", None), ("score", None))),)),
            ("merge", "p", "main", "none"),
            ("merge", "q", "p", "none"),
            (
                "put",
                "main",
                (
                    (("node:Person", "a"), (("name", "a"), ("age", 7), ("nick", "A"), ("score", 0.0))),
                    (("node:Person", "b"), (("name", "b"), ("age", 8), ("nick", None), ("score", None))),
                ),
            ),
            ("merge", "p", "main", "none"),
        ),
    ),
    "ordered_by_version": Defect(
        ordered_by_version,
        (
            ("fork", "main", "s", None),
            ("put", "main", ((("edge:Leads", "l2"), (("src", "b"), ("dst", "t"))),)),
            ("merge", "main", "s", "values"),
            ("merge", "s", "main", "values"),
            ("merge", "main", "s", "values"),
        ),
    ),
    "swapped_sides": Defect(
        swapped_sides,
        (
            ("fork", "main", "r", 0),
            ("put", "r", ((("node:Team", "s"), (("title", None),)),)),
            ("merge", "r", "main", "values"),
        ),
    ),
    "resurrected_edges": Defect(
        resurrected_edges,
        (
            ("fork", "main", "s", None),
            ("cut", "main", ("node:Person", "b")),
            ("put", "s", ((("node:Person", "d"), (("name", "d"), ("age", 2), ("nick", "B"), ("score", 0.0))),)),
            ("merge", "s", "main", "collapse"),
        ),
    ),
    "no_orphan_check": Defect(
        no_orphan_check,
        (
            ("fork", "main", "s", None),
            ("put", "s", ((("edge:Knows", "k3"), (("src", "b"), ("dst", "a"), ("since", 1))),)),
            ("cut", "main", ("node:Person", "b")),
            ("merge", "main", "s", "none"),
        ),
    ),
    "no_unique_check": Defect(
        no_unique_check,
        (
            ("fork", "main", "q", None),
            ("put", "main", ((("node:Person", "c"), (("name", "c"), ("age", None), ("nick", "B"), ("score", 1.5))),)),
            ("put", "q", ((("node:Person", "d"), (("name", "d"), ("age", 3), ("nick", "B"), ("score", 0.0))),)),
            ("merge", "q", "main", "values"),
        ),
    ),
    "stale_cardinality": Defect(
        stale_cardinality,
        (
            ("fork", "main", "q", None),
            ("put", "q", ((("edge:Knows", "k1"), (("src", "a"), ("dst", "c"), ("since", 1))),)),
            (
                "put",
                "main",
                (
                    (("node:Person", "d"), (("name", "d"), ("age", 1), ("nick", None), ("score", -0.0))),
                    (("edge:Leads", "l1"), (("src", "d"), ("dst", "s"))),
                ),
            ),
            ("merge", "main", "q", "theirs"),
        ),
    ),
    "carried_row_ids": Defect(
        carried_row_ids,
        (
            ("fork", "main", "s", None),
            ("put", "s", ((("node:Person", "d"), (("name", "d"), ("age", 3), ("nick", None), ("score", 1.5))),)),
            ("fork", "s", "r", None),
            ("put", "main", ((("node:Person", "d"), (("name", "d"), ("age", None), ("nick", None), ("score", -0.0))),)),
            ("merge", "main", "r", "values"),
        ),
    ),
    "no_foreign_commits": Defect(
        no_foreign_commits,
        (
            ("fork", "main", "p", None),
            ("put", "main", ((("node:Team", "t"), (("title", "y"),)),)),
            ("merge", "main", "p", "collapse"),
        ),
    ),
    "merged_again": Defect(merged_again, (("fork", "main", "r", 0), ("merge", "r", "main", "rows"))),
    "columns_by_name": Defect(
        columns_by_name,
        (
            ("schema", None, "add"),
            ("put", "main", ((("node:Person", "a"), (*_ADA, ("more", "u"))),)),
            ("fork", "main", "p", None),
            ("schema", None, "rename"),
            ("put", "p", ((("node:Person", "a"), (*_ADA, ("other", "v"))),)),
            ("put", "main", ((("node:Person", "a"), (*_ADA, ("other", "w"))),)),
            ("merge", "p", "main", "none"),
        ),
    ),
    "forgotten_edits": Defect(
        forgotten_edits,
        (
            ("schema", None, "add"),
            ("fork", "main", "p", None),
            ("put", "p", ((("node:Person", "a"), (*_ADA, ("more", "w"))),)),
            ("schema", "main", "drop"),
            ("merge", "p", "main", "none"),
            ("merge", "p", "main", "ours"),
        ),
    ),
    "values_not_restored": Defect(
        values_not_restored,
        (
            ("schema", None, "add"),
            ("put", "main", ((("node:Person", "a"), (*_ADA, ("more", "u"))),)),
            ("fork", "main", "p", None),
            (
                *("put", "p"),
                ((("node:Person", "b"), (("name", "b"), ("age", 2), ("nick", None), ("score", None), ("more", "v"))),),
            ),
            ("schema", "main", "drop"),
            ("merge", "p", "main", "theirs"),
        ),
    ),
    "hidden_values": Defect(
        hidden_values,
        (
            ("schema", None, "add"),
            ("put", "main", ((("node:Person", "a"), (*_ADA, ("more", "u"))),)),
            ("schema", "main", "drop"),
            ("diff", 4, 3),
            ("trace", "main", ("node:Person", "a")),
        ),
    ),
    "forgotten_bases": Defect(
        forgotten_bases,
        (
            ("fork", "main", "p", None),
            ("put", "main", ((("node:Team", "t"), (("title", "y"),)),)),
            ("put", "p", ((("node:Team", "s"), (("title", "y"),)),)),
            ("cleanup", 1),
            ("merge", "p", "main", "none"),
        ),
    ),
}
DEFECTS |= {name: Defect(*planted) for name, planted in PROGRAMS.items()}
