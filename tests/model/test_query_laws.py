"""Laws that hold for all query results, without an oracle.

A condition, its opposite and the unknown split the rows; a limit is a prefix; counts and groups add
up. That a branch, an index and a compaction change nothing is shown in `test_random_queries`.

Defects planted once, each found: an offset that is taken off the limit, `not` that keeps unknowns.
"""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from omnigraph.api.graph import Graph
from omnigraph.errors import TypeCheckError
from tests.model.expected_values import bag, listed
from tests.model.product_view import answer_of
from tests.model.random_queries import PARAMETERS, Writer
from tests.model.test_random_queries import FORMS, QUIET, SEEDS, Shelf, traversal
from tests.rig.depth import repeats

PROPERTIES = {"Person": ["age", "single", "label", "born", "flag"], "Firm": ["size", "label"]}
TESTS = {
    "age": "$x.age > 0",
    "single": "$x.single <= 0.5",
    "label": '$x.label starts_with "a"',
    "born": '$x.born != date("2020-01-01")',
    "flag": "$x.flag = true",
    "size": "$x.size in [1, 2]",
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("laws"))


def matched(dice: Random, kind: str) -> tuple[str, Writer]:
    """The clauses of a random match with a node `$x` in it."""
    writer = Writer(dice)
    writer.nodes["x"] = kind
    clauses = [f"$x: {kind}", *(writer.clause(1) for _ in range(dice.randint(0, 3)))]
    return "  ".join(clauses), writer


def rows(graph: Graph, writer: Writer, match: str, tail: str) -> list[Any]:
    """The rows of a match, or nothing to look at when the checker refuses it."""
    head = ", ".join(f"${name}: {PARAMETERS[name][0]}" for name in writer.used)
    given_ = {n: PARAMETERS[n][1] for n in writer.used if PARAMETERS[n][1] is not None}
    try:
        return answer_of(graph, f"query q({head}) {{ match {{ {match} }} {tail} }}", given_)[1]
    except TypeCheckError:
        reject()


def names_of(writer: Writer) -> str:
    """All variables by their ids: what tells rows apart."""
    names = [f"${one}.id as i{n}" for n, one in enumerate((*writer.nodes, *writer.edges))]
    return ", ".join(names)


ARGUMENTS = {
    "number": st.integers(0, 2),
    "seed": SEEDS,
    "kind": st.sampled_from(sorted(PROPERTIES)),
    "form": st.sampled_from(FORMS),
    "mode": st.sampled_from(["csr", "indexed"]),
}


def check_partition(shelf: Shelf, number: int, dice: Random, kind: str, form: str, mode: str) -> None:
    """True, false and unknown together are everything."""
    match, writer = matched(dice, kind)
    graph, tail = shelf.graph(number, form), f"return {{ {names_of(writer)} }}"
    name = dice.choice(PROPERTIES[kind])
    test = TESTS[name]
    with traversal(mode):
        whole = rows(graph, writer, match, tail)
        parts = [f"{match}  {one}" for one in (test, f"not {test}", f"$x.{name} is null")]
        split = [bag(rows(graph, writer, one, tail)) for one in parts]
    assert sum(split, Counter()) == bag(whole)
    assert split[0] + split[1] == bag(
        row for row in whole if row in rows(graph, writer, f"{match}  $x.{name} is not null", tail)
    )


def check_prefix(shelf: Shelf, number: int, dice: Random, kind: str, form: str, mode: str) -> None:
    """A limit is a prefix, an offset the rest, in every order."""
    match, writer = matched(dice, kind)
    graph = shelf.graph(number, form)
    order = dice.choice(["", " order { $x.label desc }", " order { $x.id }"])
    order = dice.choice([order, f" order {{ $x.{dice.choice(PROPERTIES[kind])} }}"])
    tail = f"return {{ {names_of(writer)} }}{order}"
    limit, offset = dice.randint(0, 5), dice.randint(0, 5)
    with traversal(mode):
        whole = listed(rows(graph, writer, match, tail))
        cut = listed(rows(graph, writer, match, f"{tail} limit {limit}"))
        rest = listed(rows(graph, writer, match, f"{tail} offset {offset}"))
        both = listed(rows(graph, writer, match, f"{tail} limit {limit} offset {offset}"))
    assert cut == whole[:limit]
    assert rest == whole[offset:]
    assert both == whole[offset : offset + limit]


def check_count(shelf: Shelf, number: int, dice: Random, kind: str, form: str, mode: str) -> None:
    """Counted rows are as many as rows; groups add up; distinct rows are the set."""
    match, writer = matched(dice, kind)
    graph, names = shelf.graph(number, form), names_of(writer)
    with traversal(mode):
        whole = rows(graph, writer, match, f"return {{ {names} }}")
        counted = rows(graph, writer, match, "return { count(1) as n }")
        groups = rows(graph, writer, match, "return { $x.label, count($x) as n }")
        single = rows(graph, writer, match, f"return distinct {{ {names} }}")
    assert counted == [[len(whole)]]
    assert sum(one[1] for one in groups) == len(whole)
    assert bag(single) == Counter(bag(whole).keys())


LAWS = {"partition": check_partition, "prefix": check_prefix, "count": check_count}


def _run(shelf: Shelf, law: str, examples: int) -> None:
    @settings(max_examples=examples, suppress_health_check=[*QUIET, HealthCheck.filter_too_much])
    @given(**ARGUMENTS)
    def run(number: int, seed: int, kind: str, form: str, mode: str) -> None:
        LAWS[law](shelf, number, Random(seed), kind, form, mode)

    run()


@pytest.mark.parametrize("law", LAWS)
def test_query_law_holds(shelf: Shelf, law: str) -> None:
    _run(shelf, law, 15)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("law", LAWS)
def test_query_law_holds_for_many_queries(shelf: Shelf, law: str) -> None:
    _run(shelf, law, repeats(100))
