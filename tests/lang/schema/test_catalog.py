"""The catalog of a schema: canonical order, origins, lookups."""

import pytest

from omnigraph.errors import CatalogError, ParseError
from omnigraph.lang.schema import compile_schema, parse_schema
from omnigraph.lang.schema.catalog import (
    AllowedFinding,
    Catalog,
    EmbeddingDefinition,
    Index,
    Key,
    PropertyDefinition,
    StoredAnnotation,
    Unique,
)
from omnigraph.lang.schema.model import Literal, NodeDeclaration
from omnigraph.values import PropertyType, ScalarType

TEXT = """
node Zebra implements Named, Aged, Named { stripes: I32 @unique @index  age: I32 }
interface Named { name: String @key @description("x") }
interface Aged { age: I32  name: String @description("x") @key }
node Ant @allow(OG-NM-101, "fine") {
    a: Vector(2) @embed(b, model="m")
    b: String @allow("OG-NM-102", "why")
}
edge Eats: Zebra -> Ant @card(1..)
edge Avoids: Ant -> Zebra
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return compile_schema(TEXT)


def test_everything_is_in_name_order(catalog: Catalog) -> None:
    assert [n.name for n in catalog.nodes] == ["Ant", "Zebra"]
    assert [i.name for i in catalog.interfaces] == ["Aged", "Named"]
    assert [e.name for e in catalog.edges] == ["Avoids", "Eats"]
    zebra = catalog.nodes[1]
    assert zebra.implements == ("Aged", "Named")
    assert [p.name for p in zebra.properties] == ["age", "name", "stripes"]
    assert zebra.constraints == (Index(("stripes",)), Key(("name",)), Unique(("stripes",)))


def test_property_records_its_origin(catalog: Catalog) -> None:
    age, name, stripes = catalog.nodes[1].properties
    assert (age.declared_directly, age.satisfies) == (True, (("Aged", "age"),))
    assert (name.declared_directly, name.satisfies) == (False, (("Aged", "name"), ("Named", "name")))
    assert (stripes.declared_directly, stripes.satisfies) == (True, ())
    assert stripes.inline_constraints == ("index", "unique")
    text = PropertyType(ScalarType.STRING)
    note = StoredAnnotation("description", "x")
    assert catalog.interfaces[1].properties == (PropertyDefinition("name", text, (note,), ("key",)),)


def test_embed_and_allow_annotations_are_recorded(catalog: Catalog) -> None:
    ant = catalog.nodes[0]
    assert ant.properties[0].embed == EmbeddingDefinition("b", "m")
    assert ant.allowed_findings == (AllowedFinding("OG-NM-101", "fine"),)
    assert ant.properties[1].allowed_findings == (AllowedFinding("OG-NM-102", "why"),)
    assert ant.annotations == ant.properties[1].annotations == ()


def test_bare_lint_code_is_distinguished_from_a_word() -> None:
    (node,) = parse_schema('node A @allow(OG-NM-101, "x") @y(z) {}').declarations
    assert isinstance(node, NodeDeclaration)
    assert node.annotations[0].arguments[0] == Literal("code", "OG-NM-101")
    assert node.annotations[1].arguments[0] == Literal("word", "z")


def test_types_and_properties_are_found_by_name(catalog: Catalog) -> None:
    assert catalog.node("Ant") is catalog.nodes[0]
    assert catalog.node("ant") is None
    assert catalog.edge("Eats") is catalog.edges[1]
    assert catalog.edge("eats") is None
    for word in ("eats", "Eats", "eATS"):
        assert catalog.edge_ignoring_case(word) is catalog.edges[1]
    assert catalog.interface("Aged") is catalog.interfaces[0]


def test_catalog_keeps_its_source_and_positions(catalog: Catalog) -> None:
    assert catalog.source == TEXT
    span = catalog.nodes[0].properties[1].span
    assert TEXT[span.start : span.end] == 'b: String @allow("OG-NM-102", "why")'


def test_positions_and_hints_do_not_affect_equality() -> None:
    plain = compile_schema("node A { a: I32 }")
    hinted = compile_schema('\n node A @rename_from("B") { a: I32 @rename_from("b") }')
    assert plain == hinted
    assert hinted.nodes[0].rename_from == "B"


def test_first_failing_stage_determines_the_error_class() -> None:
    with pytest.raises(CatalogError):
        compile_schema("edge E: A -> B")
    with pytest.raises(ParseError) as caught:
        compile_schema("edge E: A -> B { a: I32? @key }")
    assert [d.kind for d in caught.value.diagnostics] == ["parse", "catalog", "catalog"]


def test_findings_of_one_stage_are_in_source_order() -> None:
    text = "node A { a: String? @key }\nedge E: A -> A { b: I32? @key  @range(b, 1..) }\n"
    with pytest.raises(ParseError) as caught:
        compile_schema(text + "node B { @unique(long_name, x) @index(y, kind=zz) }")
    places = [(d.line, d.column) for d in caught.value.diagnostics]
    assert places == sorted(places)
    assert len(places) == 7
