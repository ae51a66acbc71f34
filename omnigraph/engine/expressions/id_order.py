"""The sorted ids in a table version, which are used to find the row with a given id and the rank of a given row.

A lookup bisects numbers built from the first bytes in which the ids differ, because comparing numbers is much cheaper
than comparing Arrow strings. If two numbers are equal, the ids themselves are compared.
"""

from bisect import bisect_left, bisect_right
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.operators.rows import NULL_ROW, IntArray
from omnigraph.records.frozen import record

_NUMBER_BYTES = 8


@record(eq=False)
class IdOrder:
    """The sorted ids of a table version, with the row for each id and the rank of each row.

    `leading_numbers` holds the first eight bytes of each id after the prefix that all ids share.

    >>> order = build_id_order(pa.array(["ann", "bob", "eve"]), np.array([7, 2, 4]))
    >>> order.find_row("bob"), order.find_row("cyd"), order.order_numbers(np.array([4, -1])).tolist()
    (2, None, [3, 0])
    """

    ids: pa.Array
    rows: IntArray
    rank_by_row: IntArray
    shared_prefix: bytes
    leading_numbers: npt.NDArray[np.uint64]

    def find_row(self, entity_id: str) -> int | None:
        """Return the row with the given id, or None."""
        id_bytes, prefix_length = entity_id.encode(), len(self.shared_prefix)
        if not id_bytes.startswith(self.shared_prefix):
            return None
        leading_bytes = id_bytes[prefix_length : prefix_length + _NUMBER_BYTES]
        leading_number = int.from_bytes(leading_bytes.ljust(_NUMBER_BYTES, b"\0"))
        numbers = self.leading_numbers.data  # a memoryview yields Python integers, which compare fastest
        low = bisect_left(numbers, leading_number)
        high = bisect_right(numbers, leading_number, low)
        while low < high:
            middle = (low + high) // 2
            middle_id = self.ids[middle].as_py()
            if middle_id == entity_id:
                return int(self.rows[middle])
            if middle_id < entity_id:
                low = middle + 1
            else:
                high = middle
        return None

    def order_numbers(self, row_ids: IntArray) -> IntArray:
        """Return numbers that sort like the ids of the rows; null sorts first."""
        order_numbers: IntArray = self.rank_by_row[row_ids]
        order_numbers += 1
        if int(row_ids.min(initial=0)) < 0:
            order_numbers[row_ids < 0] = 0
        return order_numbers

    @property
    def nbytes(self) -> int:
        """The total size of all arrays in bytes."""
        return int(self.ids.nbytes) + self.rows.nbytes + self.rank_by_row.nbytes + self.leading_numbers.nbytes


def build_id_order(sorted_ids: pa.Array, row_ids: IntArray) -> IdOrder:
    """Build the order from a non-empty sorted array of ids and the row for each id."""
    rank_by_row = np.full(int(row_ids.max()) + 1, NULL_ROW, np.int64)
    rank_by_row[row_ids] = np.arange(len(row_ids))
    first_id, last_id = sorted_ids[0].as_py().encode(), sorted_ids[-1].as_py().encode()
    shared_bytes = takewhile(lambda pair: pair[0] == pair[1], zip(first_id, last_id, strict=False))
    shared_prefix = bytes(first_byte for first_byte, _ in shared_bytes)  # the ids in between share the prefix, too
    return IdOrder(sorted_ids, row_ids, rank_by_row, shared_prefix, _leading_numbers(sorted_ids, len(shared_prefix)))


def _leading_numbers(ids: pa.Array, prefix_length: int) -> npt.NDArray[np.uint64]:
    """For each id, return the number formed by the first eight bytes after the prefix.

    Missing bytes are zero, so the numbers sort like the ids, but different ids may have the same number.
    """
    _, offset_buffer, data_buffer = ids.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[ids.offset : ids.offset + len(ids) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    numbers = np.zeros(len(ids), np.uint64)
    positions, ends = offsets[:-1] + np.int32(prefix_length), offsets[1:]
    for _ in range(_NUMBER_BYTES):
        numbers <<= np.uint64(8)
        has_byte = positions < ends
        numbers[has_byte] |= data[positions[has_byte]]
        positions = positions + np.int32(1)
    return numbers
