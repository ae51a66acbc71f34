"""Find values that do not fit the number types that a merged schema has chosen.

A property can have a different number type on each side, such as I64 and F64. If a decision chooses one side's type,
the other side's values are converted one by one. A value that the merged type cannot represent exactly is reported as a
conflict for its entity, and the merge writes nothing. Only properties whose number type differs between the sides are
read.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from omnigraph.errors import EntityConflict
from omnigraph.history.matched_types import TypeTransition, fits_type
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.missing_files import explain_missing_files
from omnigraph.history.snapshot import Snapshot
from omnigraph.storage.find_rows import read_rows
from omnigraph.values.table_key import TableKey

from .table_merge import Choice

MISFIT_KIND = "value_constraint_violation"


class SideTransitions(Protocol):
    """The changes that a merged schema makes to the types on each side."""

    @property
    def our_transitions(self) -> Mapping[TableKey, TypeTransition]:
        """The changes to the target's types."""

    @property
    def their_transitions(self) -> Mapping[TableKey, TypeTransition]:
        """The changes to the source's types."""


def find_misfits(merge_inputs: MergeInputs, merged: SideTransitions) -> tuple[EntityConflict, ...]:
    """Return a conflict for each value that does not fit.

    Our conflicts come first. Each side's conflicts are ordered by type, property and id.
    """
    ours = (merge_inputs.target_snapshot, "ours", merged.our_transitions)
    theirs = (merge_inputs.source_snapshot, "theirs", merged.their_transitions)
    return tuple(
        conflict
        for snapshot, side, transitions in (ours, theirs)
        for _, transition in sorted(transitions.items())
        for conflict in _misfits_of_type(snapshot, side, transition)  # type: ignore[arg-type]
    )


def _misfits_of_type(snapshot: Snapshot, side: Choice, transition: TypeTransition) -> Iterator[EntityConflict]:
    if not transition.narrowed_names:
        return
    with explain_missing_files(snapshot):
        rows = read_rows(snapshot.table(transition.old_key), ["id", *transition.narrowed_names.values()])
    for new_name, old_name in sorted(transition.narrowed_names.items()):
        values = rows[old_name].combine_chunks()
        positions = _misfit_positions(values, transition.row_schema.field(new_name).type, 0)
        misfits = sorted((rows["id"][position].as_py(), values[position].as_py()) for position in positions)
        merged_property = transition.new_type.property(new_name)
        type_text = "" if merged_property is None else merged_property.type.display()
        for entity_id, value in misfits:
            message = (
                f"on '{snapshot.branch}', {new_name} is {value!r}, which does not fit {type_text}; change the value on"
                " that branch, or resolve the schema conflict in favor of a type that can hold the value"
            )
            ours, theirs = ({new_name: value}, None) if side == "ours" else (None, {new_name: value})
            kind, type_name = transition.new_key.kind, transition.new_key.type_name
            yield EntityConflict(kind, type_name, entity_id, MISFIT_KIND, message, None, ours, theirs, (new_name,))


def _misfit_positions(values: pa.Array, new_type: pa.DataType, offset: int) -> Iterator[int]:
    """Find the values that do not fit by repeatedly splitting the array in half; yield their positions."""
    if fits_type(pa.chunked_array([values]), new_type):
        return
    if len(values) == 1:
        yield offset
        return
    middle = len(values) // 2
    yield from _misfit_positions(values.slice(0, middle), new_type, offset)
    yield from _misfit_positions(values.slice(middle), new_type, offset + middle)
