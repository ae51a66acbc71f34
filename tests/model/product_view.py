"""The product as the oracles see it: graphs from text, rows as plain values, raw tables.

Only public doors are used, except to look at the rows of a table as they lie on the disk.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.values import ScalarType
from omnigraph.values.clock_and_ids import is_ulid

from .dictionary_graph import World
from .expected_values import shown


@dataclass
class Templates:
    """One graph per schema and data, made once; who wants to change one gets a copy."""

    place: Path
    made: dict[tuple[str, str], Path] = field(default_factory=dict)
    copies: int = 0

    def shared(self, schema: str, data: str) -> Path:
        """The graph itself, for reading."""
        key = (schema, data)
        if key not in self.made:
            root = self.place / f"g{len(self.made)}"
            graph = omnigraph.init(root, schema, durability="os")
            if data.strip():
                graph.load(data.encode(), mode="append")
            self.made[key] = root
        return self.made[key]

    def copy(self, schema: str, data: str) -> Path:
        """A graph of one's own."""
        self.copies += 1
        target = self.place / f"c{self.copies}"
        shutil.copytree(self.shared(schema, data), target)
        return target


def answer_of(graph: Graph, text: str, given: Mapping[str, Any]) -> tuple[tuple[str, ...], list[list[Any]]]:
    """The columns and rows of a read, spelled as in cases."""
    found = graph.query(text, params=given).to_arrow()
    columns = [column.to_pylist() for column in found.columns]
    rows = [list(map(shown, row)) for row in zip(*columns, strict=True)]
    return tuple(found.column_names), rows


def stored_world(graph: Graph) -> World:
    """All rows of all tables as they are stored, blobs left out."""
    world = World(graph.schema.ir.catalog)
    for key in graph.snapshot.tables:
        kind, _, name = key.partition(":")
        table = graph.table(name, kind=kind)
        plain = [one.name for one in table.schema if not _is_blob(one)]
        for row in table.to_table(columns=plain).to_pylist():
            own = row.pop("id")
            ends = {"from": row.pop("src"), "to": row.pop("dst")} if kind == "edge" else {}
            world.rows(key)[own] = ends | {name: _plain(one) for name, one in row.items()}
    return world


def _is_blob(field_: Any) -> bool:
    name = str(field_.type)
    return "blob" in name.lower() or "binary" in name or name.startswith("struct")


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def comparable(world: World, known: set[str]) -> dict[str, Any]:
    """The content of a graph without ids that chance made, and without blobs."""
    kinds: list[NodeType | EdgeType] = [*world.catalog.nodes, *world.catalog.edges]
    blobs = {(kind.name, one.name) for kind in kinds for one in kind.properties if one.type.scalar is ScalarType.BLOB}
    found: dict[str, Any] = {}
    for word, tables in (("node", world.nodes), ("edge", world.edges)):
        for name, rows in tables.items():
            lines = []
            for own, row in rows.items():
                chance = own.startswith("#") or (is_ulid(own) and own not in known)
                called = "*" if chance else own
                kept = {p: shown(v) for p, v in sorted(row.items()) if (name, p) not in blobs}
                lines.append((called, repr(kept)))
            found[f"{word}:{name}"] = sorted(lines)
    return found
