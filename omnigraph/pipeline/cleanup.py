"""Run the file work of a cleanup on executors: list files, read table versions, remove files.

The driver holds the claim and makes every decision. A task that fails midway has removed only files
that were to be deleted anyway: the delete queue persists, and the next run continues with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnigraph.errors import StorageError
from omnigraph.history.retention.hands import Check, Hands, Here, Told, Version
from omnigraph.history.retention.sweep import ranks, remove
from omnigraph.storage.failures import AbsentError
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import Files, version_files

from .engine import Engine
from .jobs import run_jobs
from .pick import session_for
from .place import Place, place_of

LARGE = 100_000  # number of files from which executors are worth starting
_VERSIONS = 64  # table versions that one job reads
_NAMES = 512  # files that one job removes
_ROUND = 64  # jobs between two checks of the driver's claim


@dataclass(frozen=True, slots=True)
class SparkHands:
    """`CleanupExecutor` of `omnigraph.history.retention`, on a Spark session."""

    spark: Any
    name: str = "spark"
    reads_ahead: bool = True

    def list(self, store: Store, places: Sequence[str]) -> Iterable[Found]:
        """List every file below these directories; each job lists one subdirectory of a table."""
        found, deeper = _levels(store, places, 2)
        work = partial(_list, place_of(store, {}))
        for some in run_jobs(self.spark, work, deeper, short=True):
            found += some
        return found

    def read_versions(self, store: Store, versions: Sequence[Version]) -> dict[Version, Files]:
        """Return the files of each version; an unreadable version is left to the driver."""
        work = partial(_read, place_of(store, {}))
        parts = run_jobs(self.spark, work, list(_cut(sorted(versions), _VERSIONS)), short=True)
        return dict(pair for some in parts for pair in some)

    def remove(self, store: Store, names: Sequence[str], told: Told, check_claim: Check) -> None:
        """Remove files, all of one rank before those of the next."""
        work = partial(_remove, place_of(store, {}))
        for rank in ranks(names):
            for some in _cut(list(_cut(rank, _NAMES)), _ROUND):
                check_claim()
                for done in run_jobs(self.spark, work, some, short=True):
                    for name, error in done:
                        told(name, error)


class PickedHands:
    """A cleanup executor that lists files in this process, and uses Spark if there are many."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._hands: Hands = Here()

    @property
    def name(self) -> str:
        """The name used in reports."""
        return self._hands.name

    @property
    def reads_ahead(self) -> bool:
        """Whether reading versions ahead is worth it."""
        return self._hands.reads_ahead

    def list(self, store: Store, places: Sequence[str]) -> Iterable[Found]:
        """List every file below these directories."""
        found = list(self._hands.list(store, places))
        session = session_for("auto", self._spark, lambda: len(found) >= LARGE)
        if session is not None:
            self._hands = SparkHands(session)
        return found

    def read_versions(self, store: Store, versions: Sequence[Version]) -> dict[Version, Files]:
        """Return the files of each version."""
        return self._hands.read_versions(store, versions)

    def remove(self, store: Store, names: Sequence[str], told: Told, check_claim: Check) -> None:
        """Remove files in the order of their ranks."""
        self._hands.remove(store, names, told, check_claim)


def hands_for(engine: Engine, spark: Any) -> Hands:
    """Choose the executor of a cleanup."""
    if engine == "auto":
        return PickedHands(spark)
    session = session_for(engine, spark, lambda: False)
    return SparkHands(session) if session is not None else Here()


def _levels(store: Store, places: Sequence[str], depth: int) -> tuple[list[Found], list[str]]:
    """Return the files of the first `depth` levels, and the directories below those levels."""
    found: list[Found] = []
    here = list(places)
    for _ in range(depth):
        seen = [store.objects.level(one) for one in here]
        found += [one for _, files in seen for one in files]
        here = [one for deeper, _ in seen for one in deeper]
    return found, here


def _cut(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _list(place: Place, directory: str) -> list[Found]:
    """Job of an executor: list the files below a directory."""
    return place.store().objects.list(directory)


def _read(place: Place, versions: Sequence[Version]) -> list[tuple[Version, Files]]:
    """Job of an executor: read the files of table versions, without the unreadable ones."""
    found: list[tuple[Version, Files]] = []
    for one in versions:
        try:
            found.append((one, version_files(place.store(), *one)))
        except (AbsentError, StorageError, OSError, ValueError):
            continue
    return found


def _remove(place: Place, names: Sequence[str]) -> list[tuple[str, str | None]]:
    """Job of an executor: remove files; return each name with its error, if any."""
    done: list[tuple[str, str | None]] = []
    remove(place.store(), names, lambda name, error: done.append((name, error)))
    return done
