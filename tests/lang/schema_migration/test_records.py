"""Records of accepted schemas: written ones are readable, tampered ones are rejected."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.errors import IdentityError
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from omnigraph.lang.schema.canonical_shape import compact_json, shape_hash
from omnigraph.lang.schema.ir import SchemaIR, hash_ir

DOMAIN = "01HZZZZZZZZZZZZZZZZZZZZZZZ"
TEXT = """
interface Titled { title: String @index  vec: Vector(2)? @embed("body") }
node Paper @description("A paper") implements Titled {
    doi: String @key
    body: String
    n: I64? @default(-3) @ui("slider", max=9)
    state: enum(draft, done)
    tags: [String]?
    @range(n, -9007199254740993..0.5)
    @check(doi, "^10")
    @index(vec, metric="cosine")
}
node Venue {}
edge At: Paper -> Venue @card(0..1) { since: Date?  @unique(src, dst)  @index(since) }
"""


def _record() -> dict[str, Any]:
    made: dict[str, Any] = new_identity(compile_schema(TEXT), DOMAIN).to_json()
    return made


def test_record_round_trips_through_text() -> None:
    ir = new_identity(compile_schema(TEXT), DOMAIN)
    for indent in (None, 2):
        back = SchemaIR.from_json(json.loads(json.dumps(ir.to_json(), indent=indent)))
        assert back == ir
        assert hash_ir(back) == hash_ir(ir)
        assert shape_hash(back.catalog) == shape_hash(compile_schema(TEXT))


def test_record_has_the_expected_json() -> None:
    record = new_identity(
        compile_schema("node A { x: I32 } edge E: A -> A { y: I32  @unique(src, y) }"), DOMAIN
    ).to_json()
    assert list(record) == [
        *("ir_version", "schema_identity_domain", "next_identity_id"),
        *("interfaces", "nodes", "edges"),
    ]
    assert (record["ir_version"], record["next_identity_id"]) == (2, 7)
    (edge,) = record["edges"]
    assert compact_json(edge["from_type"]) == '{"type_id":1,"name":"A"}'
    assert compact_json(edge["constraints"]) == (
        '[{"kind":"unique","fields":[{"kind":"system","name":"src"},{"kind":"property","property_id":4,"name":"y"}]}]'
    )


def _put(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]

    def put(record: Any) -> None:
        for part in way:
            record = record[part]
        record[last] = value

    return put


def _swap(path: str) -> Callable[[dict[str, Any]], None]:
    def swap(record: Any) -> None:
        for part in path.split("."):
            record = record[int(part) if part.isdigit() else part]
        record[0], record[1] = record[1], record[0]

    return swap


def _unimplemented(record: dict[str, Any]) -> None:
    record["nodes"][0]["implements"] = []


def _extra(record: dict[str, Any]) -> None:
    record["nodes"][0]["colour"] = "red"


def _missing(record: dict[str, Any]) -> None:
    del record["nodes"][0]["properties"][0]["type"]


def _twice(record: dict[str, Any]) -> None:
    record["nodes"].append(dict(record["nodes"][1], type_id=90, table_incarnation_id=91))
    record["next_identity_id"] = 99


def _same_property(record: dict[str, Any]) -> None:
    properties = record["edges"][0]["properties"]
    properties.append(dict(properties[0], property_id=90))
    record["next_identity_id"] = 99


TAMPERED = [
    (_put("ir_version", 1), "ir_version: unsupported version 1; expected 2"),
    (_put("ir_version", "2"), "ir_version: expected a whole number"),
    (_put("schema_identity_domain", "abc"), "'abc' is not a ULID"),
    (_put("schema_identity_domain", "8" * 26), "is not a ULID"),
    (_put("next_identity_id", 0), "next_identity_id 0"),
    (_put("next_identity_id", 2**64), "not a positive 64-bit number"),
    (_put("next_identity_id", 5), "is not between 1 and next_identity_id"),
    (_put("nodes.0.type_id", 0), "node:Paper: id 0"),
    (_put("nodes.0.type_id", True), "nodes[0].type_id: expected a whole number"),
    (_put("nodes.0.type_id", 3), "already belongs to node:Paper"),
    (_put("nodes.0.table_incarnation_id", 1), "already belongs to interface:Titled"),
    (_put("nodes.0.properties.0.property_id", 1), "already belongs to interface:Titled"),
    (_put("nodes", {}), "nodes: expected a list"),
    (_put("nodes.0", []), "nodes[0]: expected an object"),
    (_missing, "nodes[0].properties[0]: member 'type' is missing"),
    (_extra, "nodes[0]: got members"),
    (_swap("nodes"), "nodes[0].type_id: got 3, expected 2"),
    (_swap("nodes.0.properties"), "nodes[0].properties[0].property_id: got 8, expected 7"),
    (_swap("nodes.0.constraints"), "nodes[0].constraints[0]: got members kind, fields; expected kind, field"),
    (_twice, "node:Venue is declared twice"),
    (_same_property, "edge:At.since is declared twice"),
    (_put("nodes.0.properties.4.type.enum_values", ["draft", "done"]), "enum_values[0]"),
    (_put("nodes.0.properties.0.type.scalar", "Text"), 'unknown type "Text"'),
    (_put("nodes.0.properties.0.type.scalar", "Vector"), 'unknown type "Vector"'),
    (_put("nodes.0.properties.0.type.nullable", 0), "nullable: expected true or false"),
    (_put("nodes.0.properties.0.name", "zzz"), "node:Paper: property 'body' does not exist"),
    (_put("nodes.0.constraints.0.kind", "rule"), "unknown constraint 'rule'"),
    (_put("nodes.0.constraints.0.field.name", "zzz"), "property 'zzz' does not exist"),
    (_put("nodes.0.constraints.0.field.property_id", 2), "field.property_id: got 2, expected 8"),
    (_put("nodes.0.constraints.0.pattern", 1), "pattern: expected a string"),
    (_put("nodes.0.annotations.0.value", 1), "value: expected a string"),
    (_put("nodes.0.implements.0.name", "Ghost"), "interface:Ghost does not exist"),
    (_put("nodes.0.implements.0.type_id", 2), "implements[0].type_id: got 2, expected 1"),
    (_unimplemented, "node:Paper.title cannot come from interface:Titled.title"),
    (_put("nodes.0.properties.5.satisfies", []), "does not satisfy interface:Titled.title"),
    (_put("edges.0.from_type.name", "Ghost"), "endpoint node:Ghost does not exist"),
    (_put("edges.0.to_type.type_id", 2), "to_type.type_id: got 2, expected 3"),
    (_put("edges.0.cardinality.max", 1.5), "max: expected a whole number"),
    (_put("edges.0.properties.0.declared_directly", False), "cannot come from an interface"),
    (_put("interfaces.0.properties.0.type.nullable", True), "does not satisfy interface:Titled.title"),
]


@pytest.mark.parametrize(("tamper", "reason"), TAMPERED)
def test_a_record_that_was_tampered_with_is_refused(tamper: Callable[[dict[str, Any]], None], reason: str) -> None:
    record = json.loads(json.dumps(_record()))
    tamper(record)
    with pytest.raises(IdentityError) as caught:
        SchemaIR.from_json(record)
    assert reason in str(caught.value)
    assert str(caught.value).startswith("schema identity record: ")


@pytest.mark.parametrize("record", [None, [], "x", 1, {}])
def test_text_that_is_no_record_is_rejected(record: Any) -> None:
    with pytest.raises(IdentityError):
        SchemaIR.from_json(record)
