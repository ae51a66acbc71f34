"""`@card`: how many edges of a type start at one node.

Only sources whose edges the operation touches are counted again: those of written edges, and the
previous ones of edges that were moved or removed. A source that is removed itself is skipped.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Edge

from .delta import NO_IDS, Delta, Positions, TableDelta, flat
from .lookup import Lookup
from .violation import Violation


def cardinality_violations(one: Edge, delta: Delta, lookup: Lookup) -> Iterator[Violation]:
    """Yield sources with too few or too many edges in the final state."""
    written = delta.get(f"edge:{one.name}")
    if written is None or (one.low == 0 and one.high is None):
        return
    stored = _stored(written, lookup)
    sources = _touched(one, written, delta, lookup, stored)
    if not len(sources):
        return
    kept = stored if stored is not None else _kept(written, lookup, sources)
    after = [flat(written.rows["src"])] if written.whole else [flat(written.rows["src"]), kept]
    counts = _counts(sources, pa.chunked_array(after, pa.string()))
    bad = counts < one.low
    if one.high is not None:
        bad |= counts > one.high
    for at in np.flatnonzero(bad):
        yield _violation(one, written, sources[int(at)].as_py(), int(counts[at]))


def _stored(written: TableDelta, lookup: Lookup) -> pa.Array | None:
    """Return the sources of all stored edges, if the operation replaces the whole table."""
    return flat(lookup.scan(written.key, ["src"])["src"]) if written.whole else None


def _touched(
    one: Edge, written: TableDelta, delta: Delta, lookup: Lookup, stored: pa.Array | None
) -> pa.Array:
    parts = [*written.rows["src"].chunks]
    parts += written.removed["src"].chunks if written.removed is not None else []
    parts += written.previous["src"].chunks if written.previous is not None else []
    parts += [stored] if stored is not None else []
    sources = pa.chunked_array(parts, pa.string()).unique()
    nodes = delta.get(f"node:{one.source}")
    if nodes is None or not len(sources):
        return sources
    if nodes.whole:
        return sources.filter(pc.is_in(sources, value_set=nodes.ids))
    gone = nodes.removed_ids
    return sources.filter(pc.invert(pc.is_in(sources, value_set=gone))) if len(gone) else sources


def _kept(written: TableDelta, lookup: Lookup, sources: pa.Array) -> pa.Array:
    """Return the sources of stored edges that the operation does not change."""
    found = lookup.find(written.key, {"src": sources}, ["id", "src"])
    for ids in (written.ids, written.removed_ids):
        found = found.filter(pc.invert(pc.is_in(found["id"], value_set=ids)))
    return flat(found["src"]) if found.num_rows else NO_IDS


def _counts(sources: pa.Array, values: pa.ChunkedArray) -> Positions:
    place = pc.index_in(values, value_set=sources).drop_null().to_numpy()
    return np.bincount(place, minlength=len(sources))


def _violation(one: Edge, written: TableDelta, source: str, count: int) -> Violation:
    where = pc.index(written.rows["src"], pa.scalar(source)).as_py()
    line = written.line(int(written.latest[where])) if where >= 0 else None
    return miscounted(one, source, count, line)


def miscounted(one: Edge, source: str, count: int, line: int | None) -> Violation:
    """Return the violation of a source that has this many edges."""
    bound = f"at least {one.low}" if count < one.low else f"at most {one.high}"
    reason = f"source '{source}' has {count} edge{'s'[: count != 1]}, and must have {bound}"
    # Too many edges stay too many even if other rows of the input are rejected.
    rests = source if count < one.low else None
    key = f"edge:{one.name}"
    return Violation("@card", key, source, None, reason, line, count, rests_on=rests)
