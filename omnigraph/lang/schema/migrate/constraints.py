"""Compares the constraints of one type before and after, regardless of where they are written.

A constraint that existing data satisfies by definition is safe to add; any other needs a scan. A
key never changes: it determines the id of every node.
"""

from collections.abc import Iterator, Mapping

from omnigraph.lang.schema.catalog import Constraint, Index, Key, Property, Range, Unique
from omnigraph.lang.schema.shape import columns_of

from .pair import MARKS, Constraints, Pair
from .steps import (
    AddConstraint,
    ChangeIndexOptions,
    DropConstraint,
    RestateConstraint,
    Step,
    rated,
    unsupported,
)

_DEMANDS = {"unique": "OG-MF-107", "range": "OG-MF-108", "check": "OG-MF-109"}


def constraint_steps(pair: Pair) -> Iterator[Step]:
    """Return the steps for body constraints: drops, changed options, additions."""
    if pair.has_rows:
        yield from _key_step(pair)
    gone, changed, added = _differences(pair)
    yield from (_drop(pair, one) for one in gone if _marked(pair.survivors, one) is None)
    for was, now in changed:
        yield ChangeIndexOptions(**pair.at, old=was, new=now)
    yield from (_add(pair, one) for one in added if _marked(pair.after_properties, one) is None)


def marked_steps(pair: Pair) -> dict[str, list[Step]]:
    """Return the steps for constraints written inline, by property name."""
    found: dict[str, list[Step]] = {}
    gone, _, added = _differences(pair)
    for one in gone:
        name = _marked(pair.survivors, one)
        if name is not None:
            found.setdefault(name, []).append(_drop(pair, one))
    for one in added:
        name = _marked(pair.after_properties, one)
        if name is not None:
            found.setdefault(name, []).append(_add(pair, one))
    return found


def orphan_steps(pair: Pair) -> dict[str, list[Step]]:
    """Return the drops of constraints that use dropped columns, by their first dropped column."""
    found: dict[str, list[Step]] = {}
    for one in pair.old_constraints.values():
        gone = pair.dropped_names.intersection(columns_of(one))
        if gone and not _is_fixed(pair, one):
            found.setdefault(min(gone), []).append(_drop(pair, one))
    return found


def restated(pair: Pair, name: str) -> Iterator[Step]:
    """Return the steps for constraints of one property that only moved between inline and body."""
    if not pair.has_rows:
        return  # an interface has no body constraints
    was, now = pair.survivors[name].marks, pair.after_properties[name].marks
    for word in sorted(set(was) ^ set(now)):
        target = MARKS[word]((name,))
        if _holds(pair.old_constraints, target) and _holds(pair.new_constraints, target):
            on = word in now
            yield RestateConstraint(
                **pair.at, property_name=name, constraint=target, on_property=on
            )


def key_columns(pair: Pair) -> frozenset[str]:
    """Return the key columns in the new schema."""
    keys = [one for one in pair.new_constraints.values() if isinstance(one, Key)]
    return frozenset(name for one in keys for name in one.columns)


_Options = list[tuple[Index, Index]]


def _differences(pair: Pair) -> tuple[list[Constraint], _Options, list[Constraint]]:
    """Return dropped, changed and added constraints, without dropped columns and keys."""
    old, new = pair.old_constraints, pair.new_constraints
    gone = [one for key, one in old.items() if key not in new and not _is_fixed(pair, one)]
    gone = [one for one in gone if not _is_orphan(pair, one)]
    added = [one for key, one in new.items() if key not in old and not _is_fixed(pair, one)]
    changed = _changed_options(gone, added)
    paired = {id(one) for both in changed for one in both}
    gone, added = ([o for o in side if id(o) not in paired] for side in (gone, added))
    return gone, changed, added


def _changed_options(gone: list[Constraint], added: list[Constraint]) -> _Options:
    """Return pairs of indexes over the same columns, in order."""
    found: _Options = []
    waiting = [one for one in added if isinstance(one, Index)]
    for was in (one for one in gone if isinstance(one, Index)):
        now = next((one for one in waiting if one.columns == was.columns), None)
        if now is not None:
            waiting.remove(now)
            found.append((was, now))
    return found


def _marked(properties: Mapping[str, Property], one: Constraint) -> str | None:
    """Return the property on which a constraint is written inline, or None for the body."""
    name, *more = columns_of(one)
    found = properties.get(name)
    if more or found is None or (isinstance(one, Index) and one.options):
        return None
    return name if type(one).__name__.lower() in found.marks else None


def _holds(constraints: Constraints, wanted: Key | Unique | Index) -> bool:
    found = [one for one in constraints.values() if type(one) is type(wanted)]
    return any(columns_of(one) == wanted.columns for one in found)


def _is_orphan(pair: Pair, constraint: Constraint) -> bool:
    return not pair.dropped_names.isdisjoint(columns_of(constraint))


def _is_fixed(pair: Pair, constraint: Constraint) -> bool:
    return pair.has_rows and isinstance(constraint, Key)


def _key_step(pair: Pair) -> Iterator[Step]:
    was, now = (
        next((one.columns for one in side.values() if isinstance(one, Key)), None)
        for side in (pair.old_constraints, pair.new_constraints)
    )
    if was == now:
        return
    if was is None or now is None:
        what = f"@key({', '.join(was or now or ())}) is {'added' if was is None else 'removed'}"
    else:
        what = f"@key({', '.join(was)}) becomes @key({', '.join(now)})"
    yield unsupported("OG-BC-101", pair.entity(), f"{what}: the id of every node would change")


def _drop(pair: Pair, constraint: Constraint) -> DropConstraint:
    code = "OG-CD-102" if isinstance(constraint, Index) else "OG-CD-101"
    return DropConstraint(
        **pair.at, constraint=constraint, **rated(code if pair.has_rows else None)
    )


def _add(pair: Pair, constraint: Constraint) -> AddConstraint:
    demand = _DEMANDS.get(type(constraint).__name__.lower())
    code = None if _is_fulfilled(pair, constraint) else demand
    return AddConstraint(**pair.at, constraint=constraint, **rated(code))


def _is_fulfilled(pair: Pair, constraint: Constraint) -> bool:
    """Return whether existing entities cannot violate it: none exist, all null, or implied."""
    if not pair.has_rows or any(_is_null_everywhere(pair, c) for c in columns_of(constraint)):
        return True
    return any(_implies(old, constraint) for old in pair.old_constraints.values())


def _is_null_everywhere(pair: Pair, column: str) -> bool:
    found = pair.after_properties.get(column)
    return found is not None and found.type.nullable and column not in pair.survivors


def _implies(old: Constraint, new: Constraint) -> bool:
    match old, new:
        case (Key(few) | Unique(few), Unique(many)):
            return set(few) <= set(many)
        case Range(one, low, high), Range(other, new_low, new_high) if one == other:
            fits_below = new_low is None or (low is not None and low >= new_low)
            fits_above = new_high is None or (high is not None and high <= new_high)
            return fits_below and fits_above
    return False
