"""Vector indexes: whether one can be built, and which rows it finds near a query vector.

An index compares in single precision and omits vectors that this cannot express, so it is built
only over fragments all of whose vectors fit. It returns candidates with approximate distances;
`distance_error_bound` limits the error. Callers compute the exact distances.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .lost_index import ask_alone
from .scan import Ids, row_id_array
from .table import Table

Floats = npt.NDArray[np.float64]
KINDS = {"cosine": "IVF_COSINE", "l2": "IVF_L2", "dot": "IVF_DOT"}
METRICS = {kind: metric for metric, kind in KINDS.items()}
_UNIT = 2.0**-24  # half the distance from 1 to the next number in single precision
# Lengths that single precision can square and divide by; the error of a dot product grows with it.
_SHORTEST, _LONGEST = 1e-10, 1e10
_LONGEST_DOT = 2.0
_PARTITION = 32 << 20  # bytes that a search reads at once
_MOST_PARTITIONS = 4096
_BATCH = 8192
UNFIT = "some vectors are too long or too short to index; searches scan the fragments with them"


@dataclass(frozen=True, slots=True)
class Look:
    """How many vectors an index can hold, and the fragments that contain them."""

    count: int
    fit: tuple[int, ...]


def is_vector_kind(kind: str) -> bool:
    """Return whether this is a kind of vector index."""
    return kind in METRICS


def first_fit(table: Table, column: str, kind: str, fragments: Sequence[int]) -> bool | None:
    """Return whether the first fragment with vectors is indexable; None if none has vectors."""
    for number in fragments:
        seen = look_at(table, column, kind, [number])
        if seen.count or not seen.fit:
            return bool(seen.fit)
    return None


def look_at(table: Table, column: str, kind: str, fragments: Sequence[int]) -> Look:
    """Read the vectors of fragments and find the fragments that an index of this kind can hold."""
    count, fit = 0, list[int]()
    for number in fragments:
        sizes = [_lengths(one, column) for one in vector_batches(table, column, [number])]
        lengths = np.concatenate(sizes) if sizes else np.empty(0)
        if _all_fit(lengths, METRICS[kind]):
            fit.append(number)
            count += len(lengths)
    return Look(count, tuple(fit))


def partitions_of(count: int, width: int) -> int:
    """Return how many partitions an index has; all are searched, one after another."""
    wanted = math.ceil(count * width * 4 / _PARTITION)
    return max(1, min(wanted, count, _MOST_PARTITIONS))


def vector_batches(
    table: Table, column: str, fragments: Collection[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield row ids and vectors of all rows, or of some fragments, batch by batch."""
    chosen = None if fragments is None else [table.dataset.get_fragment(one) for one in fragments]
    if chosen == []:
        return
    scanner = table.dataset.scanner(
        columns=[column], fragments=chosen, with_row_id=True, batch_size=_BATCH
    )
    yield from scanner.to_batches()


def rows_of(batch: pa.RecordBatch) -> Ids:
    """Return the row ids of a batch."""
    return row_id_array(pa.Table.from_batches([batch]))


def candidates(
    table: Table, column: str, metric: str, point: Floats, most: int
) -> tuple[Ids, Floats] | None:
    """Return the row ids nearest to a vector by the index alone, and their distances, in order.

    None if the index cannot be read. Distances are approximate, and in the engine's scale.
    """
    scanner = table.dataset.scanner(
        columns=["_distance"],
        nearest={
            "column": column,
            "q": point.astype(np.float32),
            "k": most,
            "metric": metric,
            "minimum_nprobes": _MOST_PARTITIONS,
            "maximum_nprobes": _MOST_PARTITIONS,
        },
        with_row_id=True,
        fast_search=True,
    )
    found = ask_alone(table, scanner)
    if found is None:
        return None
    about: Floats = found["_distance"].to_numpy().astype(np.float64)
    order = np.argsort(about, kind="stable")
    return row_id_array(found)[order], _plain(metric, about[order])


def slack(metric: str, width: int, point: Floats, distance: float) -> float:
    """Return an upper bound of the error of an index distance of about this size."""
    steps = 8 * (width + 16) * _UNIT
    if metric == "cosine":
        return steps
    length = float(np.sqrt(np.einsum("i,i->", point, point)))
    if metric == "dot":
        return steps * (1 + _LONGEST_DOT * length)
    rounded = 4 * _UNIT * length  # the query vector itself is rounded to single precision
    return steps * abs(distance) + rounded + 1e-15


def is_fit(metric: str, point: Floats) -> bool:
    """Return whether a query vector can be searched in single precision."""
    length = float(np.sqrt(np.einsum("i,i->", point, point)))
    return _SHORTEST <= length <= _LONGEST or (metric == "l2" and length <= _LONGEST)


def unreliable_from(metric: str) -> float:
    """Return the distance from which on an index may omit rows: it has no zero-length vectors."""
    return 1.0 - 1e-3 if metric == "cosine" else math.inf


def _plain(metric: str, about: Floats) -> Floats:
    return np.sqrt(np.maximum(about, 0.0)) if metric == "l2" else about


def _lengths(batch: pa.RecordBatch, column: str) -> Floats:
    held: Any = batch.column(column).drop_null()
    width = held.type.list_size
    flat = held.flatten().to_numpy(zero_copy_only=False).reshape(-1, width).astype(np.float64)
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", flat, flat))
    return lengths


def _all_fit(lengths: Floats, metric: str) -> bool:
    """Return whether an index can hold all vectors; NaN fails every comparison and does not fit."""
    longest = _LONGEST_DOT if metric == "dot" else _LONGEST
    shortest = _SHORTEST if metric == "cosine" else 0.0
    return bool((((lengths >= shortest) & (lengths <= longest)) | (lengths == 0.0)).all())
