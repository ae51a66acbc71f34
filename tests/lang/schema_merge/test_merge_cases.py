"""The truth table of schema merges: pairs of changes, in both orders and with every decision."""

import pytest

from omnigraph.lang.schema.merge import SchemaConflict, SchemaMerge, merge_schemas

from .cases import MergeCase, read_merge_cases
from .versions import assert_sound, catalog_of, first_version, mirrored, next_version, states

CASES = read_merge_cases()


def _merge(case: MergeCase, decision: str | None = None, *, swapped: bool = False) -> SchemaMerge:
    base = first_version(case.only("base") or "")
    ours, theirs = (next_version(base, case.all_of(side)) for side in ("ours", "theirs"))
    if swapped:
        ours, theirs = theirs, ours
    merge = merge_schemas(base, ours, theirs, None if decision is None else lambda _: decision)
    assert_sound(base, ours, theirs, merge)
    return merge


def _expected_conflicts(case: MergeCase) -> list[SchemaConflict]:
    conflicts = []
    for row in case.all_of("conflict"):
        head, *described = (part.strip() for part in row.split(" | "))
        kind, subject = head.split(" ")
        base, ours, theirs = (None if state == "-" else state for state in described)
        conflicts.append(SchemaConflict(kind, subject, base, ours, theirs))  # type: ignore[arg-type]
    for row in case.all_of("unresolvable"):
        subject, reason = row.split(" ", 1)
        conflicts.append(SchemaConflict("unresolvable", subject, reason=reason))
    return conflicts


def test_there_are_enough_cases_and_each_has_a_verdict() -> None:
    assert len(CASES) >= 100
    for case in CASES:
        verdicts = [label for label in ("merged", "conflict", "unresolvable") if case.all_of(label)]
        assert len(verdicts) == 1, case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_pair_of_changes(case: MergeCase) -> None:
    merge = _merge(case)
    assert list(merge.conflicts) == _expected_conflicts(case)
    assert merge.resolved == ()
    if case.only("merged") is not None:
        assert merge.ir.catalog == catalog_of(case.only("merged") or "")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_swapped_sides_merge_alike(case: MergeCase) -> None:
    merge, swapped = _merge(case), _merge(case, swapped=True)
    decidable = [conflict for conflict in merge.conflicts if conflict.kind != "unresolvable"]
    assert sorted(map(str, map(states, swapped.conflicts))) == sorted(map(str, map(mirrored, merge.conflicts)))
    if not merge.conflicts:
        assert swapped.ir.catalog == merge.ir.catalog
    assert all(conflict.subject for conflict in decidable)


@pytest.mark.parametrize("case", [case for case in CASES if case.all_of("conflict")], ids=str)
def test_a_decided_conflict_takes_the_side(case: MergeCase) -> None:
    for decision, opposite in (("ours", "theirs"), ("theirs", "ours")):
        expected = case.only(f"if {decision}")
        if expected is None:
            continue
        merge = _merge(case, decision)
        assert merge.conflicts == ()
        assert {side for _, side in merge.resolved} == {decision}
        assert merge.ir.catalog == catalog_of(expected)
        assert _merge(case, opposite, swapped=True).ir.catalog == merge.ir.catalog
