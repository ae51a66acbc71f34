"""Reads on the small graph: every operator through the public entry of the engine."""

from typing import Any

import pytest

from tests.engine.stored_graph import Small

P = "$p: Person "
NAMES = "return { $x.name }"

ROWS: list[tuple[str, list[Any]]] = [
    ('match { $p: Person { name: "Ann" } $p knows $x } return { $x.name }', ["Bob"]),
    ('match { $p: Person { name: "Ann" } $p $w:knows $x } return { $x.name }', ["Bob", "Bob"]),
    ('match { $p: Person { name: "Bob" } $x knows $p } return { $x.name }', ["Ann"]),
    ('match { $p: Person { name: "Ann" } $p <knows> $x } return { $x.name }', ["Bob", "Cyd"]),
    ('match { $p: Person { name: "Ann" } $p knows{1,3} $x } return { $x.name }', ["Bob", "Cyd", "Dee"]),
    ('match { $p: Person { name: "Ann" } $p knows{2,2} $x } return { $x.name }', ["Cyd", "Dee"]),
    ('match { $p: Person { name: "Ann" } $p knows{3,3} $x } return { $x.name }', ["Dee"]),
    ('match { $p: Person { name: "Dee" } $p knows $x } return { $x.name }', ["Dee"]),
    ('match { $p: Person { name: "Dee" } $p knows{2,2} $x } return { $x.name }', []),
    ('match { $f: Firm { name: "Acme" } $f worksAt $x } return { $x.name }', ["Ann", "Bob"]),
    ('match { $f: Firm { name: "Acme" } $x worksAt $f } return { $x.name }', ["Ann", "Bob"]),
    ('match { $p: Person { name: "Ann" } $p worksAt{2,3} $x } return { $x.name }', []),
    ("match { $x: Person $x.age != 25 } return { $x.name }", ["Ann", "Dee"]),
    ("match { $x: Person not { $x.age > 26 } } return { $x.name }", ["Bob", "Cyd"]),
    ("match { $x: Person not { $x worksAt $_ } } return { $x.name }", ["Dee"]),
    ("match { $x: Person not { $x knows $k  $k.age = 25 } } return { $x.name }", ["Bob", "Cyd", "Dee"]),
    ('match { $x: Person { name: "Ann" } $x knows $m  $m knows $t  $t knows $x } return { $x.name }', ["Ann"]),
    ('match { $x: Person $x.tags contains "y" } return { $x.name }', ["Ann"]),
    ('match { $x: Person { tags: "x" } } return { $x.name }', ["Ann"]),
    ('match { $x: Person "Ann and Bob" contains $x.name } return { $x.name }', ["Ann", "Bob"]),
    ('match { $x: Person $x.name starts_with "A" } return { $x.name }', ["Ann"]),
    ('match { $x: Person $x.name starts_with "a" } return { $x.name }', []),
    ("match { $x: Person $x.age < 25.5 } return { $x.name }", ["Bob"]),
    ("match { $x: Person $x.age = 25.5 } return { $x.name }", []),
    ('match { $p: Person $p $w:knows $x $w.since < date("2020-06-01") } return { $x.name }', ["Bob"]),
    ("match { $x: Person } return { $x.name } order { $x.age }", ["Cyd", "Bob", "Ann", "Dee"]),
    ("match { $x: Person } return { $x.name } order { $x.age desc }", ["Ann", "Dee", "Bob", "Cyd"]),
    ("match { $x: Person } return { $x.name } order { $x.age desc } limit 1", ["Ann"]),
    ("match { $x: Person } return { $x.name } limit 0", []),
    ("match { $x: Person } return { $x.name } limit 2 offset 1", ["Bob", "Cyd"]),
    ("match { $x: Person } return distinct { $x.age }", [30, 25, None]),
    ('match { $x: Person $x.name in ["Bob", "Zed"] } return { $x.name }', ["Bob"]),
    ("match { $x: Person $x.age is null } return { $x.name }", ["Cyd"]),
    ("match { $x: Person $x.age = 25 or $x.age is null } return { $x.name }", ["Bob", "Cyd"]),
]


@pytest.mark.parametrize(("text", "expected"), ROWS)
def test_first_column(small: Small, text: str, expected: list[Any]) -> None:
    assert [row[0] for row in small.rows(text)] == expected


def test_a_cross_product_has_all_pairs(small: Small) -> None:
    found = small.rows("match { $a: Person  $f: Firm } return { $a.name, $f.name }")
    assert len(found) == 8
    assert found == sorted(found)


def test_null_parameter_matches_nothing(small: Small) -> None:
    text = "query q($n: I32?) { match { $x: Person $x.age = $n } return { $x.name } }"
    assert small.rows(text, n=None) == []
    assert small.rows(text, n=25) == [("Bob",)]


def test_order_by_an_edge(small: Small) -> None:
    text = 'match { $p: Person { name: "Ann" } $p $w:knows $q } return { $w.since }'
    found = [row[0].year for row in small.rows(text + " order { $w.since desc }")]
    assert found == [2021, 2020]


def test_optional_keeps_rows_without_a_match(small: Small) -> None:
    text = "match { $p: Person optional { $p worksAt $f } } return { $p.name, $f.name }"
    assert small.rows(text) == [("Ann", "Acme"), ("Bob", "Acme"), ("Cyd", "Zeta"), ("Dee", None)]


def test_filter_after_optional_drops_unmatched_rows(small: Small) -> None:
    text = "match { $p: Person optional { $p worksAt $f } $f is null } return { $p.name }"
    assert small.rows(text) == [("Dee",)]


def test_an_entity_is_a_struct(small: Small) -> None:
    found = small.rows('match { $p: Person { name: "Ann" } } return { $p }')
    assert found[0][0] == {
        "id": "Ann",
        "type": "Person",
        "name": "Ann",
        "age": 30,
        "tags": ["x", "y"],
        "born": None,
        "vip": None,
    }


def test_system_fields(small: Small) -> None:
    text = 'match { $p: Person { name: "Bob" } $p $w:knows $q } return { $w.id, $w.from, $w.to }'
    assert small.rows(text) == [("k2", "Bob", "Cyd"), ("k5", "Bob", "Dee")]


GROUPS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("match { $p: Person } return { $p.age, count($p) as n } order { n desc }", [(30, 2), (None, 1), (25, 1)]),
    ('match { $p: Person { name: "Zed" } } return { count($p) as n, avg($p.age) as a }', [(0, None)]),
    ('match { $p: Person { name: "Zed" } } return { $p.name, count($p) as n }', []),
    ("match { $p: Person } return { sum($p.age) as s, min($p.name) as m, count($p.age) as c }", [(85.0, "Ann", 3)]),
    ('match { $a: Person { name: "Ann" } $a knows $b $b knows $c } return { $b.name, count($c) as n }', [("Bob", 2)]),
    ("match { $p: Person } return { count(distinct $p.age) as n }", [(2,)]),
    ("match { $p: Person $p.age > 99 $p knows $q } return { count($q) as n, sum($p.age) as s }", [(0, None)]),
    ("match { $p: Person $p knows $q } return { count($q) as n, sum($p.age) as s }", [(5, 30 + 25 + 25 + 30)]),
    (
        "match { $p: Person } return { $p.age, collect($p.name) as names }",
        [(30, ["Ann", "Dee"]), (25, ["Bob"]), (None, ["Cyd"])],
    ),
    ("match { $p: Person } return { max($p.age) as high, min($p.age) as low, avg($p.age) as a }", [(30, 25, 85 / 3)]),
]


@pytest.mark.parametrize(("text", "expected"), GROUPS)
def test_rows_are_grouped_and_aggregated(small: Small, text: str, expected: list[tuple[Any, ...]]) -> None:
    assert small.rows(text) == expected
