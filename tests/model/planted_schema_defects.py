"""Planted defects of merges whose schemas differ, and of patches: what each does wrong, and a program that shows it.

Like `planted_defects`, whose list contains these; they are apart only because they are many.
"""

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.history.matched_types import TypeTransition
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.merge import merge_properties
from omnigraph.merging import merged_schema, planner, recursive_base, replay, schema_alignment
from omnigraph.merging.fitting_rows import FittingRows, convert_fitting_rows
from omnigraph.merging.recursive_schema import _BaseSchemaMerge
from omnigraph.merging.schema_alignment import AlignedTables
from omnigraph.merging.table_merge import TableSides
from omnigraph.rules.check_delta import check_delta
from omnigraph.storage import version_difference
from omnigraph.values.table_key import TableKey
from tests.model.random_programs import Program

Patch = pytest.MonkeyPatch


def widened_base_lost(patch: Patch) -> None:
    """Values of the base are null where a branch widened their type, so that every value counts as edited."""

    def convert(transition: TypeTransition, rows: pa.Table) -> FittingRows:
        found = convert_fitting_rows(transition, rows)
        table = found.rows
        for name, old_name in transition.old_property_names.items():
            if rows.schema.field(old_name).type != table.schema.field(name).type:
                at = table.schema.get_field_index(name)
                table = table.set_column(
                    at, table.schema.field(at), pa.nulls(table.num_rows, table.schema.field(at).type)
                )
        return FittingRows(table, found.misfit_ids)

    patch.setattr(schema_alignment, "convert_fitting_rows", convert)


def misfits_ignored(patch: Patch) -> None:
    """Nobody looks whether the values of both sides fit the type that a decision chose."""
    patch.setattr(merged_schema, "find_misfits", lambda *_: ())


def unfit_base_is_absent(patch: Patch) -> None:
    """An entity of the base that the merged schema cannot tell counts as added by both sides."""

    def convert(transition: TypeTransition, rows: pa.Table) -> FittingRows:
        return FittingRows(convert_fitting_rows(transition, rows).rows, pa.array([], pa.string()))

    patch.setattr(recursive_base, "convert_fitting_rows", convert)


def new_rules_not_checked(patch: Patch) -> None:
    """Rows that the target changed are not checked against rules that the source added."""
    patch.setattr(AlignedTables, "newly_checked_tables", lambda _: [])


def new_edge_rules_not_checked(patch: Patch) -> None:
    """The same, only for edges."""
    checked = AlignedTables.newly_checked_tables
    patch.setattr(AlignedTables, "newly_checked_tables", lambda self: [key for key in checked(self) if not key.is_edge])


def dropped_rules_remain(patch: Patch) -> None:
    """A merge is checked against the rules of the target, one of which the source dropped."""

    def catalog(self: AlignedTables) -> Catalog:
        return self.merge_inputs.target_snapshot.schema.ir.catalog

    patch.setattr(AlignedTables, "catalog", property(catalog))


def required_not_checked(patch: Patch) -> None:
    """Nobody looks whether required values are there."""

    def check(*args: Any, **options: Any) -> Any:
        delta, found = check_delta(*args, **options)
        return delta, [one for one in found if one.rule != "required"]

    patch.setattr(planner, "check_delta", check)


def enum_of_one_side(patch: Patch) -> None:
    """Of the values that both branches added to an enum, only those of the target are allowed."""
    patch.setattr(merge_properties, "merge_sets", lambda _base, ours, _theirs: ours)


def new_type_taken_whole(patch: Patch) -> None:
    """Of a keyed type that both branches added, all edges are taken from the source, whatever the target has."""
    compared = AlignedTables.compare_sides

    def compare(self: AlignedTables, table_key: TableKey, granularity: Any) -> TableSides:
        found = compared(self, table_key, granularity)
        if self.merged.base_columns(table_key):
            return found
        return TableSides(table_key, schema_alignment._no_changes(self.merged.ir, table_key), found.theirs, granularity)

    patch.setattr(AlignedTables, "compare_sides", compare)


def patched_columns_hidden(patch: Patch) -> None:
    """Versions of a table are taken for equal if a patch only added files with other columns."""

    def fragments(table: Any) -> dict[tuple[str, str], Any]:
        every = [(one.metadata, one) for one in table.dataset.get_fragments()]
        return {
            (
                repr((data.files[0].path, data.physical_rows)),
                repr(data.deletion_file and data.deletion_file.asdict()),
            ): one
            for data, one in every
        }

    patch.setattr(version_difference, "_fragments_by_content", fragments)


def first_base_wins(patch: Patch) -> None:
    """If the schemas of two bases contradict each other, the first one is the base."""
    patch.setattr(_BaseSchemaMerge, "_decide", lambda *_: "ours")


def origin_of_bases(patch: Patch) -> None:
    """If the schemas of two bases contradict each other, their own base is taken, even if a branch went back to it."""
    patch.setattr(_BaseSchemaMerge, "_decide", lambda *_: "base")


def lost_additions(patch: Patch) -> None:
    """Values vanish without a word if a decision about a name removes their property."""
    patch.setattr(merged_schema, "find_dropped_additions", lambda *_: ())


def schema_merges_reverted(patch: Patch) -> None:
    """A merge that changed only the schema counts as reverted already."""
    patch.setattr(replay, "_changes_only_schema", lambda *_: False)


_B = ("node:Person", "b")


def _sized(branch: str, value: Any, entity: tuple[str, str] = _B) -> tuple[Any, ...]:
    return "patch", branch, ((entity, (("size", value),)),)


def _set(branch: str | None, slot: str, value: Any) -> tuple[Any, ...]:
    return "schema", branch, ("set", slot, value)


def _person(own: str, **values: Any) -> Any:
    return (("node:Person", own), tuple({"name": own, "age": 1, "nick": None, "score": None, **values}.items()))


_FORK = ("fork", "main", "p", None)
_GRADE = (("src", "a"), ("dst", "s"), ("kind", "x"))
_TWO_TYPES = (_FORK, _set("main", "size.type", "F64"), _set("p", "size.type", "I64"))
PROGRAMS: dict[str, tuple[Any, Program]] = {
    "widened_base_lost": (
        widened_base_lost,
        (_FORK, _set("main", "size.type", "F64"), _sized("p", 8), ("merge", "p", "main", "none")),
    ),
    "misfits_ignored": (misfits_ignored, (*_TWO_TYPES, _sized("main", 1.5), ("merge", "p", "main", "theirs"))),
    "unfit_base_is_absent": (
        unfit_base_is_absent,
        (
            ("fork", "main", "q", None),
            _set("q", "size.type", "I64"),
            _set("main", "size.type", "F64"),
            _sized("main", 1.5),
            _FORK,
            _sized("p", 2.0),
            ("merge", "q", "p", "theirs"),
            _sized("main", 3.0),
            ("merge", "p", "main", "none"),
        ),
    ),
    "new_rules_not_checked": (
        new_rules_not_checked,
        (_FORK, _set("p", "size.range", (0, 9)), _sized("main", 30), ("merge", "p", "main", "none")),
    ),
    "new_edge_rules_not_checked": (
        new_edge_rules_not_checked,
        (
            _FORK,
            _set("p", "knows.card", (0, 1)),
            ("put", "main", ((("edge:Knows", "k2"), (("src", "a"), ("dst", "c"), ("since", 1))),)),
            ("merge", "p", "main", "none"),
        ),
    ),
    "dropped_rules_remain": (
        dropped_rules_remain,
        (
            _set(None, "size.range", (0, 9)),
            _FORK,
            _set("p", "size.range", None),
            _sized("p", 30),
            ("put", "main", (_person("d"),)),
            ("merge", "p", "main", "none"),
        ),
    ),
    "required_not_checked": (
        required_not_checked,
        (
            _FORK,
            *(_sized("p", 3, ("node:Person", own)) for own in "ac"),
            _set("p", "size.required", True),
            ("put", "main", (_person("d"),)),
            ("merge", "p", "main", "none"),
        ),
    ),
    "enum_of_one_side": (
        enum_of_one_side,
        (
            _FORK,
            ("schema", "main", ("add", "level.values", "high")),
            ("schema", "p", ("add", "level.values", "top")),
            ("patch", "p", ((_B, (("level", "top"),)),)),
            ("merge", "p", "main", "none"),
        ),
    ),
    "new_type_taken_whole": (
        new_type_taken_whole,
        (
            _FORK,
            _set(None, "grades", True),
            _set("main", "since.type", "I64"),
            ("put", "main", ((("edge:Grades", '["a","x"]'), (*_GRADE, ("mark", 1))),)),
            ("put", "p", ((("edge:Grades", '["a","x"]'), (*_GRADE, ("mark", 2))),)),
            ("merge", "p", "main", "none"),
        ),
    ),
    "patched_columns_hidden": (
        patched_columns_hidden,
        (
            _FORK,
            ("patch", "p", tuple((("node:Person", own), (("score", 4.5),)) for own in "abc")),
            ("put", "main", (_person("d"),)),
            ("merge", "p", "main", "none"),
        ),
    ),
    "first_base_wins": (
        first_base_wins,
        (
            *_TWO_TYPES,
            ("fork", "main", "q", None),
            ("merge", "p", "main", "ours"),
            ("merge", "q", "p", "ours"),
            ("merge", "p", "main", "none"),
        ),
    ),
    "origin_of_bases": (
        origin_of_bases,
        (
            _FORK,
            _set("main", "size.range", (0, 50)),
            _set("p", "size.range", (2, 50)),
            ("fork", "main", "q", None),
            ("merge", "p", "main", "ours"),
            ("merge", "q", "p", "ours"),
            _set("main", "size.range", None),
            ("merge", "p", "main", "none"),
        ),
    ),
    "lost_additions": (
        lost_additions,
        (
            ("schema", None, "add"),
            _FORK,
            ("put", "p", (_person("a", more="w"),)),
            ("schema", "main", "drop"),
            ("schema", "main", "add"),
            ("put", "main", (_person("b", more="v"),)),
            ("merge", "p", "main", "theirs"),
        ),
    ),
    "schema_merges_reverted": (
        schema_merges_reverted,
        (_FORK, ("schema", "p", "add"), ("merge", "p", "main", "none"), ("replay", "revert", 3, "main", "none")),
    ),
}
