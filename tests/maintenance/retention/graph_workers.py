"""Processes that write, read, optimize and clean one graph at once, and may be killed anywhere.

Each writes down what it was told, line by line, so that it counts although the process is killed.
"""

import os
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.api.handle import Handle
from omnigraph.errors import ClientError, ConcurrentCommit, HistoryReclaimed, StorageError
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.snapshot import load_snapshot
from omnigraph.history.state import GraphState
from omnigraph.history.tags import list_tags, open_tag
from omnigraph.maintenance.optimize import optimize
from omnigraph.maintenance.retention import claim
from omnigraph.maintenance.retention.collect_garbage import cleanup
from omnigraph.maintenance.retention.policy import RetentionPolicy
from omnigraph.publish import intent as intents
from omnigraph.publish import trim_versions
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.read_lease import protect_snapshot
from omnigraph.publish.recover import install_recovery_hook, recover
from omnigraph.publish.tag_lifecycle import create_tag, delete_tag
from omnigraph.storage.effects import Effects, Fault
from omnigraph.storage.store import Store, open_store
from tests.maintenance.retention.shared_clock import SECOND, Pulse, by, clock_at
from tests.rig.writes import PERSON, TABLES, append, delete, read_rows, rewrite, write, write_long

KEEP = 3
POLICY = RetentionPolicy(keep=KEEP, grace=timedelta())
SPARING = RetentionPolicy(keep=KEEP, grace=2 * SECOND)
LEASE = timedelta(seconds=3)
A_TICK = 3  # writes of each writer between two ticks


class Diary:
    """What a process was told: one line each, there before the next thing is done."""

    def __init__(self, path: str) -> None:
        self.file = Path(path).open("a", buffering=1)  # noqa: SIM115 - as long as the process

    def note(self, *words: str) -> None:
        self.file.write(" ".join(words) + "\n")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a crew: what it does, how often, and after which effect its process ends."""

    job: str
    seed: int
    count: int = 0
    cut: int = 0

    def store(self, root: str) -> Store:
        effects = Effects(Fault(self.cut, "exit") if self.cut else None)
        return open_store(root, durability="os", effects=effects)


def work(root: str, parts: Sequence[Part], place: str) -> None:
    """One process: its parts work at once, each by itself, and by the clock that is shared here."""
    clock = clock_at(place)
    if clock is None:
        # Short leases: what a killed process left is settled within seconds.
        intents.LEASE_DURATION, intents.RENEWAL_SECONDS = LEASE, 0.5
        claim.CLAIM_LEASE = timedelta(seconds=2)
        _work(root, parts, place)
        return
    intents.LEASE_DURATION = claim.CLAIM_LEASE = 4 * SECOND
    trim_versions.DEFAULT_GRACE, trim_versions.TRIM_INTERVAL = 8 * SECOND, 16
    with by(clock, parts[0].seed):
        Pulse(clock, place).start()
        _work(root, parts, place)


def _work(root: str, parts: Sequence[Part], place: str) -> None:
    jobs = {"write": write_on, "read": read_on, "clean": clean_on, "tend": tend_on}
    threads = [threading.Thread(target=jobs[one.job], args=(root, one, place), daemon=True) for one in parts]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def rest(place: str, seconds: float, ticks: int = 1) -> None:
    """Let time pass: so long, or so many ticks."""
    clock = clock_at(place)
    if clock is None:
        time.sleep(seconds)
        return
    until = clock.tick + ticks
    while clock.tick < until and not over(place):
        time.sleep(0.005)


def over(place: str) -> bool:
    """Whether those who go on and on shall end."""
    return Path(place, "over").exists()


def _diary(part: Part, place: str) -> Diary:
    return Diary(f"{place}/diary-{part.job}-{part.seed}-{os.getpid()}")


def write_on(root: str, part: Part, place: str) -> None:
    """Write, branch, tag and delete, so many times, or until it is over."""
    seed, chance, notes = part.seed, random.Random(part.seed), _diary(part, place)
    store = part.store(root)
    install_recovery_hook(open_branch(store, "main"))
    for n in count() if not part.count else range(part.count):
        if over(place):
            break
        if n % A_TICK == 0:  # who has begun anew is not left behind
            rest(place, 0)
        try:
            _one(store, chance, notes, f"w{seed}-{os.getpid()}-{n}")
        except (ClientError, ConcurrentCommit) as error:
            notes.note("refused", type(error).__name__, str(error).replace("\n", " "))
        except StorageError as error:
            if error.effect != "unknown":
                notes.note("FAILED", str(error).replace("\n", " "))


def _one(store: Store, chance: random.Random, notes: Diary, name: str) -> None:
    branch = chance.choice(list_branches(store))
    line = open_branch(store, branch)
    made: Commit | None = None
    match chance.randrange(12):
        case 0:
            made = write_long(line, append({name: 1}), TABLES)
        case 1:
            made = write(line, rewrite(), TABLES)
            name = ""
        case 2:
            _branch(store, chance, notes)
        case 3:
            _tag(store, chance)
        case 4:
            made = write(line, append({name: 1}))
            write(line, delete([name]))
            name = ""
        case 5:  # through the public door, which folds
            made = Graph(Handle(store, line)).insert("Person", {"id": name, "n": 1}).commit
        case _:
            made = write(line, append({name: 1}), TABLES[: chance.randrange(1, 4)])
    if made is not None and name:
        notes.note("wrote", line.ulid, name)


def retained_commits(store: Store, state: GraphState) -> list[Commit]:
    """The commits of a branch that a cleanup must keep, by count.

    What is older than the point at which a branch left another may have been removed before that.
    """
    found: list[Commit] = []
    for one in HistoryLog(store, state).first_parents(state.head.commit_id):
        found.append(one)
        if len(found) == KEEP or one.id == state.head.fork:
            break
    return found


def _branch(store: Store, chance: random.Random, notes: Diary) -> None:
    name = f"b{chance.randrange(3)}"
    if name in list_branches(store):
        delete_branch(store, name)
        return
    source = open_branch(store, "main")
    state = source.refresh().state
    commits = [one.id for one in HistoryLog(store, state).first_parents(state.head.commit_id)]
    create_branch(store, name, source, commit_id=chance.choice(commits[:6]))


def _tag(store: Store, chance: random.Random) -> None:
    name = f"t{chance.randrange(3)}"
    if name in [one.name for one in list_tags(store)]:
        delete_tag(store, name)
        return
    source = open_branch(store, chance.choice(list_branches(store)))
    state = source.refresh().state
    commits = [one.id for one in HistoryLog(store, state).first_parents(state.head.commit_id)]
    create_tag(store, name, source, commit_id=chance.choice(commits[:6]))


def read_on(root: str, part: Part, place: str) -> None:
    """Hold an old state under a lease and read it again and again: it must stay as it was."""
    chance, notes = random.Random(part.seed), _diary(part, place)
    while not over(place):
        store = open_store(root, durability="os")
        line = open_branch(store, "main")
        try:
            shown = load_snapshot(store, line)
            with protect_snapshot(store, line, shown):
                before = read_rows(store, shown.tables[PERSON])
                for _ in range(3):
                    rest(place, chance.random() * 0.3, chance.randrange(4))
                    fresh = open_store(root)
                    if read_rows(fresh, shown.tables[PERSON]) != before:
                        notes.note("FAILED", "a held snapshot changed")
            for tag in list_tags(store):
                _read_tag(store, tag.name)
            notes.note("read")
        except (HistoryReclaimed, ConcurrentCommit) as error:
            notes.note("refused", type(error).__name__)
        except ClientError as error:
            notes.note("refused", type(error).__name__, str(error).replace("\n", " "))
        except (StorageError, OSError) as error:
            notes.note("FAILED", type(error).__name__, str(error).replace("\n", " "))


def _read_tag(store: Store, name: str) -> None:
    shown = open_tag(store, name)
    try:
        for entry in shown.tables.values():
            read_rows(store, entry)
    except (StorageError, OSError):
        # Deleted meanwhile, its state may go; if it is still there, this is a loss.
        if name in [one.name for one in list_tags(open_store(store.root.uri))]:
            open_tag(open_store(store.root.uri), name)
            raise


def tend_on(root: str, part: Part, place: str) -> None:
    """Put tables together and index them again and again, on every branch."""
    chance, notes = random.Random(part.seed), _diary(part, place)
    store = part.store(root)
    while not over(place):
        for name in ("main", *chance.sample(list_branches(store), 1)):
            try:
                done = optimize(open_branch(store, name))
                notes.note("optimized", name, str(len(done.commits)))
            except (ClientError, ConcurrentCommit) as error:
                notes.note("refused", type(error).__name__, str(error).replace("\n", " "))
            except StorageError as error:
                if error.effect != "unknown":
                    notes.note("FAILED", "optimize", str(error).replace("\n", " "))
        rest(place, 0.05, 2)


def clean_on(root: str, part: Part, place: str) -> None:
    """Clean again and again, with a short grace, or none at all."""
    notes = _diary(part, place)
    store = part.store(root)
    policy = POLICY if clock_at(place) is None else SPARING
    while not over(place):
        try:
            recover(store)
            done = cleanup(store, policy)
            notes.note("cleaned", str(done.old_versions_removed), str(done.bytes_removed))
            if done.failed:
                notes.note("FAILED", str(done.failed))
        except ClientError as error:
            kind = "FAILED" if "cannot be read" in str(error) else "refused"
            notes.note(kind, type(error).__name__, str(error).replace("\n", " "))
        except (StorageError, OSError) as error:
            notes.note("FAILED", type(error).__name__, str(error).replace("\n", " "))
        rest(place, 0.02, 2)
