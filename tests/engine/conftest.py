"""The graph that most engine tests read."""

from datetime import date
from pathlib import Path

import pytest

from tests.engine.stored_graph import Small

SCHEMA = """
node Person { name: String @key  age: I32?  tags: [String]?  born: Date?  vip: Bool? }
node Firm { name: String @key  size: I64? }
edge Knows: Person -> Person { since: Date?  note: String? }
edge WorksAt: Person -> Firm
node Doc {
    slug: String @key  body: String @index  kind: enum(memo, spec)
    v: Vector(2)?  raw: Blob?
}
"""


def people() -> list[dict[str, object]]:
    given = [("Ann", 30, ["x", "y"]), ("Bob", 25, None), ("Cyd", None, None), ("Dee", 30, None)]
    return [{"id": name, "name": name, "age": age, "tags": tags} for name, age, tags in given]


def knows() -> list[dict[str, object]]:
    pairs = [
        ("Ann", "Bob", date(2020, 1, 1)),
        ("Ann", "Bob", date(2021, 1, 1)),
        ("Bob", "Cyd", None),
        ("Cyd", "Ann", None),
        ("Dee", "Dee", None),
        ("Bob", "Dee", None),
    ]
    return [{"id": f"k{at}", "src": a, "dst": b, "since": since} for at, (a, b, since) in enumerate(pairs)]


def works_at() -> list[dict[str, object]]:
    pairs = [("Ann", "Acme"), ("Bob", "Acme"), ("Cyd", "Zeta")]
    return [{"id": f"w{at}", "src": a, "dst": b} for at, (a, b) in enumerate(pairs)]


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    root: Path = tmp_path_factory.mktemp("engine") / "graph"
    return Small(
        root,
        SCHEMA,
        {
            "node:Person": people(),
            "node:Firm": [{"id": name, "name": name} for name in ("Acme", "Zeta")],
            "edge:Knows": knows(),
            "edge:WorksAt": works_at(),
        },
    )
