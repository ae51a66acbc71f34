"""Collectors, optimizers, writers and readers of one graph, killed and replaced while running.

By the clock of the machine, with short leases. Readers compare what they read again with what they
read first, by table version: what is retained never changes.
"""

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from multiprocessing.process import BaseProcess as Process
from pathlib import Path

from omnigraph.errors import BranchNotFound, ClientError, HistoryReclaimed, StorageError
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit import TableEntry
from omnigraph.history.snapshot import Snapshot, load_snapshot
from omnigraph.history.tags import list_tags, open_tag
from omnigraph.maintenance.retention import claim
from omnigraph.publish import intent as intents
from omnigraph.publish.read_lease import protect_snapshot
from omnigraph.storage.store import Store, open_store
from tests.maintenance.retention import graph_workers
from tests.maintenance.retention.graph_workers import Diary, Part, retained_commits
from tests.rig.writes import TABLES, append, init_small, read_rows, write

_SPAWN = multiprocessing.get_context("spawn")
LEASE = timedelta(seconds=15)  # of operations: a reader that is slow to renew must not lose it
CLAIM = timedelta(seconds=2)
# Seconds of rest, by job: collectors shall have most of the processors.
PAUSES = {"clean": 0.2, "tend": 1.0, "write": 0.3, "compare": 0.3}
JOBS = ("clean", "clean", "tend", "write", "write", "compare")
KILLED = ("clean", "tend", "write")


def play_until(root: str, place: Path, cleanups: int, seed: int) -> Counter[str]:
    """Let a crew work until so many cleanups have finished; counts words, and kills by job.

    After every other cleanup somebody is killed, at a random moment of the next one.
    """
    line = open_branch(init_small(root), "main")
    for n in range(3):
        write(line, append({f"start{n}": n}), TABLES)
    chance, kills = random.Random(seed), Counter[str]()
    members = {begin(root, Part(job, seed + n), place): job for n, job in enumerate(JOBS)}
    while (finished := words(place)["cleaned"]) < cleanups:
        if finished // 2 <= sum(kills.values()):
            time.sleep(0.02)
            continue
        time.sleep(chance.random() * 0.5)
        job = KILLED[sum(kills.values()) % len(KILLED)]
        child = chance.choice([one for one, done in members.items() if done == job])
        child.kill()
        child.join()
        del members[child]
        kills[f"killed {job}"] += 1
        members[begin(root, Part(job, seed + 100 * sum(kills.values())), place)] = job
    (place / "over").touch()
    for child in members:
        child.join()
    return words(place) + kills


def begin(root: str, part: Part, place: Path) -> Process:
    child = _SPAWN.Process(target=work, args=(root, part, str(place)))
    child.start()
    return child


def work(root: str, part: Part, place: str) -> None:
    """One process with one job."""
    intents.LEASE_DURATION, intents.RENEWAL_SECONDS = LEASE, 1.0
    claim.CLAIM_LEASE, claim.CLAIM_RENEWAL_SECONDS, claim.TRUSTED_SECONDS = CLAIM, 0.5, 1.0
    vars(graph_workers).update(rest=lambda *_: time.sleep(PAUSES[part.job]))
    jobs = {"write": graph_workers.write_on, "clean": graph_workers.clean_on, "tend": graph_workers.tend_on}
    (compare_on if part.job == "compare" else jobs[part.job])(root, part, place)


def words(place: Path) -> Counter[str]:
    """How often each thing happened."""
    return Counter(one[0] for one in entries(place))


def entries(place: Path) -> list[list[str]]:
    """All that was noted. The last line of a killed process may be cut short."""
    texts = [one.read_text() for one in sorted(place.glob("diary-*"))]
    whole = [text[: text.rfind("\n") + 1] for text in texts]
    return [line.split(" ") for text in whole for line in text.splitlines()]


Known = dict[tuple[str, int], list[tuple[str, int]]]


def compare_on(root: str, part: Part, place: str) -> None:
    """Read a held snapshot, tags, branches and retained commits again and again."""
    notes, known = Diary(f"{place}/diary-compare-{part.seed}"), Known()
    while not graph_workers.over(place):
        store = open_store(root, durability="os")
        try:
            _compare_held(store, known, notes)
            _compare_retained(store, known, notes)
            notes.note("compared")
        except ClientError as error:  # a cleanup is about to take it, or it was deleted meanwhile
            notes.note("refused", type(error).__name__)
        except (StorageError, OSError) as error:
            notes.note("FAILED", type(error).__name__, str(error).replace("\n", " "))
        time.sleep(PAUSES["compare"])


def _compare_held(store: Store, known: Known, notes: Diary) -> None:
    line = open_branch(store, "main")
    shown = load_snapshot(store, line)
    with protect_snapshot(store, line, shown):
        for _ in range(3):
            _compare(open_store(store.root.uri), shown.tables.values(), known, notes)
            time.sleep(PAUSES["compare"])


def _compare_retained(store: Store, known: Known, notes: Diary) -> None:
    for shown, still in _retained(store):
        try:
            _compare(store, shown.tables.values(), known, notes)
        except (StorageError, OSError, HistoryReclaimed) as error:
            if still(shown):
                notes.note("FAILED", "retained", shown.commit_id, str(error).replace("\n", " "))


def _retained(store: Store) -> Iterator[tuple[Snapshot, "Still"]]:
    """Snapshots that a cleanup must keep, each with the test whether that still holds."""
    for tag in list_tags(store):
        yield open_tag(store, tag.name), StillTagged(tag.name)
    for name in list_branches(store):
        line = open_branch(store, name)
        state = line.refresh().state
        for one in retained_commits(store, state):
            yield load_snapshot(store, line, one.id), StillNew(name)


class Still:
    """Whether what was retained when it was looked up is retained now."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, shown: Snapshot) -> bool:
        raise NotImplementedError


class StillTagged(Still):
    """The tag is there, on the same commit."""

    def __call__(self, shown: Snapshot) -> bool:
        tags = list_tags(open_store(shown.store.root.uri))
        return (self.name, shown.commit_id) in [(one.name, one.commit_id) for one in tags]


class StillNew(Still):
    """The commit is among the newest ones of its branch."""

    def __call__(self, shown: Snapshot) -> bool:
        store = open_store(shown.store.root.uri)
        try:
            state = open_branch(store, self.name).reload().state
        except BranchNotFound:
            return False
        return shown.commit_id in [one.id for one in retained_commits(store, state)]


def _compare(store: Store, tables: Iterable[TableEntry], known: Known, notes: Diary) -> None:
    for entry in tables:
        rows = read_rows(store, entry)
        if known.setdefault((entry.location, entry.lance_version), rows) != rows:
            notes.note("FAILED", "a table version changed", entry.key, str(entry.version))
