"""Costs of writes and opens, in disk effects and S3 requests, as lines of text.

The golden tests and `bench/requests.py` share these measurements. Nothing here asserts.
"""

import gc
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.history.branch_state import BranchState
from omnigraph.storage.effects import DurableEffect
from omnigraph.storage.layout import COMMITS, INTENTS
from omnigraph.values.table_key import TableKey
from tests.rig.proxy import Proxy, requests_of
from tests.rig.request_log import Traffic
from tests.rig.writes import PERSON, append, write

CASES = Path(__file__).parents[1] / "cases" / "requests"
METHODS = ("HEAD", "LIST", "GET", "PUT", "POST", "DELETE")


def wide_schema(types: int) -> str:
    """A schema of so many node types."""
    return "".join(f"node T{n} {{ n: I64? }}\n" for n in range(types))


def add(line: BranchState, name: str, keys: Sequence[TableKey] = (PERSON,)) -> None:
    """Publish one row without a key of its own: nothing has to be looked up."""
    change = replace(append({name: 1}), needs=lambda *_: ())
    assert write(line, change, keys) is not None


def spoken(counts: Counter[str], order: Iterable[str]) -> str:
    """`1 LIST, 6 PUT`, or `nothing`."""
    return ", ".join(f"{counts[name]} {name}" for name in order if counts[name]) or "nothing"


def with_hops(made: Traffic) -> str:
    """Logical requests by method, and how many wait for one another."""
    waits = f", {made.hops} one after another" if made.hops > 1 else ""
    return spoken(made.counts, METHODS) + waits


class Bill:
    """Lines of what was asked of a server, block by block."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.lines: list[str] = []

    @contextmanager
    def item(self, title: str) -> Iterator[Traffic]:
        with requests_of(self.proxy) as made:
            yield made
        assert made.attempts == made.counts, made.lines
        self.lines.append(f"{title}: {with_hops(made)}")


@dataclass(frozen=True, slots=True)
class Cost:
    """One publish: what it always costs, and what comes on top of some.

    On top come the chunks of the log, and the look for unfinished operations that is due every few
    seconds.
    """

    plain: tuple[tuple[str, int], ...]
    extra: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """All of it."""
        return sum(count for _, count in (*self.plain, *self.extra))


def cost_of_requests(made: Traffic) -> Cost:
    """The cost of a publish in requests."""
    return _cost((one.method, one.key) for one in made.seen)


def cost_of_effects(seen: Iterable[DurableEffect]) -> Cost:
    """The cost of a publish in durable effects."""
    return _cost((one.kind, one.target) for one in seen)


def _cost(done: Iterable[tuple[str, str]]) -> Cost:
    plain: Counter[str] = Counter()
    extra: Counter[str] = Counter()
    for kind, target in done:
        seldom = any(f"{prefix}/" in target for prefix in (COMMITS, INTENTS))
        (extra if seldom else plain)[kind] += 1
    return Cost(tuple(sorted(plain.items())), tuple(sorted(extra.items())))


def window(title: str, costs: Sequence[Cost]) -> list[str]:
    """Consecutive publishes as lines: how often each cost occurred, and the worst of them."""
    plain, extra = Counter(one.plain for one in costs), Counter(one.extra for one in costs)
    worst = max(costs, key=lambda one: one.total)
    return [
        f"{title}",
        *(f"  {count} x {_said(one)}" for one, count in sorted(plain.items())),
        *(f"  {count} of them and {_said(one)}" for one, count in sorted(extra.items()) if one),
        f"  the worst: {worst.total}",
    ]


def _said(cost: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in cost)


def golden(name: str, lines: Sequence[str] = ()) -> list[str]:
    """The expected lines of a case, without its comments.

    With `UPDATE_CASES` in the environment, what was measured becomes what is expected.
    """
    path = CASES / name
    found = path.read_text().splitlines()
    if lines and os.environ.get("UPDATE_CASES"):
        comments = [line for line in found if line.startswith("#")]
        path.write_text("\n".join([*comments, *lines]) + "\n")
        return list(lines)
    return [line for line in found if not line.startswith("#")]


def open_cold(uri: str, *, branch: str = "main", read_only: bool = True) -> Graph:
    """Open a graph that nothing in this process remembers."""
    gc.collect()
    return omnigraph.open(uri, branch=branch, read_only=read_only)
