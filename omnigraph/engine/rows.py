"""Rows passed between operators: one array of row ids per variable, and nothing else.

Rows never hold properties; these are fetched once, when it is known which rows are needed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NULL = -1  # row id of a variable that an `optional` left unbound


@dataclass(frozen=True, slots=True)
class Binding:
    """The row id of one variable in every row.

    `table_keys` are keys such as `node:Person` or `edge:Knows`. `type_indexes` says for each row
    which of them applies, and is None if there is only one. A binding without types carries plain
    numbers, such as the position of an outer row.
    """

    types: tuple[str, ...]
    ids: Ids
    kinds: npt.NDArray[np.int16] | None = None

    def take(self, positions: Ids) -> "Binding":
        """Return the variable in the rows at these positions."""
        kinds = self.kinds[positions] if self.kinds is not None else None
        return Binding(self.types, self.ids[positions], kinds)

    def of_type(self, key: str) -> Mask:
        """Return the mask of rows whose variable is a row of this table; null never is."""
        if key not in self.types:
            return np.zeros(len(self.ids), np.bool_)
        found: Mask = self.ids != NULL
        if self.kinds is not None:
            found &= self.kinds == self.types.index(key)
        return found

    def as_types(self, types: tuple[str, ...]) -> "Binding":
        """Return the same binding over a larger set of types."""
        if self.types == types:
            return self
        names = np.array([types.index(key) for key in self.types] or [0], np.int16)
        own = self.kinds if self.kinds is not None else np.zeros(len(self.ids), np.int16)
        return Binding(types, self.ids, names[own] if len(types) > 1 else None)


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows. Every binding has that many ids; rows without variables are possible.

    `weights` says how often each row counts, None for once. Only a plan that consumes all rows by
    aggregates may have them: they avoid materializing rows that are never read one by one.

    >>> rows = Rows.of({"p": Binding(("node:Person",), np.array([4, 7, 9]))})
    >>> rows.filter(np.array([True, False, True])).bindings["p"].ids.tolist()
    [4, 9]
    """

    count: int
    bindings: Mapping[str, Binding]
    weights: Ids | None = None

    @classmethod
    def one(cls) -> "Rows":
        """Return the input of the first operator: one row without variables."""
        return cls(1, {})

    @classmethod
    def of(cls, bindings: Mapping[str, Binding]) -> "Rows":
        """Return rows of at least one variable."""
        return cls(len(next(iter(bindings.values())).ids), dict(bindings))

    def take(self, positions: Ids) -> "Rows":
        """Return the rows at these positions, in that order; positions may repeat."""
        taken = {name: one.take(positions) for name, one in self.bindings.items()}
        weights = self.weights[positions] if self.weights is not None else None
        return Rows(len(positions), taken, weights)

    def filter(self, mask: Mask) -> "Rows":
        """Return the rows where the mask is true."""
        if bool(mask.all()):
            return self
        return self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> "Rows":
        """Return the rows from `start` up to `stop`."""
        cut = {
            name: Binding(
                one.types,
                one.ids[start:stop],
                one.kinds[start:stop] if one.kinds is not None else None,
            )
            for name, one in self.bindings.items()
        }
        weights = self.weights[start:stop] if self.weights is not None else None
        return Rows(max(0, min(stop, self.count) - start), cut, weights)

    def with_binding(self, name: str, binding: Binding) -> "Rows":
        """Return the same rows with one more variable."""
        return Rows(self.count, {**self.bindings, name: binding}, self.weights)

    def joined(self, positions: Ids, added: Mapping[str, Binding]) -> "Rows":
        """Return the rows at these positions with new variables, as an expansion produces them."""
        taken = self.take(positions)
        return replace(taken, bindings={**taken.bindings, **added})

    def only(self, names: Iterable[str]) -> "Rows":
        """Return the same rows with only these variables."""
        return Rows(self.count, {name: self.bindings[name] for name in names}, self.weights)

    def weighted(self, factor: Ids) -> "Rows":
        """Return the same rows with their weights multiplied by factors."""
        weights = factor if self.weights is None else self.weights * factor
        return replace(self, weights=weights)

    def __getitem__(self, name: str) -> Binding:
        return self.bindings[name]

    @property
    def width(self) -> int:
        """Approximate bytes per row."""
        return sum(8 if one.kinds is None else 10 for one in self.bindings.values())


def concat_bindings(parts: Iterable[Binding]) -> Binding:
    """Concatenate one variable of several bags; types are merged in order of appearance."""
    found = list(parts)
    types = tuple(dict.fromkeys(key for one in found for key in one.types))
    same = [one.as_types(types) for one in found]
    ids = np.concatenate([one.ids for one in same]) if same else np.empty(0, np.int64)
    if len(types) < 2:
        return Binding(types, ids)
    return Binding(types, ids, np.concatenate([_kinds(one) for one in same]))


def concat(parts: Iterable[Rows]) -> Rows:
    """Concatenate bags that have the same variables."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    names = found[0].bindings
    together = {name: concat_bindings(one.bindings[name] for one in found) for name in names}
    weights = None
    if any(one.weights is not None for one in found):
        weights = np.concatenate([_weights(one) for one in found])
    return Rows(sum(one.count for one in found), together, weights)


def _kinds(one: Binding) -> npt.NDArray[np.int16]:
    return one.kinds if one.kinds is not None else np.zeros(len(one.ids), np.int16)


def _weights(one: Rows) -> Ids:
    return one.weights if one.weights is not None else np.ones(one.count, np.int64)
