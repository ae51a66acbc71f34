"""Translate id columns with millions of entries into the row ids of a node table.

A hash only proposes a candidate row. The candidate is accepted only if its id and the id to translate have the same
length and the same bytes. A hash collision therefore costs time but never changes a result.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.operators.rows import NULL_ROW, IntArray
from omnigraph.records.frozen import record

WordArray = npt.NDArray[np.uint64]
_MAX_ID_BYTES = 64  # maximum id length in bytes; longer ids go through Arrow's hash table, which is slower
_MAX_HASH_TABLES = 12
_BLOCK_IDS = 1 << 16  # number of ids per chunk, small enough that intermediate arrays stay in the CPU cache
_ROW_MASK = np.uint64((1 << 48) - 1)
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# Masks that keep the bytes of a word that belong to an id, indexed by the number of bytes left in the id.
_BYTE_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)


@record
class _PackedStrings:
    """Strings packed into zero-padded eight-byte words, together with their lengths."""

    words: tuple[WordArray, ...]
    lengths: WordArray

    def take(self, positions: Any) -> "_PackedStrings":
        return _PackedStrings(tuple(word.take(positions) for word in self.words), self.lengths.take(positions))

    def hashes(self) -> WordArray:
        hashes = self.lengths.copy()
        for word in self.words:
            hashes = (hashes ^ word) * _HASH_MULTIPLIER
            hashes ^= hashes >> np.uint64(29)
        return hashes * _HASH_MULTIPLIER


@record
class _HashTable:
    """A hash table that stores at most one id position per slot; -1 marks an empty slot."""

    slots: npt.NDArray[np.int32]
    shift: np.uint64


class IdEncoder:
    """A map from ids to the row ids of a node table.

    >>> encoder = IdEncoder(pa.array(["ann", "bob"]), np.array([7, 3]))
    >>> encoder.encode(pa.array(["bob", "x"])).tolist()
    [3, -1]
    """

    def __init__(self, entity_ids: pa.Array, row_ids: IntArray) -> None:
        self._ids, self._rows = entity_ids, row_ids
        self._hash_tables: list[_HashTable] = []
        max_length = _max_byte_length(entity_ids)
        self._word_count = -(-max_length // 8)
        self._is_hashed = False
        if len(entity_ids) and max_length <= _MAX_ID_BYTES and int(row_ids.max()) < 1 << 48:
            packed_ids = _pack_strings(entity_ids, self._word_count)
            # An id's length, row and words are stored together, so each probe needs only one random memory access.
            lengths_and_rows = (packed_ids.lengths << np.uint64(48)) | row_ids.astype(np.uint64)
            self._records = np.column_stack([lengths_and_rows, *packed_ids.words])
            self._is_hashed = self._fill_hash_tables(packed_ids.hashes())

    def _fill_hash_tables(self, hashes: WordArray) -> bool:
        """Store every id in a slot. If the slot for an id is taken, the id goes into the next hash table."""
        unplaced = np.arange(len(hashes), dtype=np.int32)
        while len(unplaced) and len(self._hash_tables) < _MAX_HASH_TABLES:
            slot_bits = max(4, (4 * len(unplaced)).bit_length())
            hash_table = _HashTable(np.full(1 << slot_bits, -1, np.int32), np.uint64(64 - slot_bits))
            slot_numbers = hashes >> hash_table.shift
            hash_table.slots[slot_numbers] = unplaced
            self._hash_tables.append(hash_table)
            displaced = np.flatnonzero(hash_table.slots[slot_numbers] != unplaced)
            unplaced, hashes = unplaced[displaced], _next_hashes(hashes[displaced])
        return len(unplaced) == 0

    def encode(self, id_column: pa.Array | pa.ChunkedArray) -> IntArray:
        """Return the row id for each id, or -1 if the id does not exist."""
        chunks = id_column.chunks if isinstance(id_column, pa.ChunkedArray) else [id_column]
        encoded_chunks = [self._encode_chunk(chunk) for chunk in chunks]
        return np.concatenate(encoded_chunks) if encoded_chunks else np.empty(0, np.int64)

    def _encode_chunk(self, chunk: pa.Array) -> IntArray:
        if not self._is_hashed or chunk.null_count:
            return self._encode_with_arrow(chunk)
        row_ids = np.empty(len(chunk), np.int64)
        for block_start in range(0, len(chunk), _BLOCK_IDS):
            row_ids[block_start : block_start + _BLOCK_IDS] = self._encode_block(chunk.slice(block_start, _BLOCK_IDS))
        return row_ids

    def _encode_block(self, block: pa.Array) -> IntArray:
        packed_ids = _pack_strings(block, self._word_count)
        hashes = packed_ids.hashes()
        row_ids = np.full(len(block), NULL_ROW, np.int64)
        unresolved: npt.NDArray[np.intp] | None = None
        for hash_table in self._hash_tables:
            proposed_positions = hash_table.slots.take(hashes >> hash_table.shift, mode="wrap")
            proposed_rows, is_match = self._verify_proposals(proposed_positions, packed_ids)
            if unresolved is None:
                row_ids[:] = np.where(is_match, proposed_rows, NULL_ROW)
            else:
                row_ids[unresolved[is_match]] = proposed_rows[is_match]
            mismatches = np.flatnonzero(~is_match)
            if len(mismatches) == 0:
                break
            unresolved = mismatches if unresolved is None else unresolved[mismatches]
            packed_ids, hashes = packed_ids.take(mismatches), _next_hashes(hashes[mismatches])
        return row_ids

    def _verify_proposals(
        self, proposed_positions: npt.NDArray[np.int32], packed_ids: _PackedStrings
    ) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the rows at the proposed positions, and a mask that is true where the proposal is correct.

        An empty slot proposes position -1, which refers to the last id. The comparison rejects this proposal like any
        other mismatch.
        """
        records = np.take(self._records, proposed_positions, axis=0, mode="wrap")
        lengths_and_rows = records[:, 0]
        is_match: npt.NDArray[np.bool_] = (lengths_and_rows >> np.uint64(48)) == packed_ids.lengths
        for word_number, wanted_words in enumerate(packed_ids.words):
            is_match &= records[:, word_number + 1] == wanted_words
        return (lengths_and_rows & _ROW_MASK).view(np.int64), is_match

    def _encode_with_arrow(self, chunk: pa.Array) -> IntArray:
        import pyarrow.compute as pc

        arrow_positions = pc.index_in(chunk, value_set=self._ids, skip_nulls=True)
        positions: IntArray = arrow_positions.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if len(self._rows) == 0:
            return positions
        return np.where(positions < 0, NULL_ROW, self._rows[positions])


def build_encoder(id_chunks: Sequence[pa.Array] | pa.ChunkedArray, row_ids: IntArray) -> IdEncoder:
    """Build an encoder from a scanned id column."""
    chunks = id_chunks.chunks if isinstance(id_chunks, pa.ChunkedArray) else list(id_chunks)
    return IdEncoder(pa.concat_arrays(chunks) if chunks else pa.array([], pa.string()), row_ids)


def _next_hashes(hashes: WordArray) -> WordArray:
    mixed_hashes = (hashes ^ (hashes >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    return mixed_hashes ^ (mixed_hashes >> np.uint64(27))


def _max_byte_length(entity_ids: pa.Array) -> int:
    if len(entity_ids) == 0:
        return 0
    return int(np.diff(_string_offsets(entity_ids)).max())


def _string_offsets(strings: pa.Array) -> npt.NDArray[np.int64]:
    offset_type = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    offset_buffer = strings.buffers()[1]
    all_offsets = np.frombuffer(offset_buffer, offset_type, count=strings.offset + len(strings) + 1)
    return all_offsets[strings.offset :].astype(np.int64)


def _pack_strings(strings: pa.Array, word_count: int) -> _PackedStrings:
    """Pack strings into `word_count` words.

    A string that does not fit is truncated but keeps its length, so it never matches an id in the table.
    """
    offsets = _string_offsets(strings)
    lengths = np.diff(offsets)
    # Eight bytes of padding allow a full word to be read at every position in the data.
    first_byte, stop_byte = int(offsets[0]), int(offsets[-1])
    padded_bytes = np.zeros(stop_byte - first_byte + 8, np.uint8)
    data_buffer = strings.buffers()[2]
    if data_buffer is not None and stop_byte > first_byte:
        padded_bytes[:-8] = np.frombuffer(data_buffer, np.uint8, count=stop_byte)[first_byte:]
    windows = np.ndarray((len(padded_bytes) - 7,), np.dtype("<u8"), padded_bytes, strides=(1,))
    string_starts = offsets[:-1] - first_byte
    common_length = int(lengths[0]) if len(lengths) else 0
    if len(lengths) and common_length and (lengths == common_length).all():
        return _pack_equal_lengths(windows, common_length, word_count, len(lengths))
    words = []
    for word_offset in range(0, 8 * word_count, 8):
        remaining_bytes = np.clip(lengths - word_offset, 0, 8)
        window_positions = np.minimum(string_starts + word_offset, len(windows) - 1)
        words.append((windows[window_positions] & _BYTE_MASKS[remaining_bytes]).astype(np.uint64, copy=False))
    return _PackedStrings(tuple(words), lengths.astype(np.uint64))


def _pack_equal_lengths(windows: WordArray, common_length: int, word_count: int, string_count: int) -> _PackedStrings:
    """Pack strings of equal length by slicing, which is possible because their words are evenly spaced in memory."""
    words = []
    for word_offset in range(0, 8 * word_count, 8):
        if word_offset < common_length:
            words.append(
                windows[word_offset::common_length][:string_count] & _BYTE_MASKS[min(common_length - word_offset, 8)]
            )
        else:
            words.append(np.zeros(string_count, np.uint64))
    return _PackedStrings(tuple(words), np.full(string_count, common_length, np.uint64))
