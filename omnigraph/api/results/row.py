"""`Row`: one row of a result, with access by name, position or attribute."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


class Row(Mapping[str, Any]):
    """A row. Its values can be read as `row["p.name"]`, `row[0]` or, if unambiguous, `row.name`.

    >>> row = Row(("p.name", "n"), ("Ada", 3))
    >>> row["p.name"], row.name, row[1], dict(row)
    ('Ada', 'Ada', 3, {'p.name': 'Ada', 'n': 3})
    """

    __slots__ = ("_names", "_values")

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        self._names = names
        self._values = tuple(values)

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, int):
            return self._values[key]
        try:
            return self._values[self._names.index(key)]
        except ValueError:
            raise KeyError(key) from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._names:
            return self[name]
        matching_indexes = [
            column_index
            for column_index, column_name in enumerate(self._names)
            if column_name.rpartition(".")[2] == name
        ]
        if len(matching_indexes) == 1:
            return self._values[matching_indexes[0]]
        explanation = "several columns match" if matching_indexes else f"available columns: {', '.join(self._names)}"
        raise AttributeError(f"no column '{name}': {explanation}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __hash__(self) -> int:
        return hash((tuple(self._names), self._values))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(column_name.rpartition(".")[2] for column_name in self._names)]

    def __reduce__(self) -> tuple[Any, ...]:
        return Row, (self._names, self._values)

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{column_name}={value!r}' for column_name, value in self.items())})"

    def values(self) -> tuple[Any, ...]:  # type: ignore[override]
        """Return the values in column order."""
        return self._values
