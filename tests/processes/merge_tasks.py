"""Tasks of worker processes in merge races: merge, write, merge the same branch."""

import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.storage.store import Durability
from tests.processes.write_tasks import meet

SCHEMA = """
node Person {
  name: String
  n: I64?
  @key(name)
}
node City { name: String  @key(name) }
edge Knows: Person -> Person @card(0..2)
"""


@dataclass(frozen=True, slots=True)
class Merges:
    """What a process that merges reports: outcomes in order, and the codes of what it lost to."""

    outcomes: tuple[str, ...]
    commits: tuple[str, ...]
    losses: tuple[str, ...]


def opened(root: str, branch: str = "main") -> Graph:
    """A graph as another process has it."""
    durability: Durability = "os"
    return omnigraph.open(root, branch=branch, durability=durability)


def merge_rounds(root: str, who: str, rounds: int, target: str = "main") -> Merges:
    """Write to a branch of one's own and merge it, again and again; who loses tries once more."""
    own = opened(root, who)
    outcomes, commits, losses = [], [], []
    for at in range(rounds):
        own.upsert("Person", {"name": f"{who}-{at}", "n": at}, {"name": who, "n": at})
        while True:
            try:
                done = own.merge(who, target)
            except OmnigraphError as error:
                losses.append(error.code)
                if error.retryable != "fresh" or len(losses) > 500:
                    raise
                own._handle.branch_state.back_off(min(8, len(losses)))
            else:
                outcomes.append(done.outcome)
                commits += [done.commit.id] if done.commit is not None else []
                break
    return Merges(tuple(outcomes), tuple(commits), tuple(losses))


def write_rounds(root: str, who: str, rounds: int) -> Merges:
    """Insert rows into the target itself."""
    graph = opened(root)
    made = [graph.insert("Person", {"name": f"{who}-{at}", "n": at}) for at in range(rounds)]
    return Merges((), tuple(one.commit.id for one in made if one.commit is not None), ())


def merge_once(root: str, source: str, target: str) -> Any:
    """Merge a branch that others merge, too: the outcome, or the code of the error."""
    try:
        done = opened(root).merge(source, target)
    except OmnigraphError as error:
        return error.code, None
    return done.outcome, done.commit.id if done.commit is not None else None


def merge_with_key(root: str, source: str, target: str, key: str) -> Any:
    """Merge a branch that others merge with the same key: the outcome, and whether another process published it."""
    done = opened(root).merge(source, target, idempotency_key=key)
    return done.outcome, done.commit, done.stats, done.source, done.target, done.replayed


@dataclass(frozen=True, slots=True)
class MergeLoopReport:
    """What a process that merges in a loop reports: landed merges, lost attempts, and the seconds that merges took."""

    landed: int
    losses: dict[str, int]
    longest_seconds: float
    total_seconds: float
    most_attempts: int


def merge_for_seconds(root: str, name: str, seconds: float, gate: str) -> MergeLoopReport:
    """Write to an own branch and merge it into main until the time is over; every write is merged in the end."""
    branch = opened(root, name)
    losses: Counter[str] = Counter()
    merge_seconds: list[float] = []
    most_attempts = 0
    meet(gate)
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        number = len(merge_seconds)
        branch.upsert("Person", {"name": f"{name}-{number}", "n": number}, {"name": name, "n": number})
        attempts: list[str] = []
        merge_start = time.perf_counter()
        branch.retry(partial(_merge_once_more, name=name, losses=attempts), attempts=1000)
        merge_seconds.append(time.perf_counter() - merge_start)
        losses.update(attempts)
        most_attempts = max(most_attempts, len(attempts) + 1)
    return MergeLoopReport(
        len(merge_seconds), dict(losses), max(merge_seconds, default=0.0), sum(merge_seconds), most_attempts
    )


def _merge_once_more(graph: Graph, name: str, losses: list[str]) -> None:
    try:
        graph.merge(name, "main")
    except OmnigraphError as error:
        losses.append(error.code)
        raise
