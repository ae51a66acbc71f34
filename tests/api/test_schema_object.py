"""`omnigraph.Schema`, and the same members on `graph.schema`."""

import asyncio
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import AsyncGraph, Graph, Schema
from omnigraph.errors import InputError, LanguageError, SchemaUnsupported, UsageError
from omnigraph.lang.schema.catalog import Range
from tests.rig.graph_hosts import GraphHost

TEXT = """
interface Named { label: String @index }
// People come first.
node Person @description("A human") implements Named {
    name: String @key
    age: I32? @description("in years")
    photo: Blob?
    mood: enum(good, bad) @default(good)
    @range(age, 0..150)
}
node City { name: String @key }
edge LivesIn: Person -> City @card(0..1) { since: Date?  how: String @default("alone") }
edge Knows: Person -> Person
"""
REORDERED = """
edge Knows: Person -> Person
node City { name: String @key }
edge LivesIn: Person -> City @card(0..1) { how: String @default("alone")  since: Date? }
interface Named { label: String @index }
node Person @description("A human") implements Named {
    mood: enum(bad, good) @default(good)  photo: Blob?
    @range(age, 0..150)
    age: I32? @description("in years")  name: String @key
}
"""


def test_types_are_listed_in_the_order_of_the_text() -> None:
    schema = Schema(TEXT)
    assert (list(schema.types), list(schema.edges)) == (["Person", "City"], ["LivesIn", "Knows"])
    assert (list(schema), len(schema), "City" in schema, "Ghost" in schema) == (
        ["Person", "City", "LivesIn", "Knows"],
        4,
        True,
        False,
    )
    assert list(schema["Person"].properties) == ["label", "name", "age", "photo", "mood"]
    assert (schema.node_types, schema.edge_types) == (("City", "Person"), ("Knows", "LivesIn"))


def test_a_node_type_tells_its_members() -> None:
    person = Schema(TEXT).types["Person"]
    assert (person.name, person.kind, person.key, person.description) == ("Person", "node", ("name",), "A human")
    assert person.implements == ("Named",)
    assert [rule for rule in person.constraints if isinstance(rule, Range)] == [Range("age", 0, 150)]
    assert str(person).startswith('node Person @description("A human")')
    age, mood, name = (person.properties[name] for name in ("age", "mood", "name"))
    assert (age.name, age.type, age.nullable, age.description) == ("age", "I32", True, "in years")
    assert (mood.type, mood.nullable, mood.default) == ("enum(bad, good)", False, "good")
    assert (dict(name.annotations), str(age)) == ({"key": None}, "age: I32?")


def test_an_edge_type_tells_its_endpoints() -> None:
    edge = Schema(TEXT).edges["LivesIn"]
    assert (edge.kind, edge.source_type, edge.target_type, edge.cardinality) == ("edge", "Person", "City", (0, 1))
    assert [str(declared) for declared in edge.properties.values()] == ["since: Date?", "how: String"]
    assert Schema(TEXT).edges["Knows"].cardinality == (0, None)


def test_a_node_type_takes_precedence_over_an_edge_type_of_the_same_name() -> None:
    schema = Schema("node Call {} edge Call: Call -> Call")
    assert (schema["Call"].kind, schema.edges["Call"].kind) == ("node", "edge")


def test_an_unknown_type_is_a_key_error_with_a_suggestion() -> None:
    with pytest.raises(KeyError, match="did you mean `Person`"):
        Schema(TEXT)["Persn"]
    with pytest.raises(InputError, match="unknown type"):
        Schema(TEXT).to_arrow("Persn")


def test_schemas_with_the_same_meaning_are_equal() -> None:
    one, other = Schema(TEXT), Schema(REORDERED)
    assert one == other
    assert len({one, other}) == 1
    assert one != Schema(TEXT.replace("0..150", "0..151"))
    assert one != TEXT


def test_a_schema_survives_pickling(graph: Graph) -> None:
    for schema in (Schema(TEXT), graph.schema.current):
        copied = pickle.loads(pickle.dumps(schema))
        assert (copied, copied.source, list(copied)) == (schema, schema.source, list(schema))
        assert pickle.loads(pickle.dumps(schema["Person"])) == schema["Person"]


def test_a_schema_is_read_from_a_path_or_text(tmp_path: Path) -> None:
    path = tmp_path / "a.pg"
    path.write_text("node Lamp {}")
    assert Schema(path).node_types == ("Lamp",)
    assert Schema(Schema(path)).name == str(path)
    with pytest.raises(LanguageError, match=r"b\.pg:1:6"):
        Schema.parse("node lamp {}", "b.pg")
    with pytest.raises(InputError, match="is not a schema"):
        Schema(str(path))  # text, never a path
    with pytest.raises(LanguageError):
        Schema.parse("a.pg")  # text, never a path
    with pytest.raises(UsageError, match="not int"):
        Schema(7)  # type: ignore[arg-type]


def test_to_arrow_is_the_schema_of_returned_rows(graph: Graph) -> None:
    for type_name in graph.schema.node_types:
        assert graph.schema.to_arrow(type_name) == graph.nodes(type_name).to_arrow().schema
    for type_name in graph.schema.edge_types:
        assert graph.schema.to_arrow(type_name) == graph.edges(type_name).to_arrow().schema
    assert Schema(TEXT).to_arrow("Person").field("photo").type == pa.large_binary()


def test_diff_returns_the_migration_plan() -> None:
    plan = Schema(TEXT).diff(TEXT.replace("age: I32?", "age: I64?").replace("node City {", "node City { size: I32?"))
    assert (plan.supported, bool(plan), len(plan.steps)) == (True, True, 2)
    assert str(plan) == "add property node:City.size: I32?\nwiden node:Person.age from I32? to I64?"
    refused = Schema("node A { x: I32 }").diff(Schema("node A { x: String }"))
    assert not refused.supported
    assert "refused" in refused._repr_html_()
    assert not Schema(TEXT).diff(REORDERED)
    assert [step.tier for step in Schema("node A {}").diff("", allow_data_loss=True).steps] == ["destructive"]


def test_the_plan_table_is_escaped() -> None:
    plan = Schema("node A {}").diff('node A { x: String @default("<b>") }')
    assert "&lt;b&gt;" in plan._repr_html_()
    assert "<b>" not in plan._repr_html_()


def test_a_schema_is_planned_and_applied(graphs: GraphHost) -> None:
    first, second = graphs.init(TEXT), graphs.init(TEXT)
    wider = Schema(TEXT.replace("age: I32?", "age: I64?"))
    assert len(second.schema.plan(wider).steps) == 1
    assert second.schema.apply(wider)
    assert second.schema.current == wider
    assert first.schema.apply(second.schema)
    assert first.schema == second.schema


def test_a_schema_is_accepted_wherever_text_is(tmp_path: Path) -> None:
    first = omnigraph.init(tmp_path / "a", Schema(TEXT), durability="os")
    second = omnigraph.init(tmp_path / "b", first.schema, durability="os")
    assert first.schema == second.schema == Schema(TEXT)
    assert second.schema.source == TEXT
    wider = Schema(TEXT.replace("age: I32?", "age: I64?"))
    assert len(second.schema.plan(wider).steps) == 1
    assert second.schema.apply(wider)
    assert second.schema.current == wider
    assert first.schema.apply(second.schema)
    with pytest.raises(SchemaUnsupported):
        omnigraph.init(tmp_path / "a", Schema("node A {}"), exist_ok=True, durability="os")


def test_graph_schema_has_the_members_of_schema(graphs: GraphHost) -> None:
    graph, schema = graphs.init(TEXT), Schema(TEXT)
    assert (graph.schema.types, graph.schema.edges) == (schema.types, schema.edges)
    assert (graph.schema["City"], "City" in graph.schema) == (schema["City"], True)
    assert (list(graph.schema), len(graph.schema)) == (list(schema), 4)
    assert graph.schema.diagram("svg") == schema.diagram("svg")
    assert str(graph.schema.diff(REORDERED)) == "nothing to change"
    assert (repr(graph.schema), graph.schema._repr_html_()) == (repr(schema), schema._repr_html_())
    assert hash(graph.schema) == hash(schema)


def test_the_asynchronous_facade_has_the_same_members(graphs: GraphHost) -> None:
    async def work(graph: Graph) -> None:
        facet, schema = AsyncGraph(graph).schema, Schema(TEXT)
        assert await facet.current() == schema
        assert list(await facet.types()) == list(schema.types)
        assert list(await facet.edges()) == list(schema.edges)
        assert (await facet["City"]).key == ("name",)
        assert await facet.to_arrow("City") == schema.to_arrow("City")
        assert await facet.diagram() == schema.diagram()
        assert not await facet.diff(schema)

    asyncio.run(work(graphs.init(TEXT)))


def test_the_card_contains_the_drawing_and_escaped_text() -> None:
    card = Schema('node A @description("<script>") {}')._repr_html_()
    assert "<svg" in card
    assert "<script>" not in card


def test_an_unknown_diagram_format_is_refused() -> None:
    with pytest.raises(UsageError, match="expected 'mermaid' or 'svg'"):
        Schema(TEXT).diagram("png")  # type: ignore[arg-type]
