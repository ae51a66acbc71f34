"""Laws of schema merges, and a model on dictionaries that predicts every merge."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from omnigraph.errors import LanguageError
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.merge import SchemaVersion, merge_schemas
from tests.lang.schema_properties.random_trees import noisy

from .random_changes import Change, Editor, change_lists, first_models
from .slot_model import ModelConflictError, ModelSchema, merge_models, names_of, pair_additions, reuses_name, write_text
from .versions import States, assert_sound, catalog_of, first_version, mirrored, next_version, states

_unchecked = [HealthCheck.too_slow, HealthCheck.filter_too_much]
_laws = settings(suppress_health_check=_unchecked, deadline=None, max_examples=30)


def _evolve(
    base: SchemaVersion, model: ModelSchema, changes: list[list[Change]], prefix: str
) -> tuple[SchemaVersion, ModelSchema]:
    """Return a side after several schema changes, each with a few edits; invalid schemas are skipped."""
    editor = Editor(model, prefix)
    version, schema = base, model
    for step in changes:
        for change in step:
            editor.apply(change)
        if not reuses_name(schema, editor.schema):
            try:
                version = next_version(version, [write_text(editor.schema, names_of(schema))])
                schema = editor.schema
            except LanguageError:
                pass
        editor.schema = schema.copy()
    return version, schema


def _first(model: ModelSchema) -> SchemaVersion:
    try:
        return first_version(write_text(model))
    except LanguageError:
        assume(False)
        raise


@_laws
@given(first_models(), change_lists)
def test_one_sided_changes_are_taken_as_they_are(model: ModelSchema, changes: list[list[Change]]) -> None:
    base = _first(model)
    changed, _ = _evolve(base, model, changes, "side")
    for merge in (merge_schemas(base, changed, base), merge_schemas(base, base, changed)):
        assert (merge.source, merge.ir, merge.conflicts) == (changed.source, changed.ir, ())
    if changed.source != base.source:
        same = merge_schemas(base, changed, changed)
        assert (same.ir, same.their_ir, same.conflicts) == (changed.ir, changed.ir, ())
    commented = SchemaVersion(f"// another comment\n\n{base.source}", base.ir)
    merge = merge_schemas(base, commented, changed)
    assert (merge.ir, merge.conflicts) == (changed.ir, ())


@_laws
@given(first_models(), change_lists, change_lists)
def test_the_model_predicts_the_merge(
    model: ModelSchema, our_changes: list[list[Change]], their_changes: list[list[Change]]
) -> None:
    check_prediction(model, our_changes, their_changes)


@pytest.mark.full
@settings(_laws, max_examples=400)
@given(first_models(), change_lists, change_lists)
def test_the_model_predicts_many_merges(
    model: ModelSchema, our_changes: list[list[Change]], their_changes: list[list[Change]]
) -> None:
    check_prediction(model, our_changes, their_changes)


def check_prediction(model: ModelSchema, our_changes: list[list[Change]], their_changes: list[list[Change]]) -> None:
    """Merge two random sides, and compare the outcome with the model's."""
    base = _first(model)
    ours, our_model = _evolve(base, model, our_changes, "ours")
    theirs, their_model = _evolve(base, model, their_changes, "theirs")
    merge = merge_schemas(base, ours, theirs)
    assert_sound(base, ours, theirs, merge)
    expected = _predict(model, our_model, their_model)
    event("clean" if expected is not None else "conflict")
    assert (expected is None) == bool(merge.conflicts), merge.conflicts
    if expected is not None:
        assert merge.ir.catalog == catalog_of(write_text(expected))
        _assert_numbers_follow(
            _numbers(expected, merge.ir),
            _numbers(our_model, ours.ir),
            _numbers(pair_additions(model, our_model, their_model), merge.their_ir),
        )
        if base.source not in (ours.source, theirs.source):
            assert "@rename_from" not in merge.source
            _assert_comments_survive(expected, merge.source)
    swapped = merge_schemas(base, theirs, ours)
    _assert_mirrored(Counter(map(states, swapped.conflicts)), Counter(map(mirrored, merge.conflicts)))
    if not merge.conflicts:
        assert swapped.ir.catalog == merge.ir.catalog


def _assert_mirrored(swapped: Counter[States], expected: Counter[States]) -> None:
    """The conflicts are the same, except for those that only follow from an open one."""
    differences = (swapped - expected) + (expected - swapped)
    assert {kind for kind, *_ in differences} <= {"name_taken", "dropped_and_changed"}
    assert swapped & expected or not differences


def _predict(base: ModelSchema, ours: ModelSchema, theirs: ModelSchema) -> ModelSchema | None:
    """Return the merged schema, or None if the sides conflict or the merged schema is invalid."""
    try:
        merged = merge_models(base, ours, theirs)
        compile_schema(write_text(merged))
    except (ModelConflictError, LanguageError):
        return None
    return merged


def _numbers(model: ModelSchema, ir: SchemaIR) -> dict[tuple[str, ...], int]:
    """Return the number of everything in a model, with inherited properties."""
    numbers: dict[tuple[str, ...], int] = {}
    for type_id in model.types():
        kind, name = model.slots["type", type_id], model.of_type(type_id, "name")
        numbers[type_id,] = ir.type_id(kind, name)
        for column, column_name in model.columns(type_id).items():
            numbers[type_id, column] = ir.property_id(kind, name, column_name)
    return numbers


def _assert_numbers_follow(
    merged: dict[tuple[str, ...], int], ours: dict[tuple[str, ...], int], theirs: dict[tuple[str, ...], int]
) -> None:
    """Everything keeps the number that the side has from which it comes; no two things share one."""
    for entity, number in merged.items():
        assert number == ours.get(entity, number)
        assert number == theirs.get(entity, number)
    assert len(set(merged.values())) == len(merged)


def _assert_comments_survive(merged: ModelSchema, source: str) -> None:
    """Whatever the base declares keeps its comment."""
    for type_id in merged.types():
        if type_id.startswith("base"):
            assert source.count(f"// {type_id}\n") == 1
        for number in merged.properties(type_id):
            if number.startswith("base"):
                assert source.count(f"// {type_id}.{number}\n") == 1


@_laws
@given(first_models(), change_lists, change_lists, st.sampled_from(["ours", "theirs"]))
def test_decisions_leave_only_unresolvable_conflicts(
    model: ModelSchema, our_changes: list[list[Change]], their_changes: list[list[Change]], side: str
) -> None:
    base = _first(model)
    ours, _ = _evolve(base, model, our_changes, "ours")
    theirs, _ = _evolve(base, model, their_changes, "theirs")
    merge = merge_schemas(base, ours, theirs, lambda _: side)
    assert_sound(base, ours, theirs, merge)
    assert {conflict.kind for conflict in merge.conflicts} <= {"unresolvable"}
    assert {decision for _, decision in merge.resolved} <= {side}
    undecided = merge_schemas(base, ours, theirs)
    assert bool(undecided.conflicts) == bool(merge.conflicts or merge.resolved)


@_laws
@given(first_models(), change_lists, change_lists, st.data())
def test_comments_and_spaces_anywhere_change_nothing(
    model: ModelSchema, our_changes: list[list[Change]], their_changes: list[list[Change]], data: st.DataObject
) -> None:
    base = _first(model)
    ours, _ = _evolve(base, model, our_changes, "ours")
    theirs, _ = _evolve(base, model, their_changes, "theirs")
    noisy_base, noisy_ours, noisy_theirs = (
        SchemaVersion(data.draw(noisy(side.source)), side.ir) for side in (base, ours, theirs)
    )
    plain, noisy_merge = merge_schemas(base, ours, theirs), merge_schemas(noisy_base, noisy_ours, noisy_theirs)
    assert (noisy_merge.ir, noisy_merge.conflicts) == (plain.ir, plain.conflicts)
    assert catalog_of(noisy_merge.source) == noisy_merge.ir.catalog
