"""How much a load may bring in at once; every ceiling can be moved, and names itself when hit."""

from dataclasses import dataclass

from omnigraph.errors import ResourceLimitExceeded


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """Ceilings of a load; they are inclusive, and None means that there is none.

    `line_bytes` is one line, `value_bytes` one text or blob, `slots` the structural characters of
    one line of JSON, `rows` the records of one type.
    """

    line_bytes: int = 32 << 20
    value_bytes: int = 32 << 20
    slots: int = 131_072
    rows: int | None = None


def within(resource: str, actual: int, limit: int | None) -> None:
    """Refuse what is more than a limit.

    >>> within("graph_batch_line_bytes", 5, 5)
    """
    if limit is not None and actual > limit:
        raise ResourceLimitExceeded(resource=resource, limit=limit, actual=actual)
