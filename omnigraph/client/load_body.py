"""A temporary file with the bytes of one part of a load, so that the part can be sent several times."""

from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Self

from .replies import CHUNK_BYTES

_MEMORY_BYTES = 16 << 20


class LoadBody:
    """The bytes of one part of a load, in memory or in a temporary file that is deleted on close.

    >>> with LoadBody([b'{"type": "Person"', b', "data": {}}']) as body:
    ...     body.size, b"".join(body.chunks())
    (30, b'{"type": "Person", "data": {}}')
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        file = SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115 - `close` closes it
        self._file, self.size = file, 0
        try:
            for chunk in chunks:
                file.write(chunk)
                self.size += len(chunk)
        except BaseException:
            file.close()
            raise

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
