"""The rows passed between operators: one array of row ids per variable.

Rows never contain property values, which are fetched later and only for the rows that need them.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

from .path_table import PathTable

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NULL_ROW = -1  # the row id of a variable that an `optional` block left unbound


@record
class VariableBinding:
    """The row ids that one variable is bound to, one per row.

    `table_keys` holds keys such as `node:Person` or `edge:Knows`. `type_indexes` holds each row's index in
    `table_keys`, or is None if there is only one key. If `table_keys` is empty, `row_ids` holds plain numbers instead,
    such as positions of outer rows or positions in `paths`.
    """

    table_keys: tuple[TableKey, ...]
    row_ids: IntArray
    type_indexes: npt.NDArray[np.int16] | None = None
    paths: PathTable | None = None

    def take(self, positions: IntArray) -> "VariableBinding":
        """Return the binding restricted to the rows at the given positions."""
        type_indexes = self.type_indexes[positions] if self.type_indexes is not None else None
        return VariableBinding(self.table_keys, self.row_ids[positions], type_indexes, self.paths)

    def is_type(self, table_key: TableKey) -> Mask:
        """Return a mask of the rows in which the variable is bound to a row in the given table, excluding null."""
        if table_key not in self.table_keys:
            return np.zeros(len(self.row_ids), np.bool_)
        is_of_type: Mask = self.row_ids != NULL_ROW
        if self.type_indexes is not None:
            is_of_type &= self.type_indexes == self.table_keys.index(table_key)
        return is_of_type

    def with_types(self, table_keys: tuple[TableKey, ...]) -> "VariableBinding":
        """Return an equivalent binding for `table_keys`, which must include all current keys."""
        if self.table_keys == table_keys:
            return self
        new_indexes = np.array([table_keys.index(table_key) for table_key in self.table_keys] or [0], np.int16)
        old_indexes = self.type_indexes if self.type_indexes is not None else np.zeros(len(self.row_ids), np.int16)
        return VariableBinding(table_keys, self.row_ids, new_indexes[old_indexes] if len(table_keys) > 1 else None)


@record
class Rows:
    """A sequence of `count` rows. Every binding holds `count` ids; `bindings` may be empty.

    `weights` specifies how many times each row counts; None means that every row counts once. Weights represent
    repeated rows, so that rows need not be materialized if they are never read individually. A plan may use weights
    only if aggregates consume all of its rows.

    >>> rows = Rows.from_bindings({"p": VariableBinding(("node:Person",), np.array([4, 7, 9]))})
    >>> rows.filter(np.array([True, False, True])).bindings["p"].row_ids.tolist()
    [4, 9]
    """

    count: int
    bindings: Mapping[str, VariableBinding]
    weights: IntArray | None = None

    @classmethod
    def single(cls) -> "Rows":
        """Return the input of the first operator: one row without variables."""
        return _SINGLE_ROW

    @classmethod
    def from_bindings(cls, bindings: Mapping[str, VariableBinding]) -> "Rows":
        """Build rows from bindings; at least one binding is required."""
        return cls(len(next(iter(bindings.values())).row_ids), dict(bindings))

    def take(self, positions: IntArray) -> "Rows":
        """Return the rows at the given positions, in that order; positions may repeat."""
        taken_bindings = {variable: binding.take(positions) for variable, binding in self.bindings.items()}
        weights = self.weights[positions] if self.weights is not None else None
        return Rows(len(positions), taken_bindings, weights)

    def filter(self, mask: Mask) -> "Rows":
        """Return the rows where the mask is true."""
        if bool(mask.all()):
            return self
        return self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> "Rows":
        """Return the rows from `start` up to, but not including, `stop`."""
        sliced = {
            variable: VariableBinding(
                binding.table_keys,
                binding.row_ids[start:stop],
                binding.type_indexes[start:stop] if binding.type_indexes is not None else None,
                binding.paths,
            )
            for variable, binding in self.bindings.items()
        }
        weights = self.weights[start:stop] if self.weights is not None else None
        return Rows(max(0, min(stop, self.count) - start), sliced, weights)

    def with_binding(self, variable: str, binding: VariableBinding) -> "Rows":
        """Return the same rows with one more variable."""
        return Rows(self.count, {**self.bindings, variable: binding}, self.weights)

    def take_with(self, positions: IntArray, new_bindings: Mapping[str, VariableBinding]) -> "Rows":
        """Return the rows at the given positions, extended with new variables such as those that an expansion binds."""
        taken_bindings = {variable: binding.take(positions) for variable, binding in self.bindings.items()}
        weights = self.weights[positions] if self.weights is not None else None
        return Rows(len(positions), {**taken_bindings, **new_bindings}, weights)

    def select_variables(self, variables: Iterable[str]) -> "Rows":
        """Return the same rows with only the given variables."""
        return Rows(self.count, {variable: self.bindings[variable] for variable in variables}, self.weights)

    def scale_weights(self, factors: IntArray) -> "Rows":
        """Return the same rows with their weights multiplied by the given factors."""
        weights = factors if self.weights is None else self.weights * factors
        return Rows(self.count, self.bindings, weights)

    def __getitem__(self, variable: str) -> VariableBinding:
        return self.bindings[variable]

    @property
    def bytes_per_row(self) -> int:
        """The approximate size of a row in bytes."""
        row_bytes = path_bytes = 0
        for binding in self.bindings.values():
            row_bytes += 8 if binding.type_indexes is None else 10
            if binding.paths is not None:
                path_bytes += binding.paths.nbytes
        return row_bytes + (-(-path_bytes // max(self.count, 1)) if path_bytes else 0)


_SINGLE_ROW = Rows(1, {})


def concat_bindings(bindings: Iterable[VariableBinding]) -> VariableBinding:
    """Concatenate the bindings of one variable; types are merged in order of appearance."""
    binding_list = list(bindings)
    table_keys = tuple(dict.fromkeys(table_key for binding in binding_list for table_key in binding.table_keys))
    aligned = [binding.with_types(table_keys) for binding in binding_list]
    row_ids = np.concatenate([binding.row_ids for binding in aligned]) if aligned else np.empty(0, np.int64)
    if len(table_keys) < 2:
        return VariableBinding(table_keys, row_ids)
    return VariableBinding(table_keys, row_ids, np.concatenate([_type_indexes_of(binding) for binding in aligned]))


def _type_indexes_of(binding: VariableBinding) -> npt.NDArray[np.int16]:
    return binding.type_indexes if binding.type_indexes is not None else np.zeros(len(binding.row_ids), np.int16)
