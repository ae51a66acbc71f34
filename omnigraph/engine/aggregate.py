"""Aggregate functions (count, sum, avg, min, max, collect) per group.

Nulls are ignored. Integers are added exactly and floats with a single rounding, so results never
depend on the order of rows.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query import plan

from .codes import Codes, Numbers, dense, paired, ranks
from .rows import Ids
from .values import Values

_EXACT = 1 << 52
_WORTH = 4  # merge equal rows when there are at least this many times more rows than pairs


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The group number of each row, and the number of groups."""

    codes: Codes
    count: int


def aggregate(
    what: plan.Aggregate, argument: Values, groups: Groups, weights: Ids | None
) -> pa.Array:
    """Return one value per group."""
    if what.function != "collect":
        argument, groups, weights = _folded(argument, groups, weights)
    chosen = argument.chosen()
    if what.distinct:
        chosen, weights = _each_once(argument, groups, chosen), None
    if chosen is not None:
        argument, groups = argument.take(chosen), Groups(groups.codes[chosen], groups.count)
        weights = weights[chosen] if weights is not None else None
    match what.function:
        case "count":
            return pa.array(_counts(groups, weights), pa.int64())
        case "sum":
            return _sums(argument, groups, weights)
        case "avg":
            return _averages(argument, groups, weights)
        case "collect":
            return _collected(argument, groups)
    return _extremes(argument, groups, highest=what.function == "max")


def _folded(
    argument: Values, groups: Groups, weights: Ids | None
) -> tuple[Values, Groups, Ids | None]:
    """Merge the rows of a group that have the same value into one row with a weight.

    Worth it when few distinct values repeat: all later work then handles pairs instead of rows.
    """
    index, many = argument.index, len(argument.values)
    if index is None or len(index) == 0 or groups.count * many * _WORTH > len(index):
        return argument, groups, weights
    if weights is not None and int(weights.max()) * len(weights) >= _EXACT:
        return argument, groups, weights
    pairs = groups.codes * many + index if groups.count > 1 else index
    counts = np.bincount(pairs, weights=weights, minlength=groups.count * many)
    found = np.flatnonzero(counts)
    code, value = np.divmod(found, many)
    return (
        Values(argument.values, value),
        Groups(code, groups.count),
        counts[found].astype(np.int64),
    )


def _each_once(argument: Values, groups: Groups, chosen: Ids | None) -> Ids:
    """Return the first row of each distinct value in each group."""
    rows = np.arange(len(groups.codes)) if chosen is None else chosen
    pairs = paired(ranks(groups.codes[rows]), argument.codes()[rows])
    found: Ids = rows[np.sort(dense(pairs)[1])]
    return found


def _counts(groups: Groups, weights: Ids | None) -> list[int]:
    if weights is None and groups.count == 1:
        return [len(groups.codes)]
    if weights is None:
        found: list[int] = np.bincount(groups.codes, minlength=groups.count).tolist()
        return found
    return _integer_sums(weights, groups)


def _integer_sums(numbers: npt.NDArray[Any], groups: Groups) -> list[int]:
    """Return exact sums of integers of any width."""
    if len(numbers) == 0:
        return [0] * groups.count
    largest = max(abs(int(numbers.max())), abs(int(numbers.min())))
    if largest * len(numbers) < _EXACT:
        sums = np.bincount(groups.codes, weights=numbers, minlength=groups.count)
        return [int(one) for one in sums]
    high = (numbers >> 32).astype(np.int64)
    low = (numbers & 0xFFFFFFFF).astype(np.int64)
    tops, bottoms = np.zeros(groups.count, np.int64), np.zeros(groups.count, np.int64)
    np.add.at(tops, groups.codes, high)
    np.add.at(bottoms, groups.codes, low)
    return [(int(top) << 32) + int(bottom) for top, bottom in zip(tops, bottoms, strict=True)]


def _totals(argument: Values, groups: Groups, weights: Ids | None) -> list[float]:
    numbers = argument.numbers()
    if numbers.dtype.kind == "f":
        return _float_sums(numbers.astype(np.float64), groups, weights)
    if weights is not None:
        return [float(one) for one in _weighted_sums(numbers, weights, groups)]
    return [float(one) for one in _integer_sums(numbers, groups)]


def _weighted_sums(numbers: npt.NDArray[Any], weights: Ids, groups: Groups) -> list[int]:
    """Return exact sums of products."""
    if len(numbers) and int(np.abs(numbers).max()) < 1 << 20 and int(weights.max()) < 1 << 40:
        return _integer_sums(numbers.astype(np.int64) * weights, groups)
    sums = [0] * groups.count
    for code, number, weight in zip(groups.codes, numbers, weights, strict=True):
        sums[code] += int(number) * int(weight)
    return sums


def _float_sums(
    numbers: npt.NDArray[np.float64], groups: Groups, weights: Ids | None
) -> list[float]:
    if weights is not None:
        numbers, codes = np.repeat(numbers, weights), np.repeat(groups.codes, weights)
        groups = Groups(codes, groups.count)
    if groups.count == 0:
        return []
    order = np.argsort(groups.codes, kind="stable")
    ends = np.cumsum(np.bincount(groups.codes, minlength=groups.count))
    ordered = numbers[order]
    return [_fsum(part.tolist()) for part in np.split(ordered, ends[:-1])]


def _fsum(numbers: list[float]) -> float:
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # beyond the largest float, or infinities of both signs
        return float(np.sum(numbers))


def _sums(argument: Values, groups: Groups, weights: Ids | None) -> pa.Array:
    totals, empty = _totals(argument, groups, weights), _empty(groups)
    return pa.array(totals, pa.float64(), mask=empty)


def _averages(argument: Values, groups: Groups, weights: Ids | None) -> pa.Array:
    totals = _totals(argument, groups, weights)
    counts = _counts(groups, weights)
    found = [total / max(count, 1) for total, count in zip(totals, counts, strict=True)]
    return pa.array(found, pa.float64(), mask=_empty(groups))


def _empty(groups: Groups) -> npt.NDArray[np.bool_]:
    return np.asarray(np.bincount(groups.codes, minlength=groups.count) == 0)


def _extremes(argument: Values, groups: Groups, *, highest: bool) -> pa.Array:
    """Return the lowest or highest value of each group; null for empty groups."""
    empty = _empty(groups)
    if bool(empty.all()):
        return pa.nulls(groups.count, argument.values.type)
    if groups.count == 1 and argument.index is None:
        found = (pc.max if highest else pc.min)(argument.values)
        return pa.repeat(found, 1)
    found = argument.take(_best(argument.order(descending=highest), groups)).spelled()
    return pc.if_else(pa.array(empty), pa.scalar(None, found.type), found)


def _best(place: Numbers, groups: Groups) -> Ids:
    """Return the row with the lowest number in each group."""
    most = np.inf if place.dtype.kind == "f" else np.iinfo(np.int64).max
    lowest = np.full(groups.count, most, place.dtype)
    np.minimum.at(lowest, groups.codes, place)
    row = np.zeros(groups.count, np.int64)
    best = np.flatnonzero(place == lowest[groups.codes])
    row[groups.codes[best]] = best
    return row


def _collected(argument: Values, groups: Groups) -> pa.Array:
    """Return the values of each group as a list, in row order."""
    order = np.argsort(groups.codes, kind="stable")
    counts = np.bincount(groups.codes, minlength=groups.count)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    items = argument.take(order).spelled()
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
