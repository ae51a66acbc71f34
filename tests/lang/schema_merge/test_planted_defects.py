"""Each planted defect in the merge is caught by a case of the truth table, by a text or by a random merge."""

from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.lang.schema import assign_identity
from omnigraph.lang.schema.merge import (
    merge,
    merge_constraints,
    merge_properties,
    merge_types,
    merged_source,
    numbering,
)
from omnigraph.lang.schema.merge.drop_conflicts import DropConflict
from omnigraph.lang.schema.merge.slots import BODY

from . import test_merge_cases, test_merged_text, test_numbers
from .cases import read_merge_cases

Patch = pytest.MonkeyPatch
CASES = {case.title: case for case in read_merge_cases()}


def _last_writer_wins(patch: Patch) -> None:
    """Differing changes of one slot are not noticed."""
    patch.setattr(merge_properties, "merge_slot", lambda log, kind, subject, states, describe: states[1])


def _removals_come_back(patch: Patch) -> None:
    """A set is merged as a union."""
    patch.setattr(merge_properties, "merge_sets", lambda base, ours, theirs: ours | theirs)


def _dropped_constraints_come_back(patch: Patch) -> None:
    """The union of the constraints of both sides is taken."""
    patch.setattr(merge_constraints, "merge_sets", lambda base, ours, theirs: ours | theirs)


def _replaced_constraints_combine(patch: Patch) -> None:
    """Contradicting constraints are both kept."""
    patch.setattr(merge_constraints, "_contradict", lambda *states, is_new_type: False)


def _drops_always_win(patch: Patch) -> None:
    """A drop wins even if the other side changed what is dropped."""
    patch.setattr(merge, "find_contradicted_drop", lambda *_: None)


def _references_are_not_followed(patch: Patch) -> None:
    """A new edge type may end at a dropped node type."""
    patch.setattr(merge, "find_broken_reference", lambda sides, merged: None)


def _names_are_not_compared(patch: Patch) -> None:
    """A rename and an addition may use one name."""
    patch.setattr(merge, "find_name_conflict", lambda sides, merged: None)


def _decisions_are_turned_round(patch: Patch) -> None:
    """The side that drops something wins if the other one was chosen."""
    settle = DropConflict.settle

    def settle_other(conflict: DropConflict, log: Any, sides: Any) -> Any:
        decide = log.decide
        log.decide = (
            None
            if decide is None
            else lambda conflict_record: {"ours": "theirs", "theirs": "ours"}[decide(conflict_record)]
        )
        outcome = settle(conflict, log, sides)
        log.decide = decide
        return outcome

    patch.setattr(DropConflict, "settle", settle_other)


def _ids_are_counted(patch: Patch) -> None:
    """Every branch assigns the next number to what it adds."""
    patch.setattr(assign_identity, "derive_id", lambda domain, kind, owner, name, taken: max(taken) + 1)


def _replaced_properties_are_the_same(patch: Patch) -> None:
    """Properties with one number and different types are taken for one property."""
    patch.setattr(
        merge, "separate_unlike_properties", lambda base, ours, theirs: numbering.SeparatedSides(base, theirs, {})
    )


def _missing_values_are_ignored(patch: Patch) -> None:
    """A required property of one side may lack values on the other."""
    patch.setattr(merge_types._TypeMerger, "_is_wanted", lambda *arguments: True)


def _forms_get_lost(patch: Patch) -> None:
    """Every constraint is written in the body."""
    patch.setattr(merge_constraints, "_merge_forms", lambda *contents: frozenset({BODY}))


def _hints_stay(patch: Patch) -> None:
    """Rename hints stay in the text."""
    patch.setattr(merged_source, "remove_rename_hints", lambda text: text)


def _their_text_always_wins(patch: Patch) -> None:
    """A comment that we changed is lost."""
    patch.setattr(merged_source, "choose_item", lambda candidates, base_item: candidates[-1])


def _pair(title: str) -> Callable[[], None]:
    return lambda: test_merge_cases.test_a_pair_of_changes(CASES[title])


def _decision(title: str) -> Callable[[], None]:
    return lambda: test_merge_cases.test_a_decided_conflict_takes_the_side(CASES[title])


def _text(title: str) -> Callable[[], None]:
    (text,) = (text for text in test_merged_text.TEXTS if text.startswith(title))
    return lambda: test_merged_text.test_a_merged_text(text)


DEFECTS: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (_last_writer_wins, _pair("both sides rename differently")),
    (_removals_come_back, _pair("values are added and removed")),
    (_dropped_constraints_come_back, _pair("each side drops another constraint")),
    (_replaced_constraints_combine, _pair("both sides change a range")),
    (_drops_always_win, _pair("a drop and a wider type")),
    (_references_are_not_followed, _pair("a dropped node type and a new edge type")),
    (_names_are_not_compared, _pair("a rename takes the name of a new type")),
    (_decisions_are_turned_round, _decision("a drop and a rename")),
    (_ids_are_counted, test_numbers.test_additions_of_both_sides_never_share_a_number),
    (
        _replaced_properties_are_the_same,
        test_numbers.test_a_property_that_an_earlier_merge_replaced_counts_as_dropped,
    ),
    (_missing_values_are_ignored, _pair("both sides add a type, once with another required property")),
    (_forms_get_lost, _pair("each side adds an index")),
    (_hints_stay, _text("rename hints are left out")),
    (_their_text_always_wins, _text("a comment changed on one side")),
]


@pytest.mark.parametrize(("plant", "check"), DEFECTS, ids=lambda part: getattr(part, "__name__", ""))
def test_a_planted_defect_is_caught(plant: Callable[[Patch], None], check: Callable[[], None]) -> None:
    check()
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises((AssertionError, KeyError)):
            check()
