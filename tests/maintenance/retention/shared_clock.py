"""A clock shared by several processes: it stands still until the test advances it.

A file tells when, by the machine, each tick began. Times that files got from the machine are read
as the tick in which they were written, so that leases, graces and unfinished operations end by
ticks, however slow the machine is. No tick comes before every process has seen the one before it.
"""

import os
import threading
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from omnigraph.errors import StorageError
from omnigraph.publish import intent as intents
from omnigraph.publish import long_operations, read_lease
from omnigraph.publish.intent import Intent
from omnigraph.publish.lease import READ_OPERATION
from omnigraph.storage.local_objects import LocalBackend
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.values.clock_and_ids import ManualClock, deterministic_ids

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)  # a tick
_LOOK = 0.005  # seconds of the machine between two looks at the clock


@dataclass(slots=True)
class SharedClock(ManualClock):
    """The clock in the file `ticks`; one tick is a second."""

    path: str = ""
    moments: "array[int]" = field(default_factory=lambda: array("q"))

    @property
    def tick(self) -> int:
        """How often it has ticked."""
        return len(self._read())

    def micros(self) -> int:
        """Microseconds since 1970, in UTC."""
        self.elapsed = self.tick * SECOND
        return super(SharedClock, self).micros()

    def monotonic(self) -> float:
        """Seconds since it was started."""
        return float(self.tick)

    def told(self, modified: datetime) -> datetime:
        """A time of the machine by this clock."""
        return self.start + bisect_right(self._read(), int(modified.timestamp() * 1e9)) * SECOND

    def advance_once(self) -> None:
        """Tick. Only one process may."""
        with Path(self.path).open("ab") as out:
            out.write(array("q", [time.time_ns()]).tobytes())

    def _read(self) -> "array[int]":
        if os.stat(self.path).st_size != 8 * len(self.moments):  # noqa: PTH116 - asked very often
            moments = array("q")
            moments.frombytes(Path(self.path).read_bytes())
            self.moments = moments
        return self.moments


def clock_at(place: str | Path) -> SharedClock | None:
    """The clock that is shared in a directory, if there is one."""
    path = Path(place, "ticks")
    return SharedClock(START, path=str(path)) if path.exists() else None


@contextmanager
def by(clock: SharedClock, seed: int) -> Iterator[None]:
    """All times in this process are those of the clock, those of files too."""
    real = LocalBackend._stat_file

    def seen(self: LocalBackend, file_path: str, object_name: str) -> Iterator[ListedObject]:
        for one in real(self, file_path, object_name):
            yield replace(one, modified=clock.told(one.modified))

    with ExitStack() as stack:
        stack.enter_context(deterministic_ids(clock, seed))
        LocalBackend._stat_file = seen  # type: ignore[method-assign]
        stack.callback(setattr, LocalBackend, "_stat_file", real)
        yield


class Pulse:
    """Keeps what this process holds alive, tick by tick, and tells that it has seen each."""

    def __init__(self, clock: SharedClock, place: str) -> None:
        self.clock = clock
        self.path = _seen_by(place, os.getpid())
        self.held: dict[str, tuple[Store, Intent]] = {}
        self.lock = threading.Lock()

    def start(self) -> None:
        """Beat as long as the process lives, in the place of timers of the machine."""
        arm, retire = intents.arm, intents.retire

        def armed(store: Store, intent: Intent) -> None:
            # Who reads is safe only while its lease is: no tick may come between.
            if intent.operation == READ_OPERATION:
                self._hold(store, intent)
            arm(store, intent)

        def retired(store: Store, intent: Intent, parts: Sequence[str] = intents.INTENT_PARTS) -> None:
            self._let_go(intent)
            retire(store, intent, parts)

        intents.arm, intents.retire = armed, retired
        for module in (read_lease, long_operations):
            assert "keep_lease_alive" in vars(module)
            vars(module).update(keep_lease_alive=self.keep_lease_alive)
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    @contextmanager
    def keep_lease_alive(self, store: Store, intent: Intent) -> Iterator[None]:
        """As `lease.keep_lease_alive`, by ticks."""
        self._hold(store, intent)
        try:
            yield
        finally:
            self._let_go(intent)

    def _hold(self, store: Store, intent: Intent) -> None:
        with self.lock:
            self.held[intent.id] = (store, intent)

    def _let_go(self, intent: Intent) -> None:
        with self.lock:
            self.held.pop(intent.id, None)

    def _beat(self) -> None:
        told = -1
        while True:
            tick = self.clock.tick
            if tick > told:
                with self.lock:
                    for store, intent in self.held.values():
                        with suppress(StorageError, OSError):
                            intents.renew(store, intent)
                self.path.write_text(str(tick))
                told = tick
            time.sleep(_LOOK)


def _seen_by(place: str | Path, process: int) -> Path:
    return Path(place, f"seen-{process}")


def has_seen(place: Path, processes: Iterable[int], tick: int) -> bool:
    """Whether all of these processes know of a tick."""
    for one in processes:
        try:
            told = _seen_by(place, one).read_text()
        except FileNotFoundError:
            return False
        if not told or int(told) < tick:
            return False
    return True
