"""Table keys, such as `node:Person` or `edge:Knows`, which combine a type's kind and name."""

from functools import lru_cache
from typing import Literal

EntityKind = Literal["node", "edge"]
_PREFIX_LENGTH = len("node:")  # `edge:` has the same length, so a slice yields the type name


class TableKey(str):
    """A table key. It is stored, ordered and compared as a string.

    The constructor does not validate its argument; `parse` does.

    >>> table_key = TableKey.of("node", "Person")
    >>> table_key, table_key.kind, table_key.type_name, table_key == "node:Person"
    ('node:Person', 'node', 'Person', True)
    """

    __slots__ = ()

    @staticmethod
    def of(kind: str, type_name: str) -> "TableKey":
        """Return the key for a type's table. `kind` must be `node` or `edge`."""
        return _cached_key(kind, type_name)

    @staticmethod
    def node(type_name: str) -> "TableKey":
        """Return the key for a node type's table."""
        return _cached_key("node", type_name)

    @staticmethod
    def edge(type_name: str) -> "TableKey":
        """Return the key for an edge type's table."""
        return _cached_key("edge", type_name)

    @staticmethod
    def parse(text: str) -> "TableKey":
        """Parse a table key. Raise `ValueError` if the text does not consist of a kind and a type name.

        >>> TableKey.parse("Person")
        Traceback (most recent call last):
        ValueError: expected node:TYPE or edge:TYPE, got 'Person'
        """
        kind, _, type_name = text.partition(":")
        if kind not in ("node", "edge") or not type_name:
            raise ValueError(f"expected node:TYPE or edge:TYPE, got {text!r}")
        return TableKey(text)

    @property
    def kind(self) -> EntityKind:
        """The type's kind, `node` or `edge`."""
        return "edge" if self.is_edge else "node"

    @property
    def type_name(self) -> str:
        """The type name."""
        return self[_PREFIX_LENGTH:]

    @property
    def is_edge(self) -> bool:
        """Whether the table contains edges."""
        return self.startswith("edge:")


@lru_cache(maxsize=4096)
def _cached_key(kind: str, type_name: str) -> TableKey:
    # Queries build the same keys repeatedly, and looking up a cached key is as fast as building an f-string.
    return TableKey(f"{kind}:{type_name}")
