"""Identity of types and properties over many schemas. Single changes are in `cases/migrate`."""

import pytest

from omnigraph.errors import IdentityError
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import find_inert_hints, new_identity, resolve_identity
from omnigraph.lang.schema.ir import SchemaIR, assigned_ids, hash_ir, ordered_key_columns
from omnigraph.lang.schema.migrate import plan_migration

DOMAIN = "01HZZZZZZZZZZZZZZZZZZZZZZZ"
OTHER = "01J00000000000000000000000"


def _history(*texts: str) -> SchemaIR:
    ir = new_identity(compile_schema(texts[0]), DOMAIN)
    retired: frozenset[int] = frozenset()
    for text in texts[1:]:
        accepted, ir = ir, resolve_identity(ir, compile_schema(text), retired_ids=retired).ir
        retired |= {*assigned_ids(accepted)} - {*assigned_ids(ir)}
    return ir


def test_dropped_and_declared_again_is_a_new_type_with_a_new_table() -> None:
    first = _history("node A { x: I32 } node B {}").identity("node", "A")
    again = _history("node A { x: I32 } node B {}", "node B {}", "node A { x: I32 } node B {}")
    second = again.identity("node", "A")
    assert second.type_id > first.type_id
    assert second.table_incarnation_id != first.table_incarnation_id
    assert set(dict(second.property_ids).values()).isdisjoint(dict(first.property_ids).values())
    assert again.type_id("node", "B") == _history("node A { x: I32 } node B {}").type_id("node", "B")


def test_redeclared_property_is_a_new_property() -> None:
    ir = _history("node A { x: I32 }", "node A {}", "node A { x: I32 }")
    assert ir.property_id("node", "A", "x") != _history("node A { x: I32 }").property_id("node", "A", "x")
    again = _history("node A { x: I32 }", "node A {}", "node A { x: I32 }", "node A {}", "node A { x: I32 }")
    assert again.property_id("node", "A", "x") != ir.property_id("node", "A", "x")


def test_the_same_addition_has_the_same_id_on_every_branch() -> None:
    base = "node A { x: I32 }"
    direct = _history(base, "node A { x: I32  y: I32? }")
    after_another = _history(base, "node A { x: I32  z: I32? }", "node A { x: I32  y: I32?  z: I32? }")
    assert direct.property_id("node", "A", "y") == after_another.property_id("node", "A", "y")
    assert direct.property_id("node", "A", "y") != after_another.property_id("node", "A", "z")


def test_a_key_keeps_its_order_over_any_renames() -> None:
    texts = [
        "node A { a: I32  b: I32  @key(a, b) }",
        'node A { z: I32 @rename_from("a")  b: I32  @key(z, b) }',
        'node A { z: I32  y: I32 @rename_from("b")  @key(z, y) }',
        'node C @rename_from("A") { z: I32  y: I32  @key(z, y) }',
    ]
    assert ordered_key_columns(_history(*texts), "C") == ("z", "y")
    assert ordered_key_columns(_history("node C { z: I32  y: I32  @key(z, y) }"), "C") == ("y", "z")


def test_a_type_without_key_has_no_key_order() -> None:
    assert ordered_key_columns(_history("node A { x: I32 }"), "A") == ()


def test_equivalent_schemas_have_the_same_record() -> None:
    one = new_identity(compile_schema("node B { x: I32 } node A {}"), DOMAIN)
    other = new_identity(compile_schema('node A {} node B @rename_from("Z") { x: I32 }'), DOMAIN)
    assert hash_ir(one) == hash_ir(other)
    assert hash_ir(one) != hash_ir(new_identity(compile_schema("node B { x: I32 } node A {}"), OTHER))


def test_rename_hints_in_a_first_schema_are_reported_and_ignored() -> None:
    catalog = compile_schema('interface I { x: I32 @rename_from("w") }\nnode A @rename_from("B") implements I {}')
    assert new_identity(catalog, DOMAIN).next_identity_id == 6
    found = find_inert_hints(catalog, "new.pg")
    assert [(one.line, one.column, one.code) for one in found] == [
        (1, 15, "inert_initialization_rename_hint"),
        (2, 1, "inert_initialization_rename_hint"),
    ]
    assert all((one.severity, one.kind) == ("warning", "identity") for one in found)


def test_error_shows_the_source_with_its_name() -> None:
    before = new_identity(compile_schema("node A {}"), DOMAIN)
    text = 'node A {}\nnode B @rename_from("Nope") {}'
    with pytest.raises(IdentityError) as caught:
        plan_migration(before, compile_schema(text), source_name="next.pg")
    assert str(caught.value).startswith("next.pg:2:1: error: @rename_from on node:B")
    assert 'node B @rename_from("Nope") {}' in str(caught.value)


def test_a_refused_plan_becomes_an_error_that_quotes_its_first_refusal() -> None:
    plan = plan_migration(compile_schema("node A { x: String  y: I32 }"), compile_schema("node A { x: I32  y: Bool }"))
    error = plan.refusal()
    assert error is not None
    assert str(error) == "[OG-MF-106] node:A.x: String cannot become I32 (and 1 more)"
    assert [step["code"] for step in error.to_json()["steps"]] == ["OG-MF-106", "OG-MF-106"]


def test_plan_json_has_the_expected_form() -> None:
    plan = plan_migration(compile_schema("node A {}"), compile_schema('node A @rename_from("Z") {}\nnode B {}'))
    found = plan.to_json()
    assert list(found) == ["supported", "step_count", "steps", "warnings"]
    assert (found["supported"], found["step_count"]) == (True, 1)
    assert found["steps"] == [{"kind": "add_type", "type_kind": "node", "name": "B", "tier": "safe"}]
    assert [one["code"] for one in found["warnings"]] == ["ignored_exact_match_rename_hint"]
