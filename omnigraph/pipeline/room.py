"""Estimate the size of an input, and check that the loaded data fits on the disk.

Owns the estimates. They must err on the low side: a load that would fit is never refused.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import OmnigraphError, ResourceLimitExceeded
from omnigraph.ingest.files import packing_of
from omnigraph.storage.store import Store

from .sources import Input, open_input

_SAMPLE = 1 << 18  # bytes of a text file that are sampled
_FILES = 16  # files that are sampled
_SHARE = {"ndjson": 0.3, "csv": 0.5, "parquet": 0.8}  # stored size relative to the input
_PACKED = 3  # how many times larger a compressed file is once decompressed


@dataclass(frozen=True, slots=True)
class Guess:
    """Estimated records of an input, and the bytes that they will take in a graph."""

    rows: int
    bytes: int


def guess(inputs: Sequence[Input]) -> Guess:
    """Estimate an input from a few files and the sizes of all."""
    looked = inputs[:_FILES]
    rows = sum(map(_rows, looked))
    seen, whole = (sum(one.size for one in some) for some in (looked, inputs))
    return Guess(int(rows * whole / seen) if seen else 0, int(sum(map(_bytes, inputs))))


def _bytes(one: Input) -> float:
    packed = _PACKED if one.path.endswith((".gz", ".zst")) else 1
    return one.size * packed * _SHARE.get(one.form, 0.0)


def _rows(one: Input) -> int:
    # An unreadable file is reported when it is loaded, not here.
    with suppress(OmnigraphError, OSError, ValueError), open_input(one) as file:
        if one.form == "parquet":
            import pyarrow.parquet as pq

            return int(pq.read_metadata(file).num_rows)
        text = file.read(_SAMPLE)
        if text and packing_of(text) is None:
            return one.size * (text.count(b"\n") or 1) // len(text)
    return 0


def demand_room(store: Store, needed: int) -> None:
    """Raise `ResourceLimitExceeded`, with both sizes, if the data cannot fit on the disk."""
    if not store.root.local:
        return
    free = shutil.disk_usage(_there(Path(store.root.path))).free
    if needed > free:
        raise ResourceLimitExceeded(
            f"the load needs about {size(needed)}, but the disk has {size(free)} left",
            resource="free disk bytes",
            limit=free,
            actual=needed,
            hint="free disk space, or load less data",
        )


def size(count: float) -> str:
    """Format a number of bytes for people.

    >>> size(999), size(12_345_678)
    ('999 B', '12.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _there(path: Path) -> Path:
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path
