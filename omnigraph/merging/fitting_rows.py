"""Separate the rows that fit another schema from the rows with a value that does not fit.

A past state may contain values that do not fit the schema of a merge or replay, because a merge has since chosen a
narrower number type. This module only converts rows. Callers decide how to treat entities that do not fit.
"""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.matched_types import TypeTransition


class FittingRows(NamedTuple):
    """The rows that could be converted, with the columns of the new schema, and the ids of all other rows."""

    rows: pa.Table
    misfit_ids: pa.Array


def convert_fitting_rows(transition: TypeTransition, rows: pa.Table) -> FittingRows:
    """Convert the rows whose values all fit the new schema."""
    misfit_ids = pa.array(find_misfit_ids(transition, rows), pa.string())
    return FittingRows(transition.convert(exclude_rows(rows, misfit_ids)), misfit_ids)


def find_misfit_ids(transition: TypeTransition, rows: pa.Table) -> list[str]:
    """Return the ids of the rows that cannot be converted, found by repeatedly splitting the rows in half."""
    if transition.find_obstacle(rows) is None:
        return []
    if rows.num_rows == 1:
        return [rows["id"][0].as_py()]
    middle = rows.num_rows // 2
    return [
        *find_misfit_ids(transition, rows.slice(0, middle)),
        *find_misfit_ids(transition, rows.slice(middle)),
    ]


def exclude_rows(rows: pa.Table, excluded_ids: pa.Array) -> pa.Table:
    """Return the rows except those with the given ids."""
    if not len(excluded_ids):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=excluded_ids)))
