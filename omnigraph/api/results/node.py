"""The public representation of a node: its id, type and properties."""

from collections.abc import Mapping
from typing import Any

from omnigraph.records.frozen import record


@record
class Node:
    """A node, with its id, type and properties.

    >>> ada = Node("ada", "Person", {"age": 36})
    >>> ada["age"], ada.age
    (36, 36)
    """

    id: str
    type: str
    properties: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.id if name == "id" else self.properties[name]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.properties:
            return self.properties[name]
        raise AttributeError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the id and properties as one dict."""
        return {"id": self.id, **self.properties}
