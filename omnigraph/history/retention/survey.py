"""List every file that a collector may remove, with size and store time.

Owns which directories those are, and which table or manifest a file belongs to. Reads names only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from omnigraph.storage import layout
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    from .hands import Hands

TABLES = ("nodes", "edges")
MANIFESTS = (layout.MANIFEST, layout.BRANCHES)
_JUDGED = (*TABLES, *MANIFESTS, layout.COMMITS, layout.SCHEMAS)
_LAST = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Survey:
    """The files at one moment, by name; `unfinished` are temporary files never renamed."""

    at: datetime
    files: Mapping[str, Found]
    unfinished: Mapping[str, Found]

    def size(self, name: str) -> int:
        """Return the size of a file in bytes; 0 if it was not listed."""
        found = self.files.get(name) or self.unfinished.get(name)
        return found.size if found is not None else 0

    def modified(self, name: str) -> datetime | None:
        """Return the store time of a file; None if it was not listed."""
        found = self.files.get(name) or self.unfinished.get(name)
        return found.modified if found is not None else None

    def with_sizes(self, other: "Survey") -> "Survey":
        """Return this survey with the sizes of files that another one listed."""
        return Survey(self.at, {**other.files, **self.files}, self.unfinished)

    def manifests(self) -> dict[str, list[Found]]:
        """Return the files of every manifest, by its directory."""
        found: dict[str, list[Found]] = {}
        for name, one in self.files.items():
            if name.startswith(MANIFESTS):
                found.setdefault(place_of(name), []).append(one)
        return found


def take_survey(store: Store, at: datetime, hands: "Hands") -> Survey:
    """List every file that may be removed."""
    listed = {one.name: one for one in hands.list(store, _JUDGED)}
    unfinished = {one.name: one for one in store.objects.unfinished(*_JUDGED)}
    return Survey(at, listed, unfinished)


def place_of(name: str) -> str:
    """Return the table or manifest that a file belongs to; for other objects their directory.

    >>> place_of("nodes/40d7-01J0/data/x.lance"), place_of("__manifest/data/x.lance")
    ('nodes/40d7-01J0', '__manifest')
    >>> place_of("_commits/40d7-01J0")
    '_commits'
    """
    top, *rest = name.split("/")
    return f"{top}/{rest[0]}" if top in (*TABLES, layout.BRANCHES) and rest else top


def kind_of(name: str) -> str:
    """Return the subdirectory of a file in its table or manifest: `data`, `_versions` and so on."""
    return name.removeprefix(place_of(name)).lstrip("/").partition("/")[0]


def version_number(name: str) -> int | None:
    """Return the number of an attached version by its file name; None for any other file.

    >>> version_number("t/_versions/18446744073709551614.manifest")
    1
    >>> version_number("t/_versions/d7.manifest")
    """
    stem = name.rpartition("/")[2].removesuffix(".manifest")
    return _LAST - int(stem) if stem.isdecimal() and name.endswith(".manifest") else None


def attached(files: Mapping[str, Found] | Iterator[str], place: str) -> list[int]:
    """Return the listed attached versions of a table."""
    prefix = f"{place}/_versions/"
    numbers = (version_number(name) for name in files if name.startswith(prefix))
    return sorted(one for one in numbers if one is not None)
