"""Join small pieces of output, because it is slow to pass them on one by one.

Printing a piece costs a system call, and sending it from a server costs a thread switch. This module never splits a
piece.
"""

from collections.abc import Iterable, Iterator


def join_small_pieces(pieces: Iterable[bytes], block_bytes: int) -> Iterator[bytes]:
    """Join pieces into blocks of at least `block_bytes` bytes; only the last block may be smaller.

    >>> list(join_small_pieces([b"ab", b"c", b"de", b"f"], 3))
    [b'abc', b'def']
    """
    block: list[bytes] = []
    joined_bytes = 0
    for piece in pieces:
        block.append(piece)
        joined_bytes += len(piece)
        if joined_bytes >= block_bytes:
            yield block[0] if len(block) == 1 else b"".join(block)
            block, joined_bytes = [], 0
    if block:
        yield b"".join(block)
