"""Filters on tables with lists of unsigned numbers."""

from pathlib import Path

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.storage import substrait

SCHEMA = "node Reading { name: String @key  small: [U32]?  large: [U64]?  count: U64?  age: I32? }"
ROWS: list[dict[str, object]] = [
    {"name": "a", "small": [1, 2], "large": [2**64 - 1], "count": 7, "age": 3},
    {"name": "b", "small": None, "large": [], "count": None, "age": 5},
]


def test_type_with_unsigned_lists_is_filtered_changed_and_loaded(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.upsert("Reading", ROWS)
    graph.upsert("Reading", [{**ROWS[1], "age": 6}])
    found = graph.query("match { $r: Reading  $r.age > 5 } return { $r.name, $r.large, $r.small }")
    assert found.to_dicts() == [{"r.name": "b", "r.large": [], "r.small": None}]
    held = graph.query("match { $r: Reading  $r.small contains 2 } return { $r.name, $r.count }")
    assert held.to_records() == [("a", 7)]
    graph.delete("Reading", where="age = 3")
    assert graph.nodes("Reading").ids() == ["b"]


def test_lance_cannot_filter_unsigned_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When this fails, Lance or Arrow learned it, and the mending can go."""
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.upsert("Reading", ROWS)
    monkeypatch.setattr(
        substrait._lance_dataset_module, "_needs_substrait_placeholder", substrait._lance_needs_placeholder
    )
    with pytest.raises(ValueError, match="type"):
        graph.table("Reading").to_table(filter=pc.field("age") > 5)
