"""Compare a type's constraints before and after a migration, no matter where they are written.

A constraint that existing data cannot violate is safe to add. Any other constraint requires a scan. A key can never
change, because it determines every entity's id.
"""

from collections.abc import Iterator, Mapping

from omnigraph.lang.schema.canonical_shape import constraint_columns
from omnigraph.lang.schema.catalog import Constraint, Index, Key, PropertyDefinition, Range, Unique

from .steps import (
    AddConstraint,
    ChangeIndexOptions,
    DropConstraint,
    MigrationStep,
    RestateConstraint,
    make_unsupported_change,
    rating_members,
)
from .type_pair import INLINE_CONSTRAINT_CLASSES, ConstraintsByKey, TypePair

_VALIDATION_CODES = {"unique": "OG-MF-107", "range": "OG-MF-108", "check": "OG-MF-109"}


def constraint_steps(type_pair: TypePair) -> Iterator[MigrationStep]:
    """Yield the steps for body constraints: refused key changes, drops, changed index options and additions."""
    if type_pair.has_rows:
        yield from _key_change_steps(type_pair)
    dropped, option_changes, added = _compare_constraints(type_pair)
    yield from (
        _drop_step(type_pair, constraint)
        for constraint in dropped
        if _find_inline_property(type_pair.surviving_properties, constraint) is None
    )
    for old_index, new_index in option_changes:
        yield ChangeIndexOptions(**type_pair.step_members, old=old_index, new=new_index)
    yield from (
        _add_step(type_pair, constraint)
        for constraint in added
        if _find_inline_property(type_pair.new_properties, constraint) is None
    )


def inline_constraint_steps(type_pair: TypePair) -> dict[str, list[MigrationStep]]:
    """Return the steps for inline constraints, keyed by property name."""
    steps_by_property: dict[str, list[MigrationStep]] = {}
    dropped, _, added = _compare_constraints(type_pair)
    for constraint in dropped:
        property_name = _find_inline_property(type_pair.surviving_properties, constraint)
        if property_name is not None:
            steps_by_property.setdefault(property_name, []).append(_drop_step(type_pair, constraint))
    for constraint in added:
        property_name = _find_inline_property(type_pair.new_properties, constraint)
        if property_name is not None:
            steps_by_property.setdefault(property_name, []).append(_add_step(type_pair, constraint))
    return steps_by_property


def dropped_column_steps(type_pair: TypePair) -> dict[str, list[MigrationStep]]:
    """Return the drop steps for constraints on dropped columns, keyed by the alphabetically first dropped column."""
    steps_by_column: dict[str, list[MigrationStep]] = {}
    for constraint in type_pair.old_constraints.values():
        dropped_columns = type_pair.dropped_names.intersection(constraint_columns(constraint))
        if dropped_columns and not _is_immutable_key(type_pair, constraint):
            steps_by_column.setdefault(min(dropped_columns), []).append(_drop_step(type_pair, constraint))
    return steps_by_column


def restate_steps(type_pair: TypePair, property_name: str) -> Iterator[MigrationStep]:
    """Yield the steps for those constraints on a property that only moved between the property and the body."""
    if not type_pair.has_rows:
        return  # an interface has no body constraints
    old_inline = type_pair.surviving_properties[property_name].inline_constraints
    new_inline = type_pair.new_properties[property_name].inline_constraints
    for constraint_name in sorted(set(old_inline) ^ set(new_inline)):
        restated_constraint = INLINE_CONSTRAINT_CLASSES[constraint_name]((property_name,))
        if _has_constraint(type_pair.old_constraints, restated_constraint) and _has_constraint(
            type_pair.new_constraints, restated_constraint
        ):
            on_property = constraint_name in new_inline
            yield RestateConstraint(
                **type_pair.step_members,
                property_name=property_name,
                constraint=restated_constraint,
                on_property=on_property,
            )


def key_columns(type_pair: TypePair) -> frozenset[str]:
    """Return the key columns in the new schema."""
    key_constraints = [
        key_constraint for key_constraint in type_pair.new_constraints.values() if isinstance(key_constraint, Key)
    ]
    return frozenset(column_name for key_constraint in key_constraints for column_name in key_constraint.columns)


_OptionChanges = list[tuple[Index, Index]]


def _compare_constraints(type_pair: TypePair) -> tuple[list[Constraint], _OptionChanges, list[Constraint]]:
    """Return the dropped constraints, changed indexes and added constraints.

    Keys are excluded, and so are constraints on dropped columns.
    """
    old_constraints, new_constraints = type_pair.old_constraints, type_pair.new_constraints
    dropped = [
        constraint
        for constraint_key, constraint in old_constraints.items()
        if constraint_key not in new_constraints and not _is_immutable_key(type_pair, constraint)
    ]
    dropped = [constraint for constraint in dropped if not _uses_dropped_column(type_pair, constraint)]
    added = [
        constraint
        for constraint_key, constraint in new_constraints.items()
        if constraint_key not in old_constraints and not _is_immutable_key(type_pair, constraint)
    ]
    option_changes = _pair_changed_indexes(dropped, added)
    paired_ids = {id(constraint) for index_pair in option_changes for constraint in index_pair}
    dropped, added = (
        [constraint for constraint in unpaired_side if id(constraint) not in paired_ids]
        for unpaired_side in (dropped, added)
    )
    return dropped, option_changes, added


def _pair_changed_indexes(dropped: list[Constraint], added: list[Constraint]) -> _OptionChanges:
    """Pair each dropped index with the first unpaired added index on the same columns."""
    option_changes: _OptionChanges = []
    unpaired_indexes = [constraint for constraint in added if isinstance(constraint, Index)]
    for old_index in (constraint for constraint in dropped if isinstance(constraint, Index)):
        new_index = next(
            (constraint for constraint in unpaired_indexes if constraint.columns == old_index.columns), None
        )
        if new_index is not None:
            unpaired_indexes.remove(new_index)
            option_changes.append((old_index, new_index))
    return option_changes


def _find_inline_property(properties: Mapping[str, PropertyDefinition], constraint: Constraint) -> str | None:
    """Return the property that a constraint is written on, or None if the constraint is in the body."""
    column_name, *other_columns = constraint_columns(constraint)
    definition = properties.get(column_name)
    if other_columns or definition is None or (isinstance(constraint, Index) and constraint.options):
        return None
    return column_name if type(constraint).__name__.lower() in definition.inline_constraints else None


def _has_constraint(constraints: ConstraintsByKey, target: Key | Unique | Index) -> bool:
    same_kind = [constraint for constraint in constraints.values() if type(constraint) is type(target)]
    return any(constraint_columns(constraint) == target.columns for constraint in same_kind)


def _uses_dropped_column(type_pair: TypePair, constraint: Constraint) -> bool:
    return not type_pair.dropped_names.isdisjoint(constraint_columns(constraint))


def _is_immutable_key(type_pair: TypePair, constraint: Constraint) -> bool:
    return type_pair.has_rows and isinstance(constraint, Key)


def _key_change_steps(type_pair: TypePair) -> Iterator[MigrationStep]:
    old_columns, new_columns = (
        next((constraint.columns for constraint in constraints.values() if isinstance(constraint, Key)), None)
        for constraints in (type_pair.old_constraints, type_pair.new_constraints)
    )
    if old_columns == new_columns:
        return
    if old_columns is None or new_columns is None:
        key_columns = ", ".join(old_columns or new_columns or ())
        change = f"@key({key_columns}) is {'added' if old_columns is None else 'removed'}"
    else:
        change = f"@key({', '.join(old_columns)}) becomes @key({', '.join(new_columns)})"
    reason = f"{change}: the id of every {type_pair.kind} would change"
    yield make_unsupported_change("OG-BC-101", type_pair.entity_label(), reason)


def _drop_step(type_pair: TypePair, constraint: Constraint) -> DropConstraint:
    code = "OG-CD-102" if isinstance(constraint, Index) else "OG-CD-101"
    return DropConstraint(
        **type_pair.step_members, constraint=constraint, **rating_members(code if type_pair.has_rows else None)
    )


def _add_step(type_pair: TypePair, constraint: Constraint) -> AddConstraint:
    validation_code = _VALIDATION_CODES.get(type(constraint).__name__.lower())
    code = None if _holds_for_existing_data(type_pair, constraint) else validation_code
    return AddConstraint(**type_pair.step_members, constraint=constraint, **rating_members(code))


def _holds_for_existing_data(type_pair: TypePair, constraint: Constraint) -> bool:
    """Return whether existing data is guaranteed to satisfy the constraint.

    The guarantee holds if there are no rows, if a column contains only nulls, or if an old constraint implies the new
    one.
    """
    if not type_pair.has_rows or any(
        _is_null_everywhere(type_pair, column) for column in constraint_columns(constraint)
    ):
        return True
    return any(_implies(old_constraint, constraint) for old_constraint in type_pair.old_constraints.values())


def _is_null_everywhere(type_pair: TypePair, column: str) -> bool:
    definition = type_pair.new_properties.get(column)
    return definition is not None and definition.type.nullable and column not in type_pair.surviving_properties


def _implies(old_constraint: Constraint, new_constraint: Constraint) -> bool:
    match old_constraint, new_constraint:
        case (Key(old_columns) | Unique(old_columns), Unique(new_columns)):
            return set(old_columns) <= set(new_columns)
        case Range(old_column, old_low, old_high), Range(new_column, new_low, new_high) if old_column == new_column:
            fits_below = new_low is None or (old_low is not None and old_low >= new_low)
            fits_above = new_high is None or (old_high is not None and old_high <= new_high)
            return fits_below and fits_above
    return False
