"""The columns that successive schemas give to the rows of one type.

Part of the oracle for merges: it knows nothing of the product.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

Entity = tuple[str, str]  # the key of a type, as `node:Person`, and an id
Row = Mapping[str, Any]
Graph = Mapping[Entity, Row]
Identity = tuple[str, int]


@dataclass(frozen=True)
class Shape:
    """What columns one type has beside its first ones: an identity, which stays, and a name.

    An identity is the name under which a column was added, and how often that had been used before;
    branches that add the same column agree on it. `retired` are the identities of dropped columns.
    """

    key: str = ""
    columns: tuple[tuple[Identity, str], ...] = ()
    retired: frozenset[Identity] = frozenset()

    def added(self, name: str) -> "Shape":
        taken = self.numbers | self.retired
        identity = next((name, uses) for uses in count() if (name, uses) not in taken)
        return replace(self, columns=(*self.columns, (identity, name)))

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
        return set(self.columns) == set(other.columns)

    def fit(self, graph: Graph, to: "Shape") -> Graph:
        """A graph of this shape in another one: what was not there is null."""
        return {one: self.fit_row(one, row, to) for one, row in graph.items()}

    def fit_row(self, one: Entity, row: Row, to: "Shape") -> Row:
        if one[0] != self.key or self.columns == to.columns:
            return row
        old = dict(self.columns)
        plain = {name: value for name, value in row.items() if name not in self.names}
        return {**plain, **{new: row.get(old.get(at, "")) for at, new in to.columns}}


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
    names: dict[Identity, str] = {}
    before, mine, other = dict(base.columns), dict(ours.columns), dict(theirs.columns)
    for identity in dict.fromkeys([*mine, *other]):
        states = before.get(identity), mine.get(identity), other.get(identity)
        name = _decided_name(*states[1:], decide) if identity in edited else _merged_name(*states, decide)
        if name is not None:
            names[identity] = name
    if len(set(names.values())) < len(names):
        raise ShapeConflictError("name taken")
    dropped = {*mine, *other} - names.keys()
    return Shape(ours.key, tuple(names.items()), ours.retired | theirs.retired | dropped)


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
