"""The migration cases: planned steps, identities, warnings and refusals, as text fixtures."""

import pytest

from omnigraph.errors import IdentityError
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from omnigraph.lang.schema.canonical_shape import compact_json
from omnigraph.lang.schema.derived_ids import is_derived
from omnigraph.lang.schema.ir import SchemaIR, assigned_ids, ordered_key_columns
from omnigraph.lang.schema.migrate import MigrationPlan, MigrationStep, UnsupportedChange, describe_step, plan_migration

from .cases import Case, read_cases

CASES = read_cases()
SECTIONS = {"before", "after", "steps", "lines", "ids", "identity", "warnings"}
DOMAIN = "01HZZZZZZZZZZZZZZZZZZZZZZZ"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_migration_case(case: Case) -> None:
    before = new_identity(compile_schema(case.sections["before"]), DOMAIN)
    if "after" not in case.sections:
        assert _found_ids(before, case.lines("ids")) == case.lines("ids")
        return
    after = compile_schema(case.sections["after"])
    if "identity" in case.sections:
        _assert_refused(case, before, case.sections["after"])
        return
    plan = plan_migration(before, after, allow_data_loss=case.allows_data_loss)
    assert [_line(step) for step in plan.steps] == case.lines("steps")
    _assert_extras(case, plan)


def _line(step: MigrationStep) -> str:
    if isinstance(step, UnsupportedChange):
        return f"unsupported {step.code} {step.entity}"
    return compact_json(step.to_json())


def _assert_extras(case: Case, plan: MigrationPlan) -> None:
    assert [f"{one.line}:{one.column} {one.code}" for one in plan.warnings] == case.lines("warnings")
    if "lines" in case.sections:
        assert [describe_step(step) for step in plan.steps] == case.lines("lines")
    if "ids" in case.sections:
        assert _found_ids(plan.ir, case.lines("ids")) == case.lines("ids")


def _assert_refused(case: Case, before: SchemaIR, text: str) -> None:
    """Each line of the section is one finding: its place, then phrases of message and hint."""
    with pytest.raises(IdentityError) as caught:
        plan_migration(before, compile_schema(text))
    found = [one for one in caught.value.diagnostics if one.severity == "error"]
    assert all(one.kind == "identity" for one in found)
    expected = [line.split(" | ") for line in case.lines("identity")]
    assert [f"{one.line}:{one.column}" for one in found] == [place for place, *_ in expected]
    for one, (_, *phrases) in zip(found, expected, strict=True):
        for phrase in phrases:
            assert phrase in f"{one.message} / {one.hint}"


def _found_ids(ir: SchemaIR, asked: list[str]) -> list[str]:
    """Answers lines such as `node:A.x 4`, `table node:A 6`, `node:A.y derived`, `key A x y`, `next 9`."""

    def shown(number: int | None) -> str:
        return "derived" if number is not None and is_derived(number - 1) else str(number)

    assert len(set(assigned_ids(ir))) == len(assigned_ids(ir))
    known = {"next": shown(ir.next_identity_id)}
    for one in ir.type_identities:
        entity = f"{one.kind}:{one.name}"
        known[entity] = shown(one.type_id)
        known[f"table {entity}"] = shown(one.table_incarnation_id)
        known |= {f"{entity}.{name}": shown(number) for name, number in one.property_ids}
    for node in ir.catalog.nodes:
        known[f"key {node.name}"] = " ".join(ordered_key_columns(ir, node.name))
    for edge in ir.catalog.edges:
        known[f"key {edge.name}"] = " ".join(ordered_key_columns(ir, edge.name, "edge"))
    words = [max((name for name in known if f"{line} ".startswith(f"{name} ")), key=len) for line in asked]
    return [f"{word} {known[word]}" for word in words]


def test_every_case_is_complete() -> None:
    assert len({str(case) for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.sections.keys() <= SECTIONS, case
        assert {"before"} < case.sections.keys(), case
        assert {"steps", "ids", "identity"} & case.sections.keys(), case


def test_added_and_dropped_property_of_the_same_type_look_like_a_rename() -> None:
    def reasons(before: str, after: str) -> list[str]:
        steps = plan_migration(compile_schema(before), compile_schema(after)).steps
        return [step.reason for step in steps if isinstance(step, UnsupportedChange)]

    (reason,) = reasons("node A { note: String  n: I32 }", "node A { text: String  extra: I32? }")
    assert reason.endswith('; if it was renamed from note, add @rename_from("note")')
    (reason,) = reasons("node A { note: String  memo: String }", "node A { text: String }")
    assert "rename" not in reason
