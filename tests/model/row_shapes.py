"""The columns that successive schemas give to the rows of one type.

Part of the oracle for merges: it knows nothing of the product.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

Entity = tuple[str, str]  # the key of a type, as `node:Person`, and an id
Row = Mapping[str, Any]
Graph = Mapping[Entity, Row]


@dataclass(frozen=True)
class Shape:
    """What columns one type has beside its first ones: a number, which stays, and a name.

    `next` is the number of the next one.
    """

    key: str = ""
    columns: tuple[tuple[int, str], ...] = ()
    next: int = 0

    def added(self, name: str) -> "Shape":
        return replace(self, columns=(*self.columns, (self.next, name)), next=self.next + 1)

    def renamed(self, name: str, new: str) -> "Shape":
        columns = tuple((at, new if one == name else one) for at, one in self.columns)
        return replace(self, columns=columns)

    def dropped(self, name: str) -> "Shape":
        return replace(self, columns=tuple(one for one in self.columns if one[1] != name))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.columns)

    @property
    def numbers(self) -> frozenset[int]:
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
