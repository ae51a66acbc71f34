"""Configurable limits on load input; if a limit is exceeded, the error names it."""

from dataclasses import dataclass

from omnigraph.errors import ResourceLimitExceeded

LARGE_BLOB_HINT = "pass the blob as a pathlib.Path or as a file opened in binary mode, or use `blob put`"


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """Inclusive limits for a load; None means unlimited.

    `line_bytes` limits the size of a line, `value_bytes` the size of a string or blob, `slots` the number of structural
    characters in a JSON line, and `rows` the number of records per type.
    """

    line_bytes: int = 32 << 20
    value_bytes: int = 32 << 20
    slots: int = 131_072
    rows: int | None = None


def check_limit(resource: str, actual: int, limit: int | None, hint: str | None = None) -> None:
    """Raise ResourceLimitExceeded if a value exceeds its limit.

    >>> check_limit("graph_batch_line_bytes", 5, 5)
    """
    if limit is not None and actual > limit:
        raise ResourceLimitExceeded(resource=resource, limit=limit, actual=actual, hint=hint)
