"""The changes an operation wants to make: rows written and rows removed, table by table.

Owns the form that rules check and that staging writes. Decides nothing: `identity` finds out which
rows exist already, `check` what is allowed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FRESH = -1  # certainly new: the id was just generated
UNKNOWN = -2  # must be looked up

Positions = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class TableDelta:
    """The changes of one table.

    `row_versions` are all written rows in order. Of each id the last one counts, at the positions
    `latest_positions`; earlier ones must still obey the row rules. `input_lines` are their line
    numbers in the input. `row_ids` and `addresses` belong to the rows that count: those of the
    stored row each replaces, or `NEW_ROW`, or `UNRESOLVED_ROW`. `removed_rows` are stored rows to
    remove (id, `_rowid`, `_rowaddr`, and src and dst of edges); `replaced_edges` are the stored
    copies of replaced edges.

    `replaces_table`: no other row stays. `rejects_existing`: an id that exists is a conflict.
    `from_records`: the versions are records of one input, none of which may repeat a key.
    `row_rules_checked`: the row rules were already applied to every version.
    """

    key: str
    versions: pa.Table
    latest: Positions
    row_ids: Positions
    addresses: Addresses
    lines: Positions | None = None
    removed: pa.Table | None = None
    previous: pa.Table | None = None
    whole: bool = False
    strict: bool = False
    records: bool = False
    judged: bool = False

    @cached_property
    def rows(self) -> pa.Table:
        """The rows that count, one per id, in the order of their last version."""
        same = len(self.latest) == self.versions.num_rows
        return self.versions if same else self.versions.take(pa.array(self.latest))

    @cached_property
    def ids(self) -> pa.Array:
        """The ids of the rows that count."""
        return flat(self.rows["id"])

    @cached_property
    def removed_ids(self) -> pa.Array:
        """The ids of stored rows that are removed."""
        return NO_IDS if self.removed is None else flat(self.removed["id"])

    @property
    def empty(self) -> bool:
        """Whether nothing would change."""
        return not (self.whole or self.versions.num_rows or len(self.removed_ids))

    def line(self, version: int) -> int | None:
        """Return the input line of a version."""
        return None if self.lines is None else int(self.lines[version])


NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True)
class Delta:
    """The changes of one operation by table key; tables not listed do not change.

    `edges_cascaded`: the removed rows include the edges of all removed nodes.
    """

    tables: Mapping[str, TableDelta] = field(default_factory=dict)
    cascaded: bool = False

    def get(self, key: str) -> TableDelta | None:
        """Return the changes of one table, if there are any."""
        return self.tables.get(key)


def flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one contiguous array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


Mode = Literal["fresh", "insert", "upsert", "replace"]


def written(
    key: str,
    versions: pa.Table,
    mode: Mode,
    *,
    lines: Positions | None = None,
    records: bool = False,
) -> TableDelta:
    """Build a delta of written rows; `mode` says whether ids are new, may exist, or must not.

    >>> rows = pa.table({"id": ["a", "b", "a"]})
    >>> written("node:N", rows, "upsert").ids.to_pylist()
    ['b', 'a']
    """
    whole = mode == "replace"
    made = mode == "fresh"
    latest = np.arange(versions.num_rows) if made else last_of_each(versions["id"])
    origin = FRESH if whole or made else UNKNOWN
    return TableDelta(
        key,
        versions,
        latest,
        np.full(len(latest), origin, np.int64),
        np.zeros(len(latest), np.uint64),
        lines,
        whole=whole,
        strict=mode == "insert",
        records=records,
    )


def last_of_each(ids: pa.ChunkedArray) -> Positions:
    """Return the last position of each id."""
    if len(ids) < 2 or len(ids.unique()) == len(ids):
        return np.arange(len(ids), dtype=np.int64)
    numbered = pa.table({"id": ids, "at": np.arange(len(ids), dtype=np.int64)})
    last = numbered.group_by("id", use_threads=False).aggregate([("at", "max")])["at_max"]
    return np.sort(last.to_numpy())
