"""Tasks of worker processes in merge races: merge, write, merge the same branch."""

from dataclasses import dataclass
from typing import Any

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.storage.store import Durability

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
