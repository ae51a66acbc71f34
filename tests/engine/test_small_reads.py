"""The cost of small reads, counted in calls, and the caches in front of them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph import Graph, testing
from omnigraph.engine.expressions.id_order import build_id_order
from omnigraph.errors import LanguageError, ParameterError
from omnigraph.storage import local_objects
from omnigraph.storage.scan import scan

SCHEMA = "node Person { name: String @key  age: I32?  city: String? }  edge Knows: Person -> Person"
POINT = "query point($name: String) { match { $p: Person { name: $name } } return { $p.name, $p.age, $p.city } }"
# 117 calls are needed today; the rest leaves room for other versions of Python, Arrow and NumPy.
MAX_CALLS = 135
WIDTH = 60


@contextmanager
def people() -> Iterator[Graph]:
    """Provide a graph of three people."""
    with testing.graph(SCHEMA) as graph:
        graph.insert("Person", {"name": "ada", "age": 36, "city": "London"})
        graph.insert("Person", {"name": "bob", "age": None, "city": None})
        graph.insert("Person", {"name": "eve", "age": 41, "city": "Paris"})
        yield graph


def count_python_calls(function: Callable[[], object]) -> int:
    """Return the number of calls of Python functions that a call makes."""
    events: list[str] = []
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        function()
    finally:
        sys.setprofile(None)
    return events.count("call")


def test_a_warm_lookup_stays_within_its_budget_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    # Directories that changed within the last seconds are listed at each read; treat this one as settled.
    monkeypatch.setattr(local_objects, "_MAX_TIME_GRANULARITY", -(1 << 62))
    with people() as graph:

        def look_up() -> None:
            assert graph.query(POINT, params={"name": "ada"}).to_records() == [("ada", 36, "London")]

        for _ in range(5):
            look_up()
        assert count_python_calls(look_up) <= MAX_CALLS


def test_all_columns_of_a_wide_type_are_read_with_one_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [f"c{number}" for number in range(WIDTH)]
    with testing.graph(f"node Wide {{ k: String @key {' '.join(f'{name}: I64?' for name in columns)} }}") as graph:
        graph.insert("Wide", {"k": "x"} | {name: number for number, name in enumerate(columns)})
        scanned: list[list[str]] = []

        def count_scan(table: Any, names: Any, *arguments: Any, **options: Any) -> pa.Table:
            scanned.append(list(names))
            return scan(table, names, *arguments, **options)

        monkeypatch.setattr("omnigraph.engine.expressions.hot_columns.scan", count_scan)
        for _ in range(3):
            node = graph.query("match { $w: Wide } return { $w } limit 1").scalar()
            assert [node[name] for name in columns] == list(range(WIDTH))
        wide_scans = [names for names in scanned if set(names) & set(columns)]
        assert [len(names) for names in wide_scans] == [WIDTH + 2]  # with the id and the key


def test_a_bare_body_declares_its_parameters_by_the_types_of_each_call() -> None:
    with people() as graph:
        body = "match { $p: Person  $p.age > $least } return { $p.name }"
        assert graph.query(body, least=36).scalars() == ["eve"]
        assert graph.query(body, least=35.5).scalars() == ["ada", "eve"]
        assert graph.query(body, least=40).scalars() == ["eve"]
        with pytest.raises(LanguageError):
            graph.query(body, least="forty")
        listed = "match { $p: Person  $p.name in $names } return { $p.name }"
        assert graph.query(listed, names=["ada"]).scalars() == ["ada"]
        with pytest.raises(LanguageError):
            graph.query(listed, names=[1])


def test_a_query_file_is_read_again_for_each_call(tmp_path: Path) -> None:
    query_path = tmp_path / "names.gq"
    with people() as graph:
        query_path.write_text('query names() { match { $p: Person { name: "ada" } } return { $p.name } }')
        assert graph.query(query_path).scalars() == ["ada"]
        query_path.write_text('query names() { match { $p: Person { name: "eve" } } return { $p.name } }')
        assert graph.query(query_path).scalars() == ["eve"]


def test_a_named_query_is_found_among_others() -> None:
    other = "query other() { match { $p: Nobody } return { $p.point } }"
    with people() as graph:
        for text in (f"{POINT} {other}", f"{other} {POINT}", f"{POINT} query broken("):
            assert graph.query(text, name="point", params={"name": "bob"}).to_records() == [("bob", None, None)]
        with pytest.raises(LanguageError, match="already defined"):
            graph.query(f"{POINT} {POINT}", name="point", params={"name": "bob"})
        with pytest.raises(LanguageError, match="Nobody"):
            graph.query(f"{POINT} {other}", name="other")


def test_a_prepared_read_reports_all_invalid_arguments() -> None:
    with people() as graph:
        text = "query q($a: I32, $b: I32) { match { $p: Person  $p.age > $a  $p.age < $b } return { $p.name } }"
        assert graph.query(text, a=30, b="40").scalars() == ["ada"]
        with pytest.raises(ParameterError) as caught:
            graph.query(text, a="x", b=None)
        assert len(caught.value.details["problems"]) == 2
        with pytest.raises(ParameterError, match=r"\$c"):
            graph.query(text, a=30, b=40, c=1)


def test_a_warm_read_sees_the_commit_of_another_handle() -> None:
    with people() as graph:
        query = "match { $p: Person } return { count($p) as n }"
        assert [graph.query(query).scalar() for _ in range(3)] == [3, 3, 3]
        other = graph.checkout("main")
        other.insert("Person", {"name": "zoe"})
        assert graph.query(query).scalar() == 4
        assert graph.query(POINT, params={"name": "zoe"}).to_records() == [("zoe", None, None)]


def test_ids_are_found_by_their_leading_bytes() -> None:
    stems = ["", "http://example.org/", "é"]
    tails = ["a", "a\0", "ab", "abcdefgh", "abcdefgh\0", "abcdefghi", "abcdefghij", "b", "é", "\U0001f600", "z" * 30]
    for stem in stems:
        ids = sorted({stem + tail for tail in tails}, key=str.encode)
        row_ids = np.arange(len(ids), dtype=np.int64)[::-1].copy()
        id_order = build_id_order(pa.array(ids), row_ids)
        assert [id_order.find_row(entity_id) for entity_id in ids] == row_ids.tolist()
        for absent_id in ("", "0", stem + "abcdefgha", stem + "zz", stem + "b\0", "http://example.org", "\U0001f601"):
            assert id_order.find_row(absent_id) is None
        assert id_order.order_numbers(np.array([0, -1, len(ids) - 1])).tolist() == [len(ids), 0, 1]
