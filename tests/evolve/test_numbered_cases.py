"""The numbered cases of schema apply, kept and changed ones."""

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import HistoryReclaimed, LanguageError, SchemaUnsupported, StorageError
from omnigraph.history.schemas import schemas_agree
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.canonical_shape import shape_hash
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.testing import graph as new_graph
from tests.evolve.cases import rows_of
from tests.lang.schema_migration.cases import Case, read_cases

PLANS = [
    one if one.file == "conformance" else pytest.param(one, marks=pytest.mark.full)
    for one in read_cases()
    if "after" in one.sections
]


@pytest.mark.parametrize("case", PLANS, ids=str)
def test_every_plan_is_applied_or_rejected(case: Case) -> None:
    """Cases 43 to 57, and all other plans, on graphs without data."""
    after = case.sections["after"]
    with new_graph(case.sections["before"]) as graph:
        head, hard = graph.head.id, case.allows_data_loss
        try:
            plan = graph.schema.plan(after, allow_data_loss=hard)
        except LanguageError as error:
            with pytest.raises(type(error)):
                graph.schema.apply(after)
            assert graph.refresh().head.id == head
            return
        if not plan.supported:
            with pytest.raises(SchemaUnsupported):
                graph.schema.apply(after, allow_data_loss=hard)
            assert graph.refresh().head.id == head
            return
        done = graph.schema.apply(after, allow_data_loss=hard)
        assert done.applied == bool(plan.steps)
        assert shape_hash(graph.schema.ir.catalog) == shape_hash(compile_schema(after))
        types: list[NodeType | EdgeType] = [*graph.schema.ir.catalog.nodes, *graph.schema.ir.catalog.edges]
        assert set(graph.snapshot.tables) == {f"{one.kind}:{one.name}" for one in types}
        for one in types:
            numbers = graph.schema.ir.identity(one.kind, one.name).property_ids
            ordered = [name for name, _ in sorted(numbers, key=lambda pair: pair[1])]
            system = ["id"] if one.kind == "node" else ["id", "src", "dst"]
            assert graph.table(one.name, kind=one.kind).schema.names == [*system, *ordered]


def test_case_41_renamed_key_property_keeps_ids() -> None:
    with new_graph("node R { a: String  b: I32  @key(b, a) }") as graph:
        graph.insert("R", {"a": 'x"y', "b": 5})
        (before,) = rows_of(graph)["node:R"]
        graph.schema.apply('node R { z: String @rename_from("a")  b: I32  @key(b, z) }')
        graph.upsert("R", {"z": 'x"y', "b": 5})
        assert list(rows_of(graph)["node:R"]) == [before] == ['["x\\"y","5"]']


def test_case_58_schema_is_applied_beside_open_branches() -> None:
    """Changed: it was a conflict."""
    with new_graph("node A { k: String @key }") as graph:
        dev = graph.branches.create("dev")
        assert graph.schema.apply("node A { k: String @key  n: I32? }").applied
        assert dev.refresh().schema.source == "node A { k: String @key }"
        again = graph.schema.apply("node A { k: String @key  n: I32? }")
        assert (again.applied, again.steps, again.plan.supported) == (False, (), True)


def test_case_59_only_soft_drops_stay_readable() -> None:
    data = {"A": [{"k": "a", "n": 1}]}
    for hard in (False, True):
        with new_graph("node A { k: String @key  n: I32? }", data) as graph:
            version = graph.snapshot.manifest_version
            graph.schema.apply("node A { k: String @key }", allow_data_loss=hard)
            past = graph.at(version)
            if hard:
                with pytest.raises(HistoryReclaimed):
                    past.query("match { $a: A } return { $a.n }")
            else:
                assert past.query("match { $a: A } return { $a.n }").to_dicts() == [{"a.n": 1}]


def test_case_60_edited_schema_record_is_rejected() -> None:
    """Changed: there is no file of the source, but the object can be edited."""
    with new_graph("node A { k: String @key }") as graph:
        place = Path(graph.uri, graph.snapshot.schema_row.location)
        facts = json.loads(place.read_bytes())
        facts["ir"] = facts["ir"].replace('"name":"k"', '"name":"j"')
        place.write_text(json.dumps(facts))
        again = omnigraph.open(graph.uri)
        with pytest.raises(StorageError, match="schema for this revision"):
            _ = _fresh(again)


def _fresh(graph: omnigraph.Graph) -> object:
    from omnigraph.history import schemas

    schemas._schema_cache.clear()
    return graph.schema.source


def test_schemas_agree_when_the_same_was_applied_to_both() -> None:
    one, two = "node A { k: String @key  n: I32? }", "node A { k: String @key  m: I32? }"
    with new_graph("node A { k: String @key }") as graph:
        dev = graph.branches.create("dev")
        assert schemas_agree(graph.schema.contract, dev.schema.contract)
        dev.schema.apply(one)
        assert not schemas_agree(graph.schema.contract, dev.schema.contract)
        graph.schema.apply(one)
        assert schemas_agree(graph.schema.contract, dev.schema.contract)
        graph.schema.apply(one.replace("n: I32?", ""))
        dev.schema.apply(one.replace("n: I32?", ""))
        dev.schema.apply(two)
        dev.schema.apply(one.replace("n: I32?", ""))
        assert schemas_agree(graph.schema.contract, dev.schema.contract)  # what came and went does not matter
        graph.schema.apply(two)
        dev.schema.apply(two)
        assert not schemas_agree(graph.schema.contract, dev.schema.contract)  # the same names, other numbers


def test_branches_whose_schemas_differ_are_merged() -> None:
    with new_graph("node A { k: String @key }") as graph:
        dev = graph.branches.create("dev")
        dev.schema.apply("node A { k: String @key  n: I32? }")
        dev.insert("A", {"k": "a", "n": 1})
        graph.schema.apply("node A { k: String @key  n: I32? }")
        assert graph.merge("dev").outcome == "merged"
        assert rows_of(graph)["node:A"]["a"]["n"] == 1
