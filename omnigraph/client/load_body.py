"""The body of a load: NDJSON in a temporary file, from which it can be sent repeatedly or in parts.

A part contains only nodes or only edges, because an edge is accepted only after the nodes at its ends. This module
sends nothing.
"""

import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Self

from omnigraph.records.frozen import record

from .replies import CHUNK_BYTES

_MEMORY_BYTES = 16 << 20


@record
class LoadPart:
    """Lines that are sent in one request, and their line numbers in the whole input."""

    content: bytes
    line_numbers: "array[int]"


class LoadBody:
    """The lines of a load. Close it to delete its temporary file.

    >>> with LoadBody([b'{"type": "Person"', b', "data": {}}']) as body:
    ...     body.size, b"".join(body.chunks())
    (30, b'{"type": "Person", "data": {}}')
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        file = SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115 - `close` closes it
        self._file, self.size, digest = file, 0, sha256()
        try:
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
                self.size += len(chunk)
        except BaseException:
            file.close()
            raise
        self.digest = digest.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes, from the beginning."""
        self._file.seek(0)
        while chunk := self._file.read(CHUNK_BYTES):
            yield chunk

    def reader(self, report_progress: Callable[[int], None]) -> Callable[[], Iterator[bytes]]:
        """Return a function that yields all bytes and, if the body is large, reports progress."""

        def read_chunks() -> Iterator[bytes]:
            sent_bytes = 0
            for chunk in self.chunks():
                yield chunk
                sent_bytes += len(chunk)
                if self.size > _MEMORY_BYTES:
                    report_progress(sent_bytes)

        return read_chunks

    def documents(self) -> Iterator[Any]:
        """Yield the JSON value of every line that is not blank."""
        self._file.seek(0)
        yield from (json.loads(line) for line in _iter_lines(self._file) if line.strip())

    def cut_parts(self, max_bytes: int, *, edges_first: bool) -> Iterator[LoadPart]:
        """Yield all lines in parts of at most `max_bytes`: those with nodes and those with edges, each in input order.

        A line that is longer than `max_bytes` is a part of its own. An unreadable line counts as a node.
        """
        for wants_edges in (edges_first, not edges_first):
            self._file.seek(0)
            yield from _join_lines(_select_lines(self._file, wants_edges=wants_edges), max_bytes)


def _iter_lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline():
        yield line


def _select_lines(file: IO[bytes], *, wants_edges: bool) -> Iterator[tuple[int, bytes]]:
    for line_number, line in enumerate(_iter_lines(file), 1):
        if line.strip() and is_edge_line(line) == wants_edges:
            yield line_number, line if line.endswith(b"\n") else line + b"\n"


def is_edge_line(line: bytes) -> bool:
    """Return whether a line describes an edge.

    >>> is_edge_line(b'{"edge": "Knows"}'), is_edge_line(b'{"type": "Doc", "data": {"edge": 1}}')
    (True, False)
    """
    if b"edge" not in line and b"\\" not in line:
        return False
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "edge" in document


def _join_lines(lines: Iterator[tuple[int, bytes]], max_bytes: int) -> Iterator[LoadPart]:
    joined: list[bytes] = []
    size, line_numbers = 0, array("Q")
    for line_number, line in lines:
        if joined and size + len(line) > max_bytes:
            yield LoadPart(b"".join(joined), line_numbers)
            joined, size, line_numbers = [], 0, array("Q")
        joined.append(line)
        line_numbers.append(line_number)
        size += len(line)
    if joined:
        yield LoadPart(b"".join(joined), line_numbers)
