"""The columns that successive schemas give to the rows of one type.

Part of the oracle for merges: it knows nothing of the product.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from tests.model.declared_slots import (
    FIRST,
    SlotConflictError,
    Slots,
    base_slots,
    converted,
    has_misfit,
    has_type,
    merged_slots,
)

Entity = tuple[str, str]  # the key of a type, as `node:Person`, and an id
Row = Mapping[str, Any]
Graph = Mapping[Entity, Row]
Identity = tuple[str, int]


@dataclass(frozen=True)
class Shape:
    """What columns one type has beside its first ones: an identity, which stays, and a name.

    An identity is the name under which a column was added, and how often that had been used before;
    branches that add the same column agree on it. `retired` are the identities of dropped columns. `fills` are the
    values that required columns have in rows from before. `declared` are the slots of everything else that a schema
    says and that differs from the first schema.
    """

    key: str = ""
    columns: tuple[tuple[Identity, str], ...] = ()
    retired: frozenset[Identity] = frozenset()
    fills: tuple[tuple[Identity, str], ...] = ()
    declared: tuple[tuple[str, Any], ...] = ()

    @property
    def slots(self) -> Slots:
        return {**FIRST, **dict(self.declared)}

    def with_slots(self, slots: Slots) -> "Shape":
        return replace(self, declared=tuple(item for item in slots.items() if FIRST[item[0]] != item[1]))

    def added(self, name: str, fill: str | None = None) -> "Shape":
        taken = self.numbers | self.retired
        identity = next((name, uses) for uses in count() if (name, uses) not in taken)
        fills = self.fills if fill is None else (*self.fills, (identity, fill))
        return replace(self, columns=(*self.columns, (identity, name)), fills=fills)

    def fill_of(self, name: str) -> str | None:
        """The value that a column has where nothing was written; null for most."""
        return next((dict(self.fills).get(identity) for identity, own in self.columns if own == name), None)

    def renamed(self, name: str, new: str) -> "Shape":
        columns = tuple((at, new if one == name else one) for at, one in self.columns)
        return replace(self, columns=columns)

    def dropped(self, name: str) -> "Shape":
        gone = {identity for identity, column_name in self.columns if column_name == name}
        columns = tuple(column for column in self.columns if column[1] != name)
        return replace(self, columns=columns, retired=self.retired | gone)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.columns)

    @property
    def numbers(self) -> frozenset[Identity]:
        return frozenset(number for number, _ in self.columns)

    def agrees(self, other: "Shape") -> bool:
        """Whether every column means the same in both."""
        same_columns = set(self.columns) == set(other.columns) and set(self.fills) == set(other.fills)
        return same_columns and set(self.declared) == set(other.declared)

    def fit(self, graph: Graph, to: "Shape") -> Graph:
        """A graph of this shape in another one: what was not there is null, or has the value of its column."""
        slots = to.slots
        return {one: self.fit_row(one, row, to) for one, row in graph.items() if has_type(one[0], slots)}

    def misfits(self, graph: Graph, to: "Shape") -> list[Entity]:
        """The entities with a value that cannot be told in another shape."""
        return [one for one, row in self.fit(graph, to).items() if has_misfit(row)]

    def fit_row(self, one: Entity, row: Row, to: "Shape") -> Row:
        if self.declared != to.declared:
            row = converted(one[0], row, self.slots, to.slots)
        if one[0] != self.key or self.columns == to.columns:
            return row
        old = dict(self.columns)
        plain = {name: value for name, value in row.items() if name not in self.names}
        fills = dict(to.fills)
        return {**plain, **{new: row.get(old[at]) if at in old else fills.get(at) for at, new in to.columns}}


class ShapeConflictError(Exception):
    """Two shapes that cannot be put together, or only in a way that this model does not know."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def merged_shape(
    base: Shape, ours: Shape, theirs: Shape, decide: Callable[[], str | None], edited: Set[Identity] = frozenset()
) -> Shape:
    """Put two shapes together; `decide` names the side that wins, or None.

    `edited` are the columns that one side dropped although the other one wrote values into them.
    """
    before, mine, other = dict(base.columns), dict(ours.columns), dict(theirs.columns)
    names = _merged_names(before, mine, other, decide, edited)
    while len(set(names.values())) < len(names):
        _settle_name(before, mine, other, names, decide)
        names = _merged_names(before, mine, other, decide, edited)
    dropped = {*dict(ours.columns), *dict(theirs.columns)} - names.keys()
    fills = {at: fill for at, fill in _merged_fills(ours, theirs, decide).items() if at in names}
    try:
        slots = merged_slots(base.slots, ours.slots, theirs.slots, decide)
    except SlotConflictError:
        raise ShapeConflictError("open") from None
    retired = ours.retired | theirs.retired | dropped
    return Shape(ours.key, tuple(names.items()), retired, tuple(fills.items())).with_slots(slots)


_Names = dict[Identity, str]


def _merged_names(
    before: _Names, mine: _Names, other: _Names, decide: Callable[[], str | None], edited: Set[Identity]
) -> _Names:
    names: _Names = {}
    for identity in dict.fromkeys([*mine, *other]):
        states = before.get(identity), mine.get(identity), other.get(identity)
        in_one = states[1] is None or states[2] is None
        decided = identity in edited and in_one
        name = _decided_name(*states[1:], decide) if decided else _merged_name(*states, decide)
        if name is not None:
            names[identity] = name
    return names


def _settle_name(before: _Names, mine: _Names, other: _Names, names: _Names, decide: Callable[[], str | None]) -> None:
    """Of two columns with one name, the side that loses takes its new name back, or the column that it added."""
    pairs = [(one, two) for one in names for two in names if one != two and names[one] == names[two]]
    ours, theirs = next(
        ((one, two) for one, two in pairs if mine.get(one) == names[one] and other.get(two) == names[two]),
        (None, None),
    )
    side = decide()
    if side is None or ours is None or theirs is None:
        raise ShapeConflictError("open" if side is None else "name taken")
    columns, identity = (other, theirs) if side == "ours" else (mine, ours)
    if before.get(identity) in (None, columns[identity]):
        del columns[identity]
    else:
        columns[identity] = before[identity]


def base_shape_of(base: Shape, first: Shape, second: Shape, sides: tuple[Shape, Shape]) -> Shape:
    """Put the shapes of two bases together; what they contest is as neither side has it, if the sides differ."""
    names: dict[Identity, str] = {}
    before, one, two = dict(base.columns), dict(first.columns), dict(second.columns)
    for identity in dict.fromkeys([*one, *two]):
        states = before.get(identity), one.get(identity), two.get(identity)
        fills = {dict(shape.fills).get(identity) for shape in (first, second) if identity in shape.numbers}
        if identity not in before and len(fills) > 1:
            continue
        name = _merged_name(*states, lambda: "theirs")
        if name != _merged_name(*states, lambda: "ours"):
            ours, theirs = (dict(side.columns).get(identity) for side in sides)
            name = states[0] if ours == theirs else next(state for state in states if state not in (ours, theirs))
        if name is not None:
            names[identity] = name
    if len(set(names.values())) < len(names):
        raise ShapeConflictError("name taken")
    retired = first.retired | second.retired | ({*one, *two} - names.keys())
    kept = {at: fill for at, fill in (*second.fills, *first.fills) if at in names}
    slots = base_slots(base.slots, first.slots, second.slots, (sides[0].slots, sides[1].slots))
    return Shape(first.key, tuple(names.items()), retired, tuple(kept.items())).with_slots(slots)


def _merged_fills(ours: Shape, theirs: Shape, decide: Callable[[], str | None]) -> dict[Identity, str]:
    mine, other = dict(ours.fills), dict(theirs.fills)
    differing = [at for at in mine if at in other and mine[at] != other[at]]
    for at in differing:
        mine[at] = other[at] = _decided_name(mine[at], other[at], decide) or ""
    return {**other, **mine}


def _merged_name(
    base: str | None, ours: str | None, theirs: str | None, decide: Callable[[], str | None]
) -> str | None:
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    return _decided_name(ours, theirs, decide)


def _decided_name(ours: str | None, theirs: str | None, decide: Callable[[], str | None]) -> str | None:
    side = decide()
    if side is None:
        raise ShapeConflictError("open")
    return ours if side == "ours" else theirs
