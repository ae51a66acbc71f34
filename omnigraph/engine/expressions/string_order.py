"""Compute the sort order of strings as integer ranks, eight bytes at a time.

Comparing machine words is several times faster than comparing strings, and UTF-8 byte order equals code point order.
Later bytes are compared only for strings that are still tied.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.records.frozen import record

_Int64Array = npt.NDArray[np.int64]
_WORD_BYTES = 8
_MAX_WORDS_COMPARED = 8  # strings that are still tied after eight words are compared as a whole


def string_ranks(strings: pa.Array) -> _Int64Array:
    """Return the rank of each string, which is the number of smaller strings; null counts as an empty string.

    >>> string_ranks(pa.array(["b", "a", "a" + chr(0), "bcdefghijk", "b"])).tolist()
    [2, 0, 1, 4, 2]
    """
    strings = strings.fill_null("") if strings.null_count else strings
    string_words = _split_into_words(strings)
    string_rank: _Int64Array = np.zeros(len(strings), np.int64)
    tied_rows: _Int64Array = np.arange(len(strings))
    for word_number in range(_MAX_WORDS_COMPARED):
        if len(tied_rows) == 0:
            return string_rank
        tied_rows = _refine_ranks(string_rank, tied_rows, string_words.read_word(tied_rows, word_number * _WORD_BYTES))
        if len(tied_rows) and int(string_words.lengths[tied_rows].max()) <= (word_number + 1) * _WORD_BYTES:
            # All bytes have been compared, so remaining ties can differ only in trailing zero bytes.
            _refine_ranks(string_rank, tied_rows, string_words.lengths[tied_rows].astype(np.uint64))
            return string_rank
    if len(tied_rows):
        _refine_ranks(string_rank, tied_rows, _rank_by_comparison(strings.take(pa.array(tied_rows))))
    return string_rank


def _refine_ranks(string_rank: _Int64Array, tied_rows: _Int64Array, numbers: npt.NDArray[np.uint64]) -> _Int64Array:
    """Break ties between rows of equal rank by the given numbers; return the rows that are still tied."""
    current_ranks = string_rank[tied_rows]
    sort_order = np.lexsort((numbers, current_ranks))
    current_ranks = current_ranks[sort_order]
    numbers = numbers[sort_order]
    sorted_rows = tied_rows[sort_order]
    starts_group = np.ones(len(sorted_rows), np.bool_)
    starts_group[1:] = current_ranks[1:] != current_ranks[:-1]
    group_starts = np.maximum.accumulate(np.where(starts_group, np.arange(len(sorted_rows)), 0))
    starts_group[1:] |= numbers[1:] != numbers[:-1]
    tie_starts = np.maximum.accumulate(np.where(starts_group, np.arange(len(sorted_rows)), 0))
    string_rank[sorted_rows] = current_ranks + (tie_starts - group_starts)
    is_unique = starts_group.copy()
    is_unique[:-1] &= starts_group[1:]
    return sorted_rows[~is_unique]


def _rank_by_comparison(strings: pa.Array) -> npt.NDArray[np.uint64]:
    """Rank long strings by comparing whole strings."""
    encoded = strings.dictionary_encode()
    dictionary_ranks = np.empty(len(encoded.dictionary), np.uint64)
    dictionary_ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(dictionary_ranks), dtype=np.uint64)
    string_rank: npt.NDArray[np.uint64] = dictionary_ranks[encoded.indices.to_numpy(zero_copy_only=False)]
    return string_rank


@record(eq=False)
class _StringWords:
    """The bytes of strings, which can be read one eight-byte word at a time."""

    byte_windows: npt.NDArray[Any]
    begins: _Int64Array
    lengths: _Int64Array

    def read_word(self, rows: _Int64Array, offset: int) -> npt.NDArray[np.uint64]:
        """Return the eight bytes at an offset in each string as a big-endian number; missing bytes are zero."""
        lengths = np.clip(self.lengths[rows] - offset, 0, _WORD_BYTES)
        window_positions = np.where(lengths > 0, self.begins[rows] + offset, 0)
        big_endian_words = self.byte_windows[window_positions].view(">u8").ravel().astype(np.uint64)
        unused_bits = ((_WORD_BYTES - lengths) * 8).astype(np.uint64)
        masked_words = (big_endian_words >> unused_bits) << unused_bits
        return np.where(lengths > 0, masked_words, np.uint64(0))


def _split_into_words(strings: pa.Array) -> _StringWords:
    _, offset_buffer, data_buffer = strings.buffers()
    string_bounds = np.frombuffer(offset_buffer, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    first_byte, end_byte = (int(string_bounds[0]), int(string_bounds[-1])) if len(string_bounds) else (0, 0)
    padded_bytes = np.zeros(end_byte - first_byte + _WORD_BYTES, np.uint8)
    if data_buffer is not None:
        padded_bytes[: end_byte - first_byte] = np.frombuffer(data_buffer, np.uint8)[first_byte:end_byte]
    byte_windows = np.lib.stride_tricks.sliding_window_view(padded_bytes, _WORD_BYTES)
    return _StringWords(
        byte_windows, string_bounds[:-1].astype(np.int64) - first_byte, np.diff(string_bounds).astype(np.int64)
    )
