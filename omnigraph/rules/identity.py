"""Finds out which written rows exist already, with one lookup per table, by id.

A strict insert of an existing id is a conflict; any other row replaces the stored one and keeps
its row id. Rows with newly generated ids are never looked up.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .delta import FRESH, UNKNOWN, Delta, TableDelta, flat
from .lookup import Lookup
from .violation import Violation


def repeated_ids(one: TableDelta) -> Iterator[Violation]:
    """Yield ids that occur twice in one strict input: it is ambiguous which row is meant."""
    if not (one.strict or one.whole) or len(one.latest) == one.versions.num_rows:
        return
    last: dict[str, int] = {}
    for at, entity in enumerate(one.versions["id"].to_pylist()):
        if entity in last:
            yield Violation(
                "key", one.key, entity, line=one.line(at), other_line=one.line(last[entity])
            )
        last[entity] = at


def resolve(delta: Delta, lookup: Lookup) -> tuple[Delta, list[Violation]]:
    """Return the delta with all stored rows resolved, and the id conflicts of strict inserts."""
    tables: dict[str, TableDelta] = {}
    taken: list[Violation] = []
    for one in delta.tables.values():
        tables[one.key], found = _resolve(one, lookup)
        taken += found
    return replace(delta, tables=tables), taken


def _resolve(one: TableDelta, lookup: Lookup) -> tuple[TableDelta, list[Violation]]:
    asked = np.flatnonzero(one.row_ids == UNKNOWN)
    if not len(asked):
        return one, []
    ids = one.ids.take(pa.array(asked)) if len(asked) < len(one.ids) else one.ids
    ends = ["src", "dst"] if one.key.startswith("edge:") else []
    found = lookup.find(one.key, {"id": ids}, ["id", *ends], places=True)
    place = pc.index_in(ids, value_set=flat(found["id"]))
    taken = pc.is_valid(place).to_numpy(zero_copy_only=False)
    if one.strict:
        return one, [_taken(one, int(row)) for row in asked[taken]]
    at = place.drop_null().to_numpy()
    row_ids, addresses = one.row_ids.copy(), one.addresses.copy()
    row_ids[asked] = FRESH
    row_ids[asked[taken]] = found["_rowid"].to_numpy()[at].astype(np.int64)
    addresses[asked[taken]] = found["_rowaddr"].to_numpy()[at]
    before = found.select(["id", *ends]) if ends else None
    if before is not None and one.previous is not None:
        before = pa.concat_tables([one.previous, before.cast(one.previous.schema)])
    previous = one.previous if before is None else before
    return replace(one, row_ids=row_ids, addresses=addresses, previous=previous), []


def _taken(one: TableDelta, at: int) -> Violation:
    version = int(one.latest[at])
    return Violation("key", one.key, one.ids[at].as_py(), line=one.line(version))
