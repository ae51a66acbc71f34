"""Compares the constraints of one type before and after, whatever position they were written in.

A constraint that existing data fulfils by itself is safe to add; any other needs a scan. A key is
never changed: it is the id of every node.
"""

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import Constraint, Index, Key, Range, Unique
from omnigraph.lang.schema.ir import AnyType
from omnigraph.lang.schema.shape import columns_of, sort_key

from .pair import Pair
from .steps import (
    AddConstraint,
    ChangeIndexOptions,
    DropConstraint,
    RestateConstraint,
    Step,
    rated,
    unsupported,
)

_MARKS: dict[str, type[Key | Unique | Index]] = {"index": Index, "key": Key, "unique": Unique}
_DEMANDS = {"unique": "OG-MF-107", "range": "OG-MF-108", "check": "OG-MF-109"}


def constraint_steps(pair: Pair) -> Iterator[Step]:
    """Drops, changed options, additions; constraints of dropped columns went with the columns."""
    old, new = _before(pair), _after(pair)
    if pair.has_rows:
        yield from _key_step(pair, old, new)
    gone = [one for key, one in old.items() if key not in new and not _is_orphan(pair, one)]
    added = [one for key, one in new.items() if key not in old]
    changed = _changed_options(gone, added)
    yield from (_drop(pair, one) for one in gone if _counts(pair, one, changed))
    for was, now in changed:
        yield ChangeIndexOptions(**pair.at, old=was, new=now)
    yield from (_add(pair, one) for one in added if _counts(pair, one, changed))


def orphans(pair: Pair, column: str) -> Iterator[Step]:
    """Lets the constraints of a dropped column go, each with the first such column it names."""
    gone = [one.name for one in pair.dropped]
    for one in _before(pair).values():
        first = next((name for name in gone if name in columns_of(one)), None)
        if first == column and not _is_fixed(pair, one):
            yield _drop(pair, one)


def restated(pair: Pair, name: str) -> Iterator[Step]:
    """Constraints of one property that are only written in the other position now."""
    if not pair.has_rows:
        return  # an interface has no body constraints
    was, now = pair.survivors[name].marks, _marks(pair.new, name)
    for word in sorted(set(was) ^ set(now)):
        target = _MARKS[word]((name,))
        if _holds(_before(pair), target) and _holds(_after(pair), target):
            on = word in now
            yield RestateConstraint(
                **pair.at, property_name=name, constraint=target, on_property=on
            )


def key_columns(pair: Pair) -> frozenset[str]:
    """The key columns that the type has now."""
    keys = [one for one in _after(pair).values() if isinstance(one, Key)]
    return frozenset(name for one in keys for name in one.columns)


_ByKey = dict[tuple[str, str], Constraint]


def _before(pair: Pair) -> _ByKey:
    old = map(pair.translated, _all(pair.old))
    return {sort_key(one): one for one in sorted(old, key=sort_key)}


def _after(pair: Pair) -> _ByKey:
    return {sort_key(one): one for one in sorted(_all(pair.new), key=sort_key)}


def _all(one: AnyType) -> tuple[Constraint, ...]:
    """The constraints of a type; those of an interface are written on its properties only."""
    if one.kind != "interface":
        return tuple(getattr(one, "constraints", ()))
    return tuple(_MARKS[word]((p.name,)) for p in one.properties for word in p.marks)


def _marks(one: AnyType, name: str) -> tuple[str, ...]:
    found = one.property(name)
    return found.marks if found is not None else ()


def _holds(constraints: _ByKey, wanted: Key | Unique | Index) -> bool:
    found = [one for one in constraints.values() if type(one) is type(wanted)]
    return any(columns_of(one) == wanted.columns for one in found)


def _is_orphan(pair: Pair, constraint: Constraint) -> bool:
    gone = {one.name for one in pair.dropped}
    return not gone.isdisjoint(columns_of(constraint))


def _is_fixed(pair: Pair, constraint: Constraint) -> bool:
    return pair.has_rows and isinstance(constraint, Key)


_Options = list[tuple[Index, Index]]


def _counts(pair: Pair, constraint: Constraint, changed: _Options) -> bool:
    paired = any(constraint is one for both in changed for one in both)
    return not paired and not _is_fixed(pair, constraint)


def _changed_options(gone: list[Constraint], added: list[Constraint]) -> _Options:
    """Pairs of indexes over the same columns, in order."""
    found: _Options = []
    waiting = [one for one in added if isinstance(one, Index)]
    for was in gone:
        now = next(
            (o for o in waiting if isinstance(was, Index) and o.columns == was.columns), None
        )
        if now is not None and isinstance(was, Index):
            waiting.remove(now)
            found.append((was, now))
    return found


def _key_step(pair: Pair, old: _ByKey, new: _ByKey) -> Iterator[Step]:
    was = next((one.columns for one in old.values() if isinstance(one, Key)), None)
    now = next((one.columns for one in new.values() if isinstance(one, Key)), None)
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
    """Whether existing entities cannot break it: there are none, nulls pass, or it held before."""
    if not pair.has_rows or any(_is_null_everywhere(pair, c) for c in columns_of(constraint)):
        return True
    return any(_implies(old, constraint) for old in _before(pair).values())


def _is_null_everywhere(pair: Pair, column: str) -> bool:
    found = pair.new.property(column)
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
