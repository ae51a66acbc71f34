"""Aggregate functions (count, sum, avg, min, max, collect), computed per group.

Nulls are ignored. Integers are summed exactly, and float sums are rounded only once, so results never depend on row
order.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.expressions.arithmetic import expression_error
from omnigraph.engine.expressions.row_values import RowValues
from omnigraph.engine.expressions.value_codes import Codes, Numbers, dense_codes, dense_ranks, pair_codes
from omnigraph.lang.query import plan
from omnigraph.records.frozen import record

from .rows import IntArray

_EXACT_FLOAT_MAX = 1 << 52
_I64_BOUND = 1 << 63
_MAX_WORD = 1 << 16
_MAX_WORD_WEIGHT = 1 << 46  # the product of a 16-bit word and a weight below this limit fits in 64 bits
_SIGN_WORD_SHIFT = 48
_MIN_REPETITION = 4  # if there are four or more rows per (group, value) pair, equal rows are merged


@record(eq=False)
class RowGroups:
    """The group number of each row, and the number of groups."""

    codes: Codes
    group_count: int


def aggregate(
    aggregation: plan.Aggregate, argument: RowValues, groups: RowGroups, weights: IntArray | None
) -> pa.Array:
    """Return one value per group."""
    if aggregation.function != "collect":
        argument, groups, weights = _merge_equal_rows(argument, groups, weights)
    selected_rows = argument.valid_positions()
    if aggregation.distinct:
        selected_rows, weights = _first_row_per_value(argument, groups, selected_rows), None
    if selected_rows is not None:
        argument = argument.take(selected_rows)
        groups = RowGroups(groups.codes[selected_rows], groups.group_count)
        weights = weights[selected_rows] if weights is not None else None
    match aggregation.function:
        case "count":
            return pa.array(_group_counts(groups, weights), pa.int64())
        case "sum":
            return _sum_column(aggregation, argument, groups, weights)
        case "avg":
            return _average_column(argument, groups, weights)
        case "collect":
            return _collect_lists(argument, groups)
    return _extreme_values(argument, groups, highest=aggregation.function == "max")


def _merge_equal_rows(
    argument: RowValues, groups: RowGroups, weights: IntArray | None
) -> tuple[RowValues, RowGroups, IntArray | None]:
    """Merge rows that have the same group and the same value into one weighted row.

    Merging pays off if a few values repeat often, because later steps then process (group, value) pairs rather than
    individual rows.
    """
    value_index, value_count = argument.value_index, len(argument.values)
    if (
        value_index is None
        or len(value_index) == 0
        or groups.group_count * value_count * _MIN_REPETITION > len(value_index)
    ):
        return argument, groups, weights
    if weights is not None and int(weights.max()) * len(weights) >= _EXACT_FLOAT_MAX:
        return argument, groups, weights
    group_value_codes = groups.codes * value_count + value_index if groups.group_count > 1 else value_index
    pair_weights = np.bincount(group_value_codes, weights=weights, minlength=groups.group_count * value_count)
    present_pairs = np.flatnonzero(pair_weights)
    pair_groups, pair_values = np.divmod(present_pairs, value_count)
    return (
        RowValues(argument.values, pair_values),
        RowGroups(pair_groups, groups.group_count),
        pair_weights[present_pairs].astype(np.int64),
    )


def _first_row_per_value(argument: RowValues, groups: RowGroups, selected_rows: IntArray | None) -> IntArray:
    """Return the first row for each distinct value in each group."""
    row_positions = np.arange(len(groups.codes)) if selected_rows is None else selected_rows
    group_value_codes = pair_codes(dense_ranks(groups.codes[row_positions]), argument.codes()[row_positions])
    first_rows: IntArray = row_positions[np.sort(dense_codes(group_value_codes)[1])]
    return first_rows


def _group_counts(groups: RowGroups, weights: IntArray | None) -> list[int]:
    if weights is None and groups.group_count == 1:
        return [len(groups.codes)]
    if weights is None:
        row_counts: list[int] = np.bincount(groups.codes, minlength=groups.group_count).tolist()
        return row_counts
    return _integer_sums(weights, groups)


def _integer_sums(numbers: npt.NDArray[Any], groups: RowGroups) -> list[int]:
    """Return exact sums of integers of any width."""
    if len(numbers) == 0:
        return [0] * groups.group_count
    largest_magnitude = max(abs(int(numbers.max())), abs(int(numbers.min())))
    if largest_magnitude * len(numbers) < _EXACT_FLOAT_MAX:
        float_sums = np.bincount(groups.codes, weights=numbers, minlength=groups.group_count)
        return [int(float_sum) for float_sum in float_sums]
    high_words = (numbers >> 32).astype(np.int64)
    low_words = (numbers & 0xFFFFFFFF).astype(np.int64)
    high_sums = np.zeros(groups.group_count, np.int64)
    low_sums = np.zeros(groups.group_count, np.int64)
    np.add.at(high_sums, groups.codes, high_words)
    np.add.at(low_sums, groups.codes, low_words)
    return [(int(high_sum) << 32) + int(low_sum) for high_sum, low_sum in zip(high_sums, low_sums, strict=True)]


def _group_totals(argument: RowValues, groups: RowGroups, weights: IntArray | None) -> list[int] | list[float]:
    """Return the sum for each group: exact for integers, rounded once for floats."""
    numbers = argument.numeric()
    if numbers.dtype.kind == "f":
        return _float_sums(numbers.astype(np.float64), groups, weights)
    return _integer_sums(numbers, groups) if weights is None else _weighted_sums(numbers, weights, groups)


def _weighted_sums(numbers: npt.NDArray[Any], weights: IntArray, groups: RowGroups) -> list[int]:
    """Return exact weighted sums, computed in 16-bit words so that no product exceeds 64 bits."""
    if len(numbers) == 0:
        return [0] * groups.group_count
    if int(weights.max()) >= _MAX_WORD_WEIGHT:
        sums = [0] * groups.group_count
        for group_code, number, weight in zip(groups.codes, numbers, weights, strict=True):
            sums[group_code] += int(number) * int(weight)
        return sums
    if int(numbers.min()) > -_MAX_WORD and int(numbers.max()) < _MAX_WORD:
        return _integer_sums(numbers.astype(np.int64) * weights, groups)
    totals = [0] * groups.group_count
    for shift in (0, 16, 32, 48):
        words = numbers >> np.array(shift, numbers.dtype)
        words = (words if shift == _SIGN_WORD_SHIFT else words & np.array(0xFFFF, numbers.dtype)).astype(np.int64)
        word_sums = _integer_sums(words * weights, groups)
        totals = [total + (word_sum << shift) for total, word_sum in zip(totals, word_sums, strict=True)]
    return totals


def _float_sums(numbers: npt.NDArray[np.float64], groups: RowGroups, weights: IntArray | None) -> list[float]:
    if weights is not None:
        numbers, repeated_codes = np.repeat(numbers, weights), np.repeat(groups.codes, weights)
        groups = RowGroups(repeated_codes, groups.group_count)
    if groups.group_count == 0:
        return []
    order = np.argsort(groups.codes, kind="stable")
    group_stops = np.cumsum(np.bincount(groups.codes, minlength=groups.group_count))
    grouped_numbers = numbers[order]
    return [_exact_float_sum(group_numbers.tolist()) for group_numbers in np.split(grouped_numbers, group_stops[:-1])]


def _exact_float_sum(numbers: list[float]) -> float:
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # the sum exceeds the largest float, or includes infinities of both signs
        return float(np.sum(numbers))


def _sum_column(
    aggregation: plan.Aggregate, argument: RowValues, groups: RowGroups, weights: IntArray | None
) -> pa.Array:
    totals, is_empty = _group_totals(argument, groups, weights), _is_group_empty(groups)
    if pa.types.is_floating(argument.values.type):
        return pa.array(totals, pa.float64(), mask=is_empty)
    if any(not -_I64_BOUND <= total < _I64_BOUND for total in totals):
        hint = "sum floats instead, as in `sum(1.0 * $x.n)`"
        raise expression_error(aggregation.place, "the sum of these integers does not fit in I64", hint)
    return pa.array(totals, pa.int64(), mask=is_empty)


def _average_column(argument: RowValues, groups: RowGroups, weights: IntArray | None) -> pa.Array:
    totals = _group_totals(argument, groups, weights)
    counts = _group_counts(groups, weights)
    averages = [total / max(count, 1) for total, count in zip(totals, counts, strict=True)]
    return pa.array(averages, pa.float64(), mask=_is_group_empty(groups))


def _is_group_empty(groups: RowGroups) -> npt.NDArray[np.bool_]:
    return np.asarray(np.bincount(groups.codes, minlength=groups.group_count) == 0)


def _extreme_values(argument: RowValues, groups: RowGroups, *, highest: bool) -> pa.Array:
    """Return the lowest or highest value in each group, or null for an empty group."""
    is_empty = _is_group_empty(groups)
    if bool(is_empty.all()):
        return pa.nulls(groups.group_count, argument.values.type)
    if groups.group_count == 1 and argument.value_index is None:
        extremes = (pc.max if highest else pc.min)(argument.values)
        return pa.repeat(extremes, 1)
    extremes = argument.take(_lowest_rows(argument.sort_numbers(descending=highest), groups)).materialize()
    return pc.if_else(pa.array(is_empty), pa.scalar(None, extremes.type), extremes)


def _lowest_rows(order_numbers: Numbers, groups: RowGroups) -> IntArray:
    """Return the position of the row with the lowest number in each group."""
    highest_number = np.inf if order_numbers.dtype.kind == "f" else np.iinfo(np.int64).max
    lowest = np.full(groups.group_count, highest_number, order_numbers.dtype)
    np.minimum.at(lowest, groups.codes, order_numbers)
    row_by_group = np.zeros(groups.group_count, np.int64)
    lowest_rows = np.flatnonzero(order_numbers == lowest[groups.codes])
    row_by_group[groups.codes[lowest_rows]] = lowest_rows
    return row_by_group


def _collect_lists(argument: RowValues, groups: RowGroups) -> pa.Array:
    """Return the values in each group as a list, in row order."""
    order = np.argsort(groups.codes, kind="stable")
    group_sizes = np.bincount(groups.codes, minlength=groups.group_count)
    offsets = np.concatenate([[0], np.cumsum(group_sizes)])
    ordered_items = argument.take(order).materialize()
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ordered_items)
