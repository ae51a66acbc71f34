"""The registry of storage format upgrades, which convert manifest rows from one format to the next.

This module defines which formats can be upgraded in place. An upgrade step converts rows and may create new objects. It
never changes or removes an existing object, because the upgrade may be interrupted and readers that use the older
format may still be active.
"""

from collections.abc import Callable
from typing import Any

from omnigraph.records.frozen import record
from omnigraph.storage import layout
from omnigraph.storage.store import Store

ManifestRows = list[dict[str, Any]]


@record
class FormatUpgrade:
    """An upgrade step from one format to the next. `convert_rows` converts all rows in one manifest version.

    The checksum row is verified before the first upgrade step and written again after the last one, so the steps never
    receive it. If an upgrade step raises an error, the manifest is left unchanged.
    """

    from_stamp: int
    to_stamp: int
    description: str
    convert_rows: Callable[[Store, ManifestRows], ManifestRows]


# Format 100 is the first format. When you raise `layout.STAMP`, add a step here, or state in the
# changelog why the older format cannot be upgraded in place.
UPGRADES: tuple[FormatUpgrade, ...] = ()


def find_upgrades(stamp: int) -> tuple[FormatUpgrade, ...] | None:
    """Return the steps from a format to the current format, in the order in which they run, or None if one is missing.

    >>> find_upgrades(layout.STAMP), find_upgrades(3)
    ((), None)
    """
    steps_by_stamp = {step.from_stamp: step for step in UPGRADES}
    path: list[FormatUpgrade] = []
    while stamp != layout.STAMP:
        step = steps_by_stamp.get(stamp)
        if step is None or step.to_stamp <= stamp:
            return None
        path.append(step)
        stamp = step.to_stamp
    return tuple(path)
