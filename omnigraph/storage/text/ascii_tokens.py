"""Tokenize pure ASCII strings with a few passes over their bytes, without regular expressions.

The general tokenizer would return the same tokens but take three times as long.
"""

import numpy as np
import pyarrow as pa

from omnigraph.storage.scan import RowIdArray

# The replacement for each byte: a lowercase letter, a digit, or 0 for a separator.
_LOWERCASE_BYTES = np.array(
    [ord(chr(at).lower()) if at < 128 and chr(at).isalnum() else 0 for at in range(256)], np.uint8
)


def tokenize_ascii(texts: pa.Array) -> tuple[RowIdArray, pa.Array]:
    """Return two parallel arrays with an entry per token, in order: the index of its string, and the lowercase token.

    >>> owners, words = tokenize_ascii(pa.array(["To be, or", None, "x-RAY2"]))
    >>> owners.tolist(), words.to_pylist()
    ([0, 0, 0, 2, 2], ['to', 'be', 'or', 'x', 'ray2'])
    """
    if len(texts) == 0:  # an empty array may have no buffers
        return np.empty(0, np.int64), pa.array([], pa.string())
    texts = texts.cast(pa.string()).fill_null("")
    _, offsets_buffer, text_buffer = texts.buffers()
    text_boundaries = np.frombuffer(offsets_buffer, np.int32, len(texts) + 1, texts.offset * 4)
    raw_bytes = np.frombuffer(text_buffer or b"", np.uint8)[text_boundaries[0] : text_boundaries[-1]]
    text_boundaries = text_boundaries - text_boundaries[0]
    lowered_bytes = _LOWERCASE_BYTES[raw_bytes]
    is_token_byte = lowered_bytes > 0
    is_token_start, is_token_end = is_token_byte.copy(), is_token_byte.copy()
    is_token_start[1:] &= ~is_token_byte[:-1]
    is_token_end[:-1] &= ~is_token_byte[1:]
    inner_boundaries = text_boundaries[
        (text_boundaries > 0) & (text_boundaries < len(is_token_byte))
    ]  # no token extends beyond its string
    is_token_start[inner_boundaries], is_token_end[inner_boundaries - 1] = (
        is_token_byte[inner_boundaries],
        is_token_byte[inner_boundaries - 1],
    )
    token_starts = np.flatnonzero(is_token_start)
    token_sizes = np.flatnonzero(is_token_end) - token_starts + 1
    token_offsets = np.concatenate([[0], np.cumsum(token_sizes)]).astype(np.int32)
    text_indices = np.repeat(np.arange(len(texts)), np.diff(np.searchsorted(token_starts, text_boundaries)))
    buffers = [None, pa.py_buffer(token_offsets), pa.py_buffer(lowered_bytes[is_token_byte])]
    return text_indices, pa.Array.from_buffers(pa.string(), len(token_starts), buffers)
