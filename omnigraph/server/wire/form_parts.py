"""Find the parts of a multipart/form-data body that is stored in a file, without copying the parts.

The body is searched for its boundary in pieces, so the memory used does not depend on its size. Each part is a
read-only window of the same file. This module does not interpret the content of a part.
"""

import io
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import IO, Any

from omnigraph.errors import InputError
from omnigraph.records.frozen import record

_SEARCH_BYTES = 1 << 20
_MAX_HEADER_BYTES = 16 << 10
_MAX_PARTS = 10_000
_MAX_LINE_END = 70  # the most bytes of a delimiter line besides the delimiter
_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]{1,70})"|([^\s";]{1,70}))', re.IGNORECASE)
_PARAMETER = re.compile(r';\s*(name|filename)="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_HeaderLines = dict[str, str]


@record
class FormPart:
    """A part of a form: its name, the name of its file if it has one, its media type, and its content."""

    name: str
    file_name: str | None
    media_type: str
    content: IO[bytes]


class FileWindow(io.RawIOBase):
    """A range of a file that can be read as if it were a separate file.

    >>> window = FileWindow(io.BytesIO(b"0123456789"), 2, 6)
    >>> window.seek(1), window.read(), window.read()
    (1, b'345', b'')
    """

    def __init__(self, file: IO[bytes], start: int, end: int) -> None:
        self._file, self._start, self._size = file, start, end - start
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position in the range."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def tell(self) -> int:
        """Return the position in the range."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer and return how many were read, or 0 at the end of the range."""
        wanted = max(0, min(len(buffer), self._size - self._position))
        self._file.seek(self._start + self._position)
        chunk = self._file.read(wanted)
        buffer[: len(chunk)] = chunk
        self._position += len(chunk)
        return len(chunk)


def read_form(file: IO[bytes], content_type: str) -> list[FormPart]:
    """Return the parts of a form in the order of the body; raise `InputError` if the body is malformed."""
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise _malformed("the Content-Type has no boundary")
    delimiters = list(_find_delimiters(file, f"--{match[1] or match[2]}".encode("utf-8", "replace")))
    if not delimiters or not delimiters[-1][2]:
        raise _malformed("the final boundary is missing")
    return [_read_part(file, end, next_start) for (_, end, _), (next_start, _, _) in pairwise(delimiters)]


def _find_delimiters(file: IO[bytes], delimiter: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield where each delimiter line begins and ends, and whether it is the last one.

    The line break before a delimiter belongs to the delimiter.
    """
    pattern = re.compile(rb"\r\n" + re.escape(delimiter) + rb"(--|[ \t]{0,64}\r\n)")
    text, offset, part_count = b"\r\n", -2, 0  # the body begins as if a line end preceded it
    file.seek(0)
    while chunk := file.read(_SEARCH_BYTES):
        text += chunk
        searched_end = 0
        for match in pattern.finditer(text):
            yield offset + match.start(), offset + match.end(), match[1] == b"--"
            searched_end, part_count = match.end(), part_count + 1
            if match[1] == b"--":
                return
            if part_count > _MAX_PARTS:
                raise _malformed(f"there are more than {_MAX_PARTS:,} parts")
        kept_bytes = min(len(text) - searched_end, len(delimiter) + _MAX_LINE_END)
        offset += len(text) - kept_bytes
        text = text[len(text) - kept_bytes :]


def _read_part(file: IO[bytes], start: int, end: int) -> FormPart:
    file.seek(start)
    head, blank_line, _ = (b"\r\n" + file.read(min(_MAX_HEADER_BYTES, end - start))).partition(b"\r\n\r\n")
    if not blank_line:
        raise _malformed("a part has no blank line after its headers")
    headers = _read_headers(head.decode("utf-8", "replace"))
    parameters = {name.lower(): _unescape(value) for name, value in _PARAMETER.findall(headers["content-disposition"])}
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    content_start = start + len(head) + len(blank_line) - len(b"\r\n")
    content: Any = io.BufferedReader(FileWindow(file, content_start, end))
    return FormPart(parameters.get("name", ""), parameters.get("filename"), media_type, content)


def _read_headers(head: str) -> _HeaderLines:
    fields = (line.partition(":") for line in head.split("\r\n") if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    if not headers.get("content-disposition", "").lower().startswith("form-data"):
        raise _malformed("a part has no `Content-Disposition: form-data`")
    return headers


def _unescape(value: str) -> str:
    r"""Return a parameter with its quotes restored; clients escape a quote as `\"` or `%22`.

    >>> _unescape(r"a\"b"), _unescape("a%22b")
    ('a"b', 'a"b')
    """
    return re.sub(r"\\(.)", r"\1", value).replace("%22", '"')


def _malformed(problem: str) -> InputError:
    return InputError(f"the form is malformed: {problem}", reason="malformed body")
