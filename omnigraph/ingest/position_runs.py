"""Encode the input positions of a fragment's rows, which are usually consecutive, in a compact form."""

import zlib

import numpy as np

from omnigraph.rules.delta import Positions


def pack_positions(positions: Positions) -> bytes:
    """Encode input positions as compressed runs of consecutive numbers.

    >>> unpack_positions(pack_positions(np.array([5, 6, 7, 1]))).tolist()
    [5, 6, 7, 1]
    """
    run_starts = np.flatnonzero(np.diff(positions, prepend=positions[:1] - 2) != 1)
    run_lengths = np.diff(run_starts, append=len(positions))
    return zlib.compress(np.stack([positions[run_starts], run_lengths]).astype(np.int64).tobytes(), 1)


def unpack_positions(packed_positions: bytes) -> Positions:
    """Decode input positions."""
    first_positions, run_lengths = np.frombuffer(zlib.decompress(packed_positions), np.int64).reshape(2, -1)
    rows_before = np.cumsum(run_lengths) - run_lengths
    return np.repeat(first_positions - rows_before, run_lengths) + np.arange(int(run_lengths.sum()))
