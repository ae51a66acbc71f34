"""Indexes are used where they apply, and no result depends on their coverage."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from omnigraph.api.graph import Graph
from omnigraph.engine.operators import scan
from omnigraph.errors import UniqueViolation
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


KINDS = {"i": "I32", "u": "U32", "v": "U64", "f": "F32", "d": "Date", "t": "DateTime", "e": "String", "s": "String"}


def ask(graph: Graph, word: str, name: str, value: Any) -> list[str]:
    kind = KINDS.get(name, "String")
    query = f"query q($v: {kind}) {{ match {{ $n: T  $n.{name} {word} $v }} return {{ $n.k as k }} }}"
    return sorted(one["k"] for one in graph.query(query, v=value))


@pytest.mark.parametrize("share", [0, 50, 100])
def test_results_do_not_depend_on_index_coverage(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "hot_rows", lambda *_: None)  # what is in memory needs no index
    chance = random.Random(share)
    rows = [record(chance, n) for n in range(200)]
    covered = len(rows) * share // 100
    with new_graph(SCHEMA) as graph:
        if covered:
            graph.load({"T": rows[:covered]}, mode="append")
            graph.maintenance.ensure_indices()
        if covered < len(rows):
            graph.load({"T": rows[covered:]}, mode="append")
        for n in range(0, 200, 7):  # what an index says of these is old
            rows[n] = record(chance, n)
        graph.load({"T": rows[::7]}, mode="merge")
        asked = conditions(random.Random(1))
        for _ in range(200 if share == 50 else 70):
            word, (name, value), test = next(asked)
            held = [one for one in rows if one.get(name) is not None]
            expected = sorted(one["k"] for one in held if test(one[name], value))
            assert ask(graph, word, name, value) == expected, (name, word, value)
        graph.maintenance.optimize()
        assert ask(graph, word, name, value) == expected


MOMENTS = [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=7 * n) for n in range(40)]
# A column of every type that has an order: its type, forty values, and two as a query writes them.
MATRIX: dict[str, tuple[str, list[Any], tuple[str, str]]] = {
    "i": ("I32", list(range(-20, 20)), ("-2", "7")),
    "u": ("U32", [n * 110_127_365 for n in range(40)], ("110127365", "4294967235")),
    "l": ("I64", [(n - 20) << 40 for n in range(40)], ("0", str(1 << 41))),
    "v": ("U64", [n << 58 for n in range(40)], (str(1 << 58), str(31 << 58))),
    "f": ("F32", [(n - 20) / 4 for n in range(40)], ("0.0", "2.25")),
    "g": ("F64", [(n - 20) / 8 for n in range(40)], ("-0.125", "0.0")),
    "d": ("Date", [START + timedelta(days=n) for n in range(40)], ('date("2020-01-09")', 'date("2020-02-01")')),
    "t": ("DateTime", list(MOMENTS), ('datetime("2020-01-03T01:00:00Z")', 'datetime("2020-01-05T10:00:00+01:00")')),
    "e": ("enum(red, green, blue)", ["red", "green", "blue", "green"] * 10, ('"green"', '"red"')),
    "s": ("String", [f"a{'bc'[n % 2]}{n}" for n in range(40)], ('"ab8"', '"ac7"')),
}
_COLUMNS = "\n".join(f"  {name}: {kind}?" for name, (kind, *_) in MATRIX.items())
_INDEXED = _COLUMNS.replace("?", "? @index")
PAIRS = f"""
node Plain {{ k: String @key
{_COLUMNS}
  w: String? }}
node Told {{ k: String @key
{_INDEXED}
  w: String?  @index(w, kind=ngram) }}
"""


def pairs() -> Iterator[tuple[str, str]]:
    """(condition, index), for each operator with each type that it applies to.

    `contains` is answered by an index of parts, which a text has or not; enums have none: the
    language gives them no such index, and a handful of values needs none.
    """
    for name, (kind, _, (one, other)) in MATRIX.items():
        for word in ("=", "<", "<=", ">", ">="):
            yield f"$n.{name} {word} {one}", f"{name}_btree"
        yield f"$n.{name} = {other}", f"{name}_btree"
        yield f"$n.{name} in [{one}, {other}]", f"{name}_btree"
        if kind == "String" or kind.startswith("enum"):
            yield f'$n.{name} starts_with {one[:3]}"', f"{name}_btree"
    yield '$n.w contains "xb1"', "w_ngram"
    yield "$n.v > 9223372036854775807", "v_btree"
    yield '$n.k = "k1"', "id_btree"


@pytest.fixture(scope="module")
def told() -> Iterator[Graph]:
    rows: list[dict[str, Any]] = [{"k": f"k{n}", "w": f"xb{n}c"} for n in range(40)]
    for name, (_, values, _) in MATRIX.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    rows.append({"k": "none"})  # null is none of them
    with new_graph(PAIRS, {"Plain": rows, "Told": rows}) as graph:
        graph.maintenance.ensure_indices()
        yield graph


@pytest.mark.parametrize(("condition", "index"), list(pairs()))
def test_explain_names_the_index(told: Graph, condition: str, index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "hot_rows", lambda *_: None)  # what is in memory needs no index
    query = f"match {{ $n: Told  {condition} }} return {{ $n.k }}"
    assert f"(index {index})" in str(told.explain(query))
    found = told.query(query).to_dicts()
    plain = query.replace("Told", "Plain")
    if index != "id_btree":
        assert "(index" not in str(told.explain(plain))
    assert 0 < len(found) < 41
    assert sorted(map(str, found)) == sorted(map(str, told.query(plain).to_dicts()))


ZEROS: dict[str, Callable[[float], bool]] = {
    "= 0.0": lambda v: v == 0,
    "= 0": lambda v: v == 0,
    "in [0.0, 0.5]": lambda v: v in (0, 0.5),
    "> 0.0": lambda v: v > 0,
    ">= 0.0": lambda v: v >= 0,
    "< 0.0": lambda v: v < 0,
    "<= 0.0": lambda v: v <= 0,
}


def test_positive_and_negative_zero_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "hot_rows", lambda *_: None)
    schema = "node N { k: I32 @key  f: F32? @index  g: F64? @index  plain: F64? }"
    values = [0.0, -0.0, 2.0**-140, -(2.0**-140), 0.5, -0.5] * 3
    rows = [{"k": n, "f": v, "g": v, "plain": v} for n, v in enumerate(values)]
    with new_graph(schema, {"N": rows}) as graph:
        graph.maintenance.ensure_indices()
        for condition, holds in ZEROS.items():
            expected = [n for n, v in enumerate(values) if holds(v)]
            for name in ("f", "g", "plain"):
                query = f"match {{ $n: N  $n.{name} {condition} }} return {{ $n.k as k }}"
                assert ("(index" in str(graph.explain(query))) == (name != "plain"), condition
                found = sorted(one["k"] for one in graph.query(query))
                assert found == expected, (name, condition)


def test_explain_names_the_index_below_an_aggregate(told: Graph) -> None:
    query = "match { $n: Told  $n.i >= 0 } return { count($n) as c }"
    assert "(index i_btree)" in str(told.explain(query))
    assert told.query(query).to_dicts() == [{"c": 20}]


def test_substring_search_without_an_ngram_index_scans(indexed: Graph) -> None:
    for name in "sex":
        query = f'match {{ $n: T  $n.{name} contains "abA" }} return {{ $n.k }}'
        assert "(index" not in str(indexed.explain(query))


@pytest.fixture(scope="module")
def indexed() -> Iterator[Graph]:
    chance = random.Random(0)
    with new_graph(SCHEMA, {"T": [record(chance, n) for n in range(40)]}) as graph:
        graph.connect_nodes("E", [(f"k{n}", f"k{n + 1}") for n in range(20)])
        graph.maintenance.ensure_indices()
        yield graph


WALKS = {
    "$a e $b": ("src_btree",),
    "$b e $a": ("dst_btree",),
    "$a e{1,2} $b": ("src_btree",),
    "$a <e> $b": ("src_btree", "dst_btree"),
}


@pytest.mark.parametrize(("walk", "index"), WALKS.items())
def test_explain_names_the_endpoint_index(
    indexed: Graph, walk: str, index: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f'match {{ $a: T {{ k: "k5" }}  {walk} }} return {{ $b.k }}'
    assert "_btree)" not in _walk(indexed, query), "so few edges are read whole"
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "indexed")
    assert f"(index {', '.join(index)})" in _walk(indexed, query)
    found = sorted(map(str, indexed.query(query).to_dicts()))
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "csr")
    assert "_btree)" not in _walk(indexed, query)
    assert found
    assert sorted(map(str, indexed.query(query).to_dicts())) == found


def _walk(graph: Graph, query: str) -> str:
    """The line of the walk; the one before it looks up where it begins."""
    return str(graph.explain(query)).splitlines()[2]


def test_indexes_that_the_next_build_would_extend_are_reported() -> None:
    schema = "node P { k: String @key  n: I64? @index  t: String?  @index(t, kind=fulltext) }  edge E: P -> P"
    with new_graph(schema, {"P": [{"k": "a", "n": 1, "t": "one"}, {"k": "b"}]}) as graph:
        graph.load({"E": [{"from": "a", "to": "b"}]}, mode="append")
        pending = [(key, name) for key, name, _ in graph.maintenance.pending_indices()]
        assert {("node:P", "id"), ("node:P", "n"), ("node:P", "t"), ("edge:E", "src"), ("edge:E", "dst")} <= {*pending}
        built = graph.maintenance.ensure_indices().indexes
        columns = {(key, name.removeprefix("fulltext:")) for key, names in built.items() for name in names}
        assert columns == {*pending}
        assert graph.maintenance.pending_indices() == []
        graph.load({"P": [{"k": "c", "n": 2}]}, mode="append")
        reasons = {(key, name): reason for key, name, reason in graph.maintenance.pending_indices()}
        assert "1 of 3 rows" in reasons["node:P", "n"]
        assert "ensure_indices" in reasons["node:P", "n"]


def test_unbuilt_indexes_are_reported(indexed: Graph) -> None:
    pending = {(key, name): why for key, name, why in indexed.maintenance.pending_indices()}
    assert set(pending) == {("node:U", "w")}
    assert "storage supports one index per column" in pending["node:U", "w"]
    assert not indexed.maintenance.ensure_indices(), "what is pending is no work"


def test_unsigned_numbers_are_compared_exactly_by_unique() -> None:
    schema = "node N { k: String @key  u: U32? @unique  v: U64? @unique }"
    with new_graph(schema) as graph:
        graph.insert("N", {"k": "a", "u": 2**32 - 1, "v": 2**64 - 1})
        for same in ({"u": 2**32 - 1}, {"v": 2**64 - 1}):
            with pytest.raises(UniqueViolation):
                graph.insert("N", {"k": "b"} | same)
        graph.insert("N", {"k": "b", "u": 2**32 - 2, "v": 2**64 - 2})
        graph.maintenance.optimize()
        assert not graph.maintenance.check().findings
