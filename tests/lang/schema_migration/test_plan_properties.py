"""Properties that hold for every pair of schemas."""

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from omnigraph.errors import IdentityError
from omnigraph.lang.schema.assign_identity import new_identity, resolve_identity
from omnigraph.lang.schema.canonical_shape import canonical_shape, compact_json, shape_hash
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.codes import CODES
from omnigraph.lang.schema.ir import SchemaIR, catalog_types, hash_ir
from omnigraph.lang.schema.migrate import MigrationPlan, UnsupportedChange, describe_step, plan_migration

from .apply_steps import apply_steps, sorted_constraints, without_positions
from .catalogs import catalogs, neighbors

DOMAIN = "01HZZZZZZZZZZZZZZZZZZZZZZZ"


def _planned(before: Catalog, after: Catalog) -> MigrationPlan:
    try:
        return plan_migration(new_identity(before, DOMAIN), after)
    except IdentityError:
        assume(False)
        raise


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(neighbors())
def test_a_plan_is_deterministic_and_leads_to_the_desired_schema(pair: tuple[Catalog, Catalog]) -> None:
    before, after = pair
    plan, again = _planned(before, after), _planned(before, after)
    assert compact_json(plan.to_json()) == compact_json(again.to_json())
    assert hash_ir(plan.ir) == hash_ir(again.ir)
    assert shape_hash(plan.ir.catalog) == shape_hash(after)
    assert plan.steps or shape_hash(before) == shape_hash(after)
    assert SchemaIR.from_json(plan.ir.to_json()) == plan.ir
    _assert_numbers_follow_names(new_identity(before, DOMAIN), plan.ir)
    _assert_steps_are_rated(plan)
    _assert_nothing_left_to_do(plan.ir)


def _assert_nothing_left_to_do(ir: SchemaIR) -> None:
    plan = plan_migration(ir, ir.catalog)
    assert (plan.supported, plan.steps, plan.warnings) == (True, (), ())
    assert hash_ir(plan.ir) == hash_ir(ir)


def _assert_steps_are_rated(plan: MigrationPlan) -> None:
    for step in plan.steps:
        assert step.code is None or step.code in CODES
        assert (step.code is None) == (step.severity is None)
        assert step.tier == "safe" or step.code is not None
        assert describe_step(step).splitlines() == [describe_step(step)]
    refused = [step for step in plan.steps if isinstance(step, UnsupportedChange)]
    assert all(step.code is not None for step in refused)
    assert plan.supported == (not refused) == (plan.refusal() is None)


def _assert_numbers_follow_names(old: SchemaIR, new: SchemaIR) -> None:
    names = {(one.kind, one.name) for one in catalog_types(new.catalog)}
    for was in (one for one in old.type_identities if (one.kind, one.name) in names):
        now = new.identity(was.kind, was.name)
        assert (was.type_id, was.table_incarnation_id) == (now.type_id, now.table_incarnation_id)
        both = dict(was.property_ids).keys() & dict(now.property_ids).keys()
        assert all(dict(was.property_ids)[p] == dict(now.property_ids)[p] for p in both)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(neighbors())
def test_executing_a_supported_plan_yields_the_desired_shape(pair: tuple[Catalog, Catalog]) -> None:
    before, after = pair
    plan = _planned(before, after)
    assume(plan.supported)
    steps = plan.to_json()["steps"]
    for step in steps:
        event(step["kind"])
    found = apply_steps(canonical_shape(before), steps, canonical_shape(after))
    assert without_positions(found) == without_positions(sorted_constraints(canonical_shape(after)))


def _numbers(ir: SchemaIR) -> dict[int, str]:
    found: dict[int, str] = {}
    for one in ir.type_identities:
        found[one.type_id] = f"type of {one.kind}"
        if one.table_incarnation_id is not None:
            found[one.table_incarnation_id] = f"table of {one.type_id}"
        found |= {number: f"property of {one.type_id}" for _, number in one.property_ids}
    return found


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(catalogs(), min_size=2, max_size=4))
def test_type_and_property_ids_are_never_reused(history: list[Catalog]) -> None:
    ir = new_identity(history[0], DOMAIN)
    meaning = _numbers(ir)
    gone: set[int] = set()
    for catalog in history[1:]:
        last, ir = ir, resolve_identity(ir, catalog, retired_ids=frozenset(gone)).ir
        now = _numbers(ir)
        assert ir.next_identity_id >= last.next_identity_id
        gone |= _numbers(last).keys() - now.keys()
        assert not gone & now.keys()
        assert all(meaning.setdefault(number, what) == what for number, what in now.items())
