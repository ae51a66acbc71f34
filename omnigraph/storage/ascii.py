"""Tokenize pure ASCII texts with a few passes over their bytes, without regular expressions.

Returns the same tokens as the general tokenizer, in a third of the time.
"""

import numpy as np
import pyarrow as pa

from .scan import Ids

# What each byte becomes: a lower-case letter, a digit, or 0 for a separator.
_LOWER = np.array(
    [ord(chr(at).lower()) if at < 128 and chr(at).isalnum() else 0 for at in range(256)], np.uint8
)


def cut_plain(texts: pa.Array) -> tuple[Ids, pa.Array]:
    """Return the lower-case tokens of all texts in order: (index of the text of each, tokens).

    >>> owners, words = cut_plain(pa.array(["To be, or", None, "x-RAY2"]))
    >>> owners.tolist(), words.to_pylist()
    ([0, 0, 0, 2, 2], ['to', 'be', 'or', 'x', 'ray2'])
    """
    if len(texts) == 0:  # an empty array may have no buffers
        return np.empty(0, np.int64), pa.array([], pa.string())
    texts = texts.cast(pa.string()).fill_null("")
    _, places, data = texts.buffers()
    ends = np.frombuffer(places, np.int32, len(texts) + 1, texts.offset * 4)
    raw = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    ends = ends - ends[0]
    letters = _LOWER[raw]
    kept = letters > 0
    first, last = kept.copy(), kept.copy()
    first[1:] &= ~kept[:-1]
    last[:-1] &= ~kept[1:]
    edges = ends[(ends > 0) & (ends < len(kept))]  # no token extends beyond its text
    first[edges], last[edges - 1] = kept[edges], kept[edges - 1]
    starts = np.flatnonzero(first)
    sizes = np.flatnonzero(last) - starts + 1
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    owners = np.repeat(np.arange(len(texts)), np.diff(np.searchsorted(starts, ends)))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters[kept])]
    return owners, pa.Array.from_buffers(pa.string(), len(starts), buffers)
