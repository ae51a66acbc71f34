"""Generate the graph for the comparison of engines, in which few people have very many friendships.

At scale 1, there are a million people and ten million edges. Some people have very many outgoing or incoming edges, and
there are parallel edges. All engines use the same files.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SEED = 7
SCHEMA = """
node Person { pid: String @key  name: String  age: I32?  city: String }
edge Knows: Person -> Person { since: I32? }
"""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The query arguments: some people, the largest hub, many start nodes, and an upper bound for triangles."""

    people: list[str]
    hub: str
    starts: list[str]
    below: str


def people(count: int, rng: np.random.Generator) -> pa.Table:
    """Return people, of whom one in a hundred has no age."""
    cities = pa.array([f"city{at:03}" for at in range(200)])
    chance = 1 / np.arange(1, 201) ** 0.7
    ages = pa.array(rng.integers(18, 90, count).astype(np.int32), mask=rng.random(count) < 0.01)
    ids = numbered("p", count)
    return pa.table(
        {
            "id": ids,
            "pid": ids,
            "name": numbered("name ", count).take(pa.array(rng.permutation(count))),
            "age": ages,
            "city": cities.take(pa.array(rng.choice(200, count, p=chance / chance.sum()))),
        }
    )


def friendships(ids: pa.Array, count: int, rng: np.random.Generator) -> tuple[pa.Table, int]:
    """Return edges with skewed endpoints, and the number of the person with the most outgoing edges."""
    size = len(ids)
    wish = np.minimum(rng.pareto(1.6, size) + 0.3, 2000)
    degrees = rng.poisson(wish / wish.sum() * count)
    sources = rng.permutation(np.repeat(np.arange(size), degrees))[:count]
    fame = np.cumsum(np.minimum(rng.pareto(1.6, size) + 0.3, 2000))
    targets = np.searchsorted(fame / fame[-1], rng.random(len(sources))).clip(0, size - 1)
    table = pa.table(
        {
            "id": numbered("k", len(sources)),
            "src": ids.take(pa.array(sources)),
            "dst": ids.take(pa.array(targets)),
            "since": pa.array(rng.integers(1990, 2026, len(sources)).astype(np.int32)),
        }
    )
    return table, int(np.bincount(sources).argmax())


def numbered(prefix: str, count: int) -> pa.Array:
    """Return numbered strings, such as `p00000000`, `p00000001` and so on."""
    numbers = pc.cast(pa.array(np.arange(count)), pa.string())
    return pc.binary_join_element_wise(prefix, pc.utf8_lpad(numbers, 8, "0"), "")


def generate(scale: float, place: Path) -> Inputs:
    """Write both tables as Parquet files if they do not exist, and return the same query arguments every time."""
    rng = np.random.default_rng(SEED)
    count = int(1_000_000 * scale)
    place.mkdir(parents=True, exist_ok=True)
    persons = people(count, rng)
    knows, hub = friendships(persons["id"].combine_chunks(), 10 * count, rng)
    if not (place / "knows.parquet").exists():
        pq.write_table(persons, place / "person.parquet")
        pq.write_table(knows, place / "knows.parquet")
    names = persons["id"]
    some = [names[int(at)].as_py() for at in rng.integers(0, count, 9)]
    starts = np.sort(rng.choice(count, min(1000, count // 10), replace=False))
    below = names[int(count * 0.3)].as_py()
    return Inputs(some, names[hub].as_py(), names.take(pa.array(starts)).to_pylist(), below)
