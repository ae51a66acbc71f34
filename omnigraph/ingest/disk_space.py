"""Estimate the size of an input, and check that the loaded data fits on the disk.

Estimates must err on the low side, so that a load whose data would fit is never rejected.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import OmnigraphError, ResourceLimitExceeded
from omnigraph.storage.store import Store

from .files import detect_compression
from .input_files import InputFile, open_input_file
from .table_files import count_rows

_SAMPLE_BYTES = 1 << 18  # number of bytes sampled per text file
_SAMPLED_FILES = 16  # number of files sampled
_STORED_SHARE = {"ndjson": 0.3, "csv": 0.5, "parquet": 0.8}  # ratio of the stored size to the input size
_COMPRESSION_RATIO = 3  # ratio of the decompressed size to the compressed size


@dataclass(frozen=True, slots=True)
class InputEstimate:
    """The estimated number of records in an input, and the number of bytes that they will occupy in a graph."""

    rows: int
    bytes: int


def estimate_input(input_files: Sequence[InputFile]) -> InputEstimate:
    """Estimate the size of an input from a sample of its files and the sizes of all files."""
    sampled_files = input_files[:_SAMPLED_FILES]
    sampled_rows = sum(map(_estimate_rows, sampled_files))
    sampled_bytes, all_bytes = (
        sum(input_file.size for input_file in file_group) for file_group in (sampled_files, input_files)
    )
    return InputEstimate(
        int(sampled_rows * all_bytes / sampled_bytes) if sampled_bytes else 0,
        int(sum(map(_estimate_bytes, input_files))),
    )


def _estimate_bytes(input_file: InputFile) -> float:
    expansion = _COMPRESSION_RATIO if input_file.path.endswith((".gz", ".zst")) else 1
    return input_file.size * expansion * _STORED_SHARE.get(input_file.file_format, 0.0)


def _estimate_rows(input_file: InputFile) -> int:
    # Skip unreadable files. The load reports these files when it reads them.
    with suppress(OmnigraphError, OSError, ValueError), open_input_file(input_file) as file:
        if input_file.file_format == "parquet":
            return count_rows(file)
        sample = file.read(_SAMPLE_BYTES)
        if sample and detect_compression(sample) is None:
            return input_file.size * (sample.count(b"\n") or 1) // len(sample)
    return 0


def require_disk_space(store: Store, needed_bytes: int) -> None:
    """Raise `ResourceLimitExceeded`, with the required and the free space, if the data does not fit on the disk."""
    if not store.root.is_local:
        return
    free_bytes = shutil.disk_usage(_nearest_existing_path(Path(store.root.path))).free
    if needed_bytes > free_bytes:
        needed_text, free_text = format_bytes(needed_bytes), format_bytes(free_bytes)
        raise ResourceLimitExceeded(
            f"the load requires about {needed_text} of disk space, but only {free_text} is free",
            resource="free disk bytes",
            limit=free_bytes,
            actual=needed_bytes,
            hint="free disk space, or load less data",
        )


def format_bytes(byte_count: float) -> str:
    """Format a number of bytes for display.

    >>> format_bytes(999), format_bytes(12_345_678)
    ('999 B', '12.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if byte_count < 1000:
            return f"{byte_count:.3g} {unit}"
        byte_count /= 1000
    return f"{byte_count:.3g} TB"


def _nearest_existing_path(path: Path) -> Path:
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path
