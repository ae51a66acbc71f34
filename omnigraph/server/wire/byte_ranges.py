"""The `Range` and `If-Range` headers of blob requests."""

import re
from collections.abc import Sequence

from omnigraph.errors import RangeNotSatisfiable

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.IGNORECASE)


def select_range(values: Sequence[str], length: int) -> tuple[int, int] | None:
    """Return the requested bytes as a half-open range, or None if the whole blob must be sent.

    A header is ignored if it is malformed or repeated, or if it contains several ranges. Raises `RangeNotSatisfiable`
    for a range outside the blob.

    >>> select_range(["bytes=2-3"], 10), select_range(["bytes=-3"], 10), select_range(["bytes=5-2"], 10)
    ((2, 4), (7, 10), None)
    """
    match = _RANGE.fullmatch(values[0].replace(" ", "")) if len(values) == 1 else None
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        start, stop = max(length - int(match[2]), 0), length
    else:
        start, stop = int(match[1]), int(match[2]) + 1 if match[2] else max(int(match[1]), length)
        if stop <= start and match[2]:
            return None
    if start >= length:
        raise RangeNotSatisfiable(start=start, end=stop, length=length)
    return start, min(stop, length)


def keeps_range(if_range: str | None, etag: str) -> bool:
    """Return whether a range applies: `If-Range` must be absent, or equal to the blob's strong tag.

    >>> keeps_range(None, '"a"'), keeps_range('"a"', '"a"'), keeps_range('W/"a"', '"a"')
    (True, True, False)
    """
    return if_range is None or if_range.strip() == etag


def matches_strongly(if_match: str, etag: str) -> bool:
    """Return whether an `If-Match` header contains the strong tag of a blob. `*` matches every blob.

    >>> matches_strongly('"a", "b"', '"b"'), matches_strongly("*", '"b"'), matches_strongly('W/"b"', '"b"')
    (True, True, False)
    """
    tags = [tag.strip() for tag in if_match.split(",")]
    return tags == ["*"] or etag in tags
