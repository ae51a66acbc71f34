"""A redeclared type or property is new; a renamed one keeps its identity."""

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import HistoryReclaimed
from omnigraph.storage.table_fields import lance_columns
from omnigraph.testing import graph as new_graph
from omnigraph.values.table_key import TableKey
from tests.evolve.cases import rows_of

PLAIN = "node A { k: String @key }"
WITH_N = "node A { k: String @key  n: I32? @index }"
ROWS = {"A": [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "c"}]}


def numbers(graph: Graph) -> dict[str, int]:
    """The field id of each column."""
    found = lance_columns(graph.table("A").lance_schema)
    return {one.name: one.field_ids[0] for one in found}


def values(graph: Graph, name: str) -> list[object]:
    found = graph.query(f"match {{ $a: A }} return {{ $a.k, $a.{name} as v }} order {{ $a.k }}")
    return [row["v"] for row in found.to_dicts()]


def test_redeclared_property_is_new() -> None:
    with new_graph(WITH_N, ROWS) as graph:
        old, old_number = graph.schema.ir.property_id("node", "A", "n"), numbers(graph)["n"]
        graph.schema.apply(PLAIN)
        graph.schema.apply(WITH_N)
        assert values(graph, "n") == [None, None, None]
        assert graph.schema.ir.property_id("node", "A", "n") > old
        assert numbers(graph)["n"] > old_number


@pytest.mark.parametrize("dropped", [True, False])
def test_field_ids_are_never_reused(dropped: bool) -> None:
    """Also when no file and no version that is in use knows the dropped column any more."""
    with new_graph(WITH_N, ROWS) as graph:
        used = set(numbers(graph).values())
        for _ in range(3):
            graph.schema.apply(PLAIN)
            if dropped:
                graph.load({"A": [{"k": "z"}]}, mode="overwrite")
            graph.schema.apply(WITH_N)
            number = numbers(graph)["n"]
            assert number not in used
            used.add(number)
            assert graph.snapshot.tables[TableKey("node:A")].max_field_id >= max(used)


def test_renamed_away_name_can_be_reused() -> None:
    with new_graph(WITH_N, ROWS) as graph:
        graph.maintenance.ensure_indices()
        graph.schema.apply('node A { k: String @key  m: I32? @index @rename_from("n") }')
        graph.schema.apply("node A { k: String @key  m: I32? @index  n: I32? @index }")
        assert (values(graph, "m"), values(graph, "n")) == ([1, 2, None], [None, None, None])
        graph.update("A", where="m = 1", set={"n": 5})
        graph.maintenance.ensure_indices()
        for name, value, key in (("m", 1, "a"), ("n", 5, "a"), ("m", 2, "b")):
            found = graph.query(f"match {{ $a: A {{ {name}: $v }} }} return {{ $a.k }}", params={"v": value})
            assert [row["a.k"] for row in found.to_dicts()] == [key]
        described = {one.field_names[0] for one in graph.table("A").describe_indices()}
        assert {"m", "n"} <= described


def test_redeclared_type_is_new() -> None:
    both = "node A { k: String @key }\nnode B { k: String @key }\nedge E: A -> B"
    with new_graph(both, {"A": [{"k": "a"}], "B": [{"k": "b"}]}) as graph:
        graph.connect_nodes("E", [("a", "b")])
        first, where = graph.head.id, graph.snapshot.tables[TableKey("node:B")].location
        graph.schema.apply("node A { k: String @key }")
        assert set(graph.snapshot.tables) == {"node:A"}
        assert rows_of(graph.at(first)).keys() == {"node:A", "node:B", "edge:E"}
        graph.schema.apply(both)
        assert graph.snapshot.tables[TableKey("node:B")].location != where
        assert rows_of(graph) == {"node:A": {"a": {"id": "a", "k": "a"}}}
        graph.insert("B", {"k": "new"})
        assert list(rows_of(graph)["node:B"]) == ["new"]
        assert list(rows_of(graph.at(first))["node:B"]) == ["b"]


def test_renamed_type_keeps_its_table() -> None:
    with new_graph(PLAIN, {"A": [{"k": "a"}]}) as graph:
        before = graph.snapshot.tables[TableKey("node:A")]
        graph.schema.apply('node B @rename_from("A") { k: String @key }')
        after = graph.snapshot.tables[TableKey("node:B")]
        assert (after.location, after.content_id) == (before.location, before.content_id)
        assert graph.head.tables == {"node:A": None, "node:B": after}


def test_hard_drop_removes_the_history() -> None:
    two = "node A { k: String @key  n: I32? }\nnode B { k: String @key }"
    with new_graph(two, {**ROWS, "B": [{"k": "b"}]}) as graph:
        first = graph.head.id
        side = graph.branches.create("side")
        graph.schema.apply("node A { k: String @key }", allow_data_loss=True)
        assert rows_of(graph).keys() == {"node:A"}
        for name in ("A", "B"):
            with pytest.raises(HistoryReclaimed, match="dropped along with its history"):
                graph.at(first).query(f"match {{ $a: {name} }} return {{ $a.k }}")
        with pytest.raises(HistoryReclaimed):
            graph.branches.create("back", commit=first)
        assert values(side, "n") == [1, 2, None]
        assert values(side.at(first), "n") == [1, 2, None]
        graph.insert("A", {"k": "d"})
        assert len(rows_of(graph.at("HEAD~1"))["node:A"]) == 3


def test_no_table_file_contains_hard_dropped_values() -> None:
    with new_graph("node A { k: String @key  s: String? }", {"A": [{"k": "a", "s": "secret"}]}) as g:
        g.schema.apply(PLAIN, allow_data_loss=True)
        fields = {f for one in g.table("A").get_fragments() for d in one.metadata.files for f in d.fields}
        assert fields == set(numbers(g).values())


def test_a_soft_drop_keeps_its_history() -> None:
    with new_graph(WITH_N, ROWS) as graph:
        first = graph.head.id
        graph.schema.apply(PLAIN)
        graph.insert("A", {"k": "d"})
        assert values(graph.at(first), "n") == [1, 2, None]
        assert graph.at(first).schema.source == WITH_N
        again = graph.branches.create("back", commit=first)
        assert values(again, "n") == [1, 2, None]
        again.insert("A", {"k": "e", "n": 9})
        assert values(again, "n") == [1, 2, None, 9]


def test_hard_drop_keeps_the_other_columns() -> None:
    kept = "o: Blob?  v: Vector(2)?  l: [U64]?  e: enum(x, y)?  t: DateTime?"
    data = {"k": "a", "o": b"hi", "v": [1.0, 2.0], "l": [1], "e": "x", "t": "2020-01-01T00:00:00Z"}
    with new_graph(f"node A {{ k: String @key  {kept}  n: I32? }}") as graph:
        graph.insert("A", data, {"k": "b", "n": 1}, {"k": "c", "o": b""})
        before = rows_of(graph)["node:A"]
        after = f"node A {{ k: String @key  {kept}  p: Blob?  d: I32 @default(4)  w: Vector(3)? }}"
        graph.schema.apply(after, allow_data_loss=True)
        del before["b"]["n"]
        assert rows_of(graph)["node:A"] == {k: {**row, "d": 4} for k, row in before.items()}
        graph.insert("A", {"k": "d", "p": b"new", "w": [1, 2, 3]})
        assert len(rows_of(graph)["node:A"]) == 4
