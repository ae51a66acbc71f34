"""Indexes are used where they apply, and no answer depends on what they cover."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from omnigraph.engine import scan
from omnigraph.errors import UniqueViolation
from omnigraph.graph import Graph
from omnigraph.testing import graph as new_graph

SCHEMA = """
node T {
  k: String @key
  i: I32? @index
  u: U32? @index
  v: U64? @index
  f: F32? @index
  d: Date? @index
  t: DateTime? @index
  e: enum(red, green, blue)? @index
  s: String? @index
  w: String?
  x: String?
  @index(w, kind=ngram)
  @index(x, kind=fulltext)
}
node U { k: String @key  w: String?  @index(w)  @index(w, kind=ngram) }
edge E: T -> T
"""
LETTERS = "abAB \u00e9\u00df\U0001f600"
START = date(2020, 1, 1)


def text(chance: random.Random, most: int) -> str:
    return "".join(chance.choice(LETTERS) for _ in range(chance.randrange(most)))


def record(chance: random.Random, n: int) -> dict[str, Any]:
    moment = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=chance.randrange(50))
    full: dict[str, Any] = {
        "i": chance.randrange(-20, 20),
        "u": chance.randrange(10) * 429_496_729,
        "v": chance.randrange(10) * 1_844_674_407_370_955_161,
        "f": chance.randrange(-8, 8) / 4,
        "d": START + timedelta(days=chance.randrange(30)),
        "t": moment,
        "e": chance.choice(["red", "green", "blue"]),
        "s": text(chance, 6),
        "w": text(chance, 9),
    }
    return {"k": f"k{n}"} | {name: v for name, v in full.items() if chance.random() > 0.1}


def conditions(chance: random.Random) -> Iterator[tuple[str, Any, Any]]:
    """(condition, the value of its parameter, what it says of a value), without end."""
    tests = {
        "=": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    while True:
        name = chance.choice("iuvfdtesww")
        value = record(chance, 0).get(name)
        if value is None:
            continue
        if name in "sw" and chance.random() < 0.7:
            word = chance.choice(["contains", "starts_with"])
            part = value[: chance.randrange(6)]
            prefix = word == "starts_with"
            yield word, (name, part), str.startswith if prefix else str.__contains__
        else:
            word = "=" if name == "e" else chance.choice(list(tests))
            yield word, (name, value), tests[word]


KINDS = {
    "i": "I32",
    "u": "U32",
    "v": "U64",
    "f": "F32",
    "d": "Date",
    "t": "DateTime",
    "e": "String",
    "s": "String",
}


def ask(graph: Graph, word: str, name: str, value: Any) -> list[str]:
    kind = KINDS.get(name, "String")
    query = (
        f"query q($v: {kind}) {{ match {{ $n: T  $n.{name} {word} $v }} return {{ $n.k as k }} }}"
    )
    return sorted(one["k"] for one in graph.query(query, v=value))


@pytest.mark.parametrize("share", [0, 50, 100])
def test_answers_do_not_depend_on_coverage(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "hot_rows", lambda *_: None)  # what is in memory needs no index
    chance = random.Random(share)
    rows = [record(chance, n) for n in range(200)]
    covered = len(rows) * share // 100
    with new_graph(SCHEMA) as graph:
        if covered:
            graph.load({"T": rows[:covered]}, mode="append")
            graph.ensure_indices()
        if covered < len(rows):
            graph.load({"T": rows[covered:]}, mode="append")
        for n in range(0, 200, 7):  # what an index says of these is old
            rows[n] = record(chance, n)
        graph.upsert("T", *rows[::7])
        asked = conditions(random.Random(1))
        for _ in range(200 if share == 50 else 70):
            word, (name, value), test = next(asked)
            held = [one for one in rows if one.get(name) is not None]
            expected = sorted(one["k"] for one in held if test(one[name], value))
            assert ask(graph, word, name, value) == expected, (name, word, value)
        graph.optimize()
        assert ask(graph, word, name, value) == expected


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("$n.i = 5", "i_btree"),
        ("$n.i >= 5", "i_btree"),
        ("$n.i in [1, 2]", "i_btree"),
        ("$n.u = 5", "u_btree"),
        ("$n.u = 4294967295", "u_btree"),
        ("$n.u >= 5", "u_btree"),
        ("$n.u < 2147483648", "u_btree"),
        ("$n.u in [1, 4294967295]", "u_btree"),
        ("$n.v = 7", "v_btree"),
        ("$n.v > 9223372036854775807", "v_btree"),
        ("$n.v in [1, 2]", "v_btree"),
        ("$n.f > 0.5", "f_btree"),
        ('$n.d = date("2020-01-03")', "d_btree"),
        ('$n.t < datetime("2020-01-03T00:00:00Z")', "t_btree"),
        ('$n.e = "red"', "e_btree"),
        ('$n.s = "a"', "s_btree"),
        ('$n.s starts_with "ab"', "s_btree"),
        ('$n.s in ["a", "b"]', "s_btree"),
        ('$n.w contains "abA"', "w_ngram"),
        ('$n.x contains "abA"', None),
        ('$n.k = "k1"', "id_btree"),
    ],
)
def test_explain_names_the_index(indexed: Graph, condition: str, index: str | None) -> None:
    told = str(indexed.explain(f"match {{ $n: T  {condition} }} return {{ $n.k }}"))
    assert ("(index " in told, f"(index {index})" in told) == (index is not None, index is not None)


@pytest.fixture(scope="module")
def indexed() -> Iterator[Graph]:
    chance = random.Random(0)
    with new_graph(SCHEMA, {"T": [record(chance, n) for n in range(40)]}) as graph:
        graph.connect_nodes("E", [(f"k{n}", f"k{n + 1}") for n in range(20)])
        graph.ensure_indices()
        yield graph


def test_explain_names_the_index_of_ends(indexed: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = 'match { $a: T { k: "k1" }  $a e $b } return { $b.k }'
    assert "src_btree" not in str(indexed.explain(walk)), "so few edges are read whole"
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "indexed")
    assert "(index src_btree)" in str(indexed.explain(walk))
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "csr")
    assert "src_btree" not in str(indexed.explain(walk))


def test_what_is_not_built_is_told(indexed: Graph) -> None:
    pending = {(key, name): why for key, name, why in indexed.pending_indices()}
    assert set(pending) == {("node:T", "x"), ("node:U", "w")}
    assert "one per column" in pending["node:U", "w"]
    assert not indexed.ensure_indices(), "what is pending is no work"


def test_numbers_without_a_sign_are_unique_to_their_last_digit() -> None:
    schema = "node N { k: String @key  u: U32? @unique  v: U64? @unique }"
    with new_graph(schema) as graph:
        graph.insert("N", {"k": "a", "u": 2**32 - 1, "v": 2**64 - 1})
        for same in ({"u": 2**32 - 1}, {"v": 2**64 - 1}):
            with pytest.raises(UniqueViolation):
                graph.insert("N", {"k": "b"} | same)
        graph.insert("N", {"k": "b", "u": 2**32 - 2, "v": 2**64 - 2})
        graph.optimize()
        assert not graph.check().findings
