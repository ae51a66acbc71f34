"""The canonical shape: what counts, what does not, and its JSON."""

import json

import pytest

from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.canonical_shape import canonical_shape, compact_json, shape_hash

PLAIN = {"nullable": False, "list": False, "enum_values": None}

SAME = [
    ("node L { s: enum(b, a) }", "node L { s: enum(a, b) }"),
    ("node A {} node B {}", "/* x */ node B {} // y\nnode A {}"),
    ("node A { x: I32  y: I32 }", "node A { y: I32  x: I32 }"),
    ("node A { x: I32  y: I32  @unique(y, x) }", "node A { x: I32  y: I32  @unique(x, y) }"),
    ("node A { x: I32  @unique(x)  @unique(x) }", "node A { x: I32  @unique(x) }"),
    ("node A @a @b {}", "node A @b @a {}"),
    ('node A @rename_from("B") {}', "node A {}"),
    ('node A { x: I32 @rename_from("y") }', "node A { x: I32 }"),
    ('node A { x: I32 @allow(OG-NM-102, "fine") }', "node A { x: I32 }"),
    (
        "interface I { x: I32 } interface J { y: I32 } node A implements J, I {}",
        "interface I { x: I32 } interface J { y: I32 } node A implements I, J, I {}",
    ),
]

DIFFERENT = [
    ("node A { x: I32 }", "node A { x: I64 }"),
    ("node A { x: I32 }", "node A { x: I32? }"),
    ("node A { v: Vector(2) }", "node A { v: Vector(3) }"),
    ("node A { x: I32 @index }", "node A { x: I32  @index(x) }"),
    ("node A { x: I32 @index }", 'node A { x: I32  @index(x, kind="btree") }'),
    ("node A { x: F64  @range(x, 0..) }", "node A { x: F64  @range(x, 0.0..) }"),
    ("node A { x: I32? }", "node A { x: I32? @default(1) }"),
    ("node A {}", 'node A @description("x") {}'),
    ("node A @ui(a, k=1) {}", "node A @ui(a, k=2) {}"),
    ("node A {} edge E: A -> A", "node A {} edge E: A -> A @card(0..1)"),
    ("interface I { x: I32 } node A implements I {}", "interface I { x: I32 } node A implements I { x: I32 }"),
    ("node A {} node B {} edge E: A -> B", "node A {} node B {} edge E: B -> A"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equivalent_schemas_have_equal_hashes(one: str, other: str) -> None:
    assert compact_json(canonical_shape(compile_schema(one))) == compact_json(canonical_shape(compile_schema(other)))
    assert shape_hash(compile_schema(one)) == shape_hash(compile_schema(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_schemas_have_different_hashes(one: str, other: str) -> None:
    assert shape_hash(compile_schema(one)) != shape_hash(compile_schema(other))


def test_shape_has_the_expected_json() -> None:
    text = """
    interface Titled { title: String @index }
    node Paper @ui("card", wide=true, tall=1) implements Titled {
        doi: String @key
        vec: Vector(8)? @embed("title", model="m")
        n: I32? @default(2)
        @range(n, -1..2.5)
        @check(doi, "^10\\\\.")
        @index(vec, metric="cosine")
    }
    edge Cites: Paper -> Paper @card(0..9) { @unique(src, dst) }
    """
    found = canonical_shape(compile_schema(text))
    (node,) = found["nodes"]
    assert list(found) == ["interfaces", "nodes", "edges"]
    assert list(node) == ["name", "annotations", "implements", "properties", "constraints"]
    assert node["annotations"] == [{"name": "ui", "value": "card", "kwargs": {"tall": "1", "wide": "true"}}]
    doi, n, title, vec = node["properties"]
    assert list(doi) == [*("name", "type", "annotations", "constraints"), *("embed", "declared_directly", "satisfies")]
    assert doi["constraints"] == ["key"]
    assert n["annotations"] == [{"name": "default", "value": "2"}]
    assert compact_json(vec["type"]) == ('{"scalar":{"Vector":8},"nullable":true,"list":false,"enum_values":null}')
    assert vec["embed"] == {"source": "title", "model": "m"}
    assert title == {
        "name": "title",
        "type": {"scalar": "String", **PLAIN},
        "annotations": [],
        "constraints": ["index"],
        "embed": None,
        "declared_directly": False,
        "satisfies": [{"interface": "Titled", "property": "title"}],
    }
    assert node["constraints"] == [
        {"Check": {"property": "doi", "pattern": "^10\\."}},
        {"Index": ["title"]},
        {"Index": {"properties": ["vec"], "options": {"metric": "cosine"}}},
        {"Key": ["doi"]},
        {"Range": {"property": "n", "min": {"Integer": -1}, "max": {"Float": 2.5}}},
    ]
    (edge,) = found["edges"]
    assert compact_json(edge) == (
        '{"name":"Cites","from_type":"Paper","to_type":"Paper","cardinality":{"min":0,"max":9},'
        '"annotations":[],"properties":[],"constraints":[{"Unique":["dst","src"]}]}'
    )


def test_hash_is_computed_from_compact_json() -> None:
    catalog = compile_schema('node A @description("größer") {}')
    assert "größer" in compact_json(canonical_shape(catalog))
    assert json.loads(compact_json(canonical_shape(catalog))) == canonical_shape(catalog)
    assert shape_hash(catalog).startswith("sha256:")
    assert len(shape_hash(catalog)) == len("sha256:") + 64
