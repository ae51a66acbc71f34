"""What an operation wants to change: rows written, rows removed, table by table.

Owns the form that rules judge and that staging writes. Holds no decision: which of the rows exist
already is found out by `identity`, what is allowed by `check`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FRESH = -1  # certainly new: nobody else can know the id
UNKNOWN = -2  # to be looked up

Positions = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class TableDelta:
    """The change of one table.

    `versions` are all rows written, in order: of one id the last counts, at the places `latest`,
    and earlier ones must still obey the rules of a row. `lines` says where each stood in the
    input. `row_ids` and `addresses` belong to the rows that count: those of the stored row each
    replaces, or `FRESH`, or `UNKNOWN`. `removed` are stored rows that go (id, `_rowid`,
    `_rowaddr`, of edges also src and dst); `previous` are the old copies of replaced edges.

    `whole`: nothing else stays. `strict`: an id that exists is a conflict. `records`: the versions
    are records of one input, none of which may repeat a key. `judged`: the rules of a row were
    applied to every version.
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
        """The ids of stored rows that go."""
        return NO_IDS if self.removed is None else flat(self.removed["id"])

    @property
    def empty(self) -> bool:
        """Whether nothing would change."""
        return not (self.whole or self.versions.num_rows or len(self.removed_ids))

    def line(self, version: int) -> int | None:
        """Where a version stood in the input."""
        return None if self.lines is None else int(self.lines[version])


NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True)
class Delta:
    """The changes of one operation, by table key; what is not named does not change.

    `cascaded`: the edges of all nodes that go are among what is removed.
    """

    tables: Mapping[str, TableDelta] = field(default_factory=dict)
    cascaded: bool = False

    def get(self, key: str) -> TableDelta | None:
        """The change of one table, if there is one."""
        return self.tables.get(key)


def flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece."""
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
    """A delta of rows alone: ids that nobody can have used, must not exist, may, or do not matter.

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
    """Where each id stands last."""
    if len(ids) < 2 or len(ids.unique()) == len(ids):
        return np.arange(len(ids), dtype=np.int64)
    numbered = pa.table({"id": ids, "at": np.arange(len(ids), dtype=np.int64)})
    last = numbered.group_by("id", use_threads=False).aggregate([("at", "max")])["at_max"]
    return np.sort(last.to_numpy())
