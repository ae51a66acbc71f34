"""Rules hold whatever a property is called: internal names never clash with schema names."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import UniqueViolation

_NAMES = ["at", "holder", "at_min", "at_count", "line", "count"]


@pytest.mark.parametrize("name", _NAMES)
def test_unique_holds_for_a_property_of_any_name(tmp_path: Path, name: str) -> None:
    schema = f"node Event {{\n  slug: String @key\n  {name}: I64 @unique\n}}"
    graph = omnigraph.init(tmp_path / "graph", schema)
    with pytest.raises(UniqueViolation):  # within one input
        graph.insert("Event", {"slug": "a", name: 5}, {"slug": "b", name: 5})
    graph.insert("Event", {"slug": "a", name: 5}, {"slug": "c", name: 6})
    with pytest.raises(UniqueViolation):  # against what is stored
        graph.insert("Event", {"slug": "b", name: 5})
    assert len(graph.nodes("Event").result()) == 2


def test_unique_holds_for_two_properties_of_any_name(tmp_path: Path) -> None:
    schema = "node Event { slug: String @key  at: I64  holder: String  @unique(at, holder) }"
    graph = omnigraph.init(tmp_path / "graph", schema)
    graph.insert("Event", {"slug": "a", "at": 1, "holder": "x"})
    graph.insert("Event", {"slug": "b", "at": 1, "holder": "y"})
    with pytest.raises(UniqueViolation):
        graph.mutate('insert Event { slug: "c", at: 1, holder: "x" }')
