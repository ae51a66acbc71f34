"""The bag of rows between operators: one array of row ids per variable, and nothing else.

Properties are never in here; they are fetched once, when it is known which rows are needed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NULL = -1  # the row id of a variable that an `optional` left empty


@dataclass(frozen=True, slots=True)
class Binding:
    """What one variable is in every row: the row id in its table.

    `types` are table keys such as `node:Person` or `edge:Knows`. `kinds` tells for each row which
    of them it is, and is None when there is only one. A binding without types carries plain
    numbers, such as the position of an outer row.
    """

    types: tuple[str, ...]
    ids: Ids
    kinds: npt.NDArray[np.int16] | None = None

    def take(self, positions: Ids) -> "Binding":
        """The same variable in the rows at these positions."""
        kinds = self.kinds[positions] if self.kinds is not None else None
        return Binding(self.types, self.ids[positions], kinds)

    def of_type(self, key: str) -> Mask:
        """In which rows the variable is a row of this table; nowhere where it is null."""
        if key not in self.types:
            return np.zeros(len(self.ids), np.bool_)
        found: Mask = self.ids != NULL
        if self.kinds is not None:
            found &= self.kinds == self.types.index(key)
        return found

    def as_types(self, types: tuple[str, ...]) -> "Binding":
        """The same with more types to tell apart."""
        if self.types == types:
            return self
        names = np.array([types.index(key) for key in self.types] or [0], np.int16)
        own = self.kinds if self.kinds is not None else np.zeros(len(self.ids), np.int16)
        return Binding(types, self.ids, names[own] if len(types) > 1 else None)


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows. Every binding has that many ids; a bag may have rows and no variables.

    `weights` says how often each row stands in the bag, None for once. Only a plan whose every
    consumer is an aggregate may have them: they keep what nobody looks at from being spelled out.

    >>> rows = Rows.of({"p": Binding(("node:Person",), np.array([4, 7, 9]))})
    >>> rows.filter(np.array([True, False, True])).bindings["p"].ids.tolist()
    [4, 9]
    """

    count: int
    bindings: Mapping[str, Binding]
    weights: Ids | None = None

    @classmethod
    def one(cls) -> "Rows":
        """The bag before the first operator: one row without variables."""
        return cls(1, {})

    @classmethod
    def of(cls, bindings: Mapping[str, Binding]) -> "Rows":
        """Rows of at least one variable."""
        return cls(len(next(iter(bindings.values())).ids), dict(bindings))

    def take(self, positions: Ids) -> "Rows":
        """The rows at these positions, in that order; a position may occur many times."""
        taken = {name: one.take(positions) for name, one in self.bindings.items()}
        weights = self.weights[positions] if self.weights is not None else None
        return Rows(len(positions), taken, weights)

    def filter(self, mask: Mask) -> "Rows":
        """The rows where the mask is true."""
        if bool(mask.all()):
            return self
        return self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> "Rows":
        """The rows from one position up to another."""
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
        """The same rows with one more variable."""
        return Rows(self.count, {**self.bindings, name: binding}, self.weights)

    def joined(self, positions: Ids, added: Mapping[str, Binding]) -> "Rows":
        """Rows taken by position, each with new variables: what an expansion gives."""
        taken = self.take(positions)
        return replace(taken, bindings={**taken.bindings, **added})

    def only(self, names: Iterable[str]) -> "Rows":
        """The same rows without all other variables."""
        return Rows(self.count, {name: self.bindings[name] for name in names}, self.weights)

    def weighted(self, factor: Ids) -> "Rows":
        """The same rows, each as many times more often as its factor says."""
        weights = factor if self.weights is None else self.weights * factor
        return replace(self, weights=weights)

    def __getitem__(self, name: str) -> Binding:
        return self.bindings[name]

    @property
    def width(self) -> int:
        """About how many bytes a row takes."""
        return sum(8 if one.kinds is None else 10 for one in self.bindings.values())


def concat_bindings(parts: Iterable[Binding]) -> Binding:
    """One variable of several bags put together; types are merged in order of appearance."""
    found = list(parts)
    types = tuple(dict.fromkeys(key for one in found for key in one.types))
    same = [one.as_types(types) for one in found]
    ids = np.concatenate([one.ids for one in same]) if same else np.empty(0, np.int64)
    if len(types) < 2:
        return Binding(types, ids)
    return Binding(types, ids, np.concatenate([_kinds(one) for one in same]))


def concat(parts: Iterable[Rows]) -> Rows:
    """Bags with the same variables, one after the other."""
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
