"""Node and edge sets return what the same steps on plain data return."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph, NodeSet
from omnigraph.errors import EntityNotFound, InputError, UsageError
from tests.api.conftest import KNOWS, PEOPLE

EMPTY = {"age": None, "tags": None, "team": None}
PERSON: dict[str, dict[str, Any]] = {one["name"]: EMPTY | one for one in PEOPLE}
PAIRS: set[tuple[str, str]] = {(one[0], one[1]) for one in KNOWS}


@dataclass
class Chain:
    """The same steps on a set in the engine and on plain data."""

    found: NodeSet
    expected: set[str] = field(default_factory=lambda: set(PERSON))

    def keep(self, found: NodeSet, test: Any) -> "Chain":
        return Chain(found, {name for name in self.expected if test(PERSON[name])})

    def step(self, found: NodeSet, pairs: set[tuple[str, str]]) -> "Chain":
        return Chain(found, {b for a, b in pairs if a in self.expected})


def older(chain: Chain, n: int) -> Chain:
    found = chain.found.filter("age > $age", age=n) if n % 2 else chain.found.filter(f"{n} < age")
    return chain.keep(found, lambda one: one["age"] is not None and one["age"] > n)


def teamed(chain: Chain, team: str | None) -> Chain:
    return chain.keep(chain.found.where(team=team), lambda one: one["team"] == team)


def named(chain: Chain, names: list[str]) -> Chain:
    return chain.keep(chain.found.where(name=names), lambda one: one["name"] in names)


def starting(chain: Chain, start: str) -> Chain:
    text = f"starts_with(name, '{start}') or not age is null"
    test = lambda one: one["name"].startswith(start) or one["age"] is not None  # noqa: E731
    return chain.keep(chain.found.filter(text), test)


def tagged(chain: Chain, tag: str) -> Chain:
    return chain.keep(chain.found.where(tags=tag), lambda one: tag in (one["tags"] or ()))


def out(chain: Chain, _: int) -> Chain:
    return chain.step(chain.found.out("Knows"), PAIRS)


def into(chain: Chain, _: int) -> Chain:
    return chain.step(chain.found.in_("Knows"), {(b, a) for a, b in PAIRS})


def both(chain: Chain, _: int) -> Chain:
    return chain.step(chain.found.both("Knows"), PAIRS | {(b, a) for a, b in PAIRS})


ages = st.sampled_from([0, 24, 25, 29, 31])
STEPS = st.one_of(
    st.tuples(st.just(older), ages),
    st.tuples(st.just(teamed), st.sampled_from(["core", "web", "none", None])),
    st.tuples(st.just(named), st.lists(st.sampled_from([*PERSON, "x"]), max_size=3)),
    st.tuples(st.just(starting), st.sampled_from(["a", "b", ""])),
    st.tuples(st.just(tagged), st.sampled_from(["x", "z"])),
    st.tuples(st.sampled_from([out, into, both]), st.just(0)),
)


@settings(max_examples=60)
@given(steps=st.lists(STEPS, max_size=5), down=st.booleans(), limit=st.integers(0, 5))
def test_chain_returns_the_same_rows_as_its_steps_on_plain_data(
    people: Graph, steps: list[tuple[Any, Any]], down: bool, limit: int
) -> None:
    chain = Chain(people.nodes("Person"))
    used = set()
    for step, value in steps:
        if step is older and "age" in used and value % 2:
            continue  # a second `$age` of another value is refused, see below
        used |= {"age"} if step is older and value % 2 else set()
        chain = step(chain, value)
    found = chain.found
    assert sorted(found.ids()) == sorted(chain.expected)
    assert found.count() == len(chain.expected)
    assert found.exists() == bool(chain.expected)
    wanted = sorted(chain.expected, reverse=down)[:limit]
    ordered = found.order_by("-name" if down else "name").limit(limit).select("name")
    assert ordered.scalars("name") == wanted
    assert ordered.count() == len(wanted)
    by_hand = people.query(ordered.to_query(), params=ordered.params)
    assert by_hand.to_dicts() == ordered.to_dicts()


def test_values_are_bound_as_parameters(people: Graph) -> None:
    hostile = "'\" } return { $x } // \\"
    chain = people.nodes("Person").where(name=hostile).filter("team = $t", t=hostile)
    assert hostile not in chain.to_query()
    assert chain.to_dicts() == []
    assert people.node("Person", hostile) is None


def test_columns_and_order(people: Graph) -> None:
    found = people.nodes("Person").select("name", "age").order_by("-age", "name").limit(2).offset(1)
    assert found.to_records() == [("dee", 30), ("bob", 25)]
    every = people.nodes("Person").where(name="ann").one()
    assert set(every) == {"id", "name", "age", "tags", "team", "born"}
    one = people.nodes("Person").where(name="ann").out("WorksAt").select("size").one()
    assert dict(one) == {"id": "acme", "size": None}
    reached = people.nodes("Person").where(name="ann").out("Knows", hops=(1, 3))
    assert sorted(reached.ids()) == ["bob", "cyd", "dee"]
    assert people.nodes("Person").out("Knows", hops=2).filter("age = 30").order_by("name").ids() == ["ann", "dee"]


def test_edges_have_endpoints_and_properties(people: Graph) -> None:
    found = people.edges("Knows").where(**{"from": "ann"}).order_by("since")
    assert [(row["from"], row.to, row.since.year) for row in found] == [("ann", "bob", 2020), ("ann", "bob", 2021)]
    assert people.edges("knows").count() == len(KNOWS)
    assert people.edges("Knows").filter("since > date('2020-06-01')").exists()
    assert len(set(people.edges("WorksAt").ids())) == 3


def test_nodes_by_key(people: Graph) -> None:
    ann = people["Person", "ann"]
    assert (ann.id, ann.type, ann["age"], ann.team) == ("ann", "Person", 30, "core")
    assert ann.to_dict()["tags"] == ["x", "y"]
    assert people.node("Person", "zed") is None
    with pytest.raises(KeyError):
        people["Person", "zed"]
    with pytest.raises(EntityNotFound):
        people["Person", "zed"]
    with pytest.raises(AttributeError):
        _ = ann.nickname


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (lambda g: g.nodes("Persn"), "unknown node type 'Persn'"),
        (lambda g: g.edges("Likes"), "unknown edge type 'Likes'"),
        (lambda g: g.nodes("Person").where(nick=1), "no property 'nick'"),
        (lambda g: g.nodes("Person").filter("nick = 1"), "no property 'nick'"),
        (lambda g: g.nodes("Person").filter("name = Ann"), "no property 'Ann'"),
        (lambda g: g.nodes("Person").select("nick"), "no property 'nick'"),
        (lambda g: g.nodes("Person").order_by("-nick"), "no property 'nick'"),
        (lambda g: g.nodes("Person").filter("age > $n"), r"\$n has no value"),
        (lambda g: g.nodes("Person").filter("age > 3", n=1), r"\$n is not used"),
        (lambda g: g.nodes("Person").filter("age > $p0", p0=1), "is reserved in predicates"),
        (lambda g: g.nodes("Firm").out("WorksAt"), "edges go from Person to Firm"),
        (lambda g: g.nodes("Person").both("WorksAt"), "edges go from Person to Firm"),
        (lambda g: g.nodes("Person").filter("age > $n", n=1).filter("age < $n", n=2), "a different value"),
    ],
)
def test_invalid_chains_are_reported(people: Graph, chain: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chain(people)


def test_no_step_may_follow_a_limit(people: Graph) -> None:
    first = people.nodes("Person").limit(1)
    with pytest.raises(UsageError, match="before `limit`"):
        first.out("Knows")
    with pytest.raises(UsageError, match="before `limit`"):
        first.where(age=1)


def test_composite_and_typed_keys(tmp_path: Path) -> None:
    schema = "node Slot { room: String  day: Date  @key(room, day) }\nnode N { k: I64 @key }"
    with omnigraph.init(tmp_path / "g", schema, durability="os") as graph:
        graph.insert("Slot", {"room": "r", "day": "2024-01-01"})
        graph.insert("N", {"k": 7})
        found = graph.nodes("Slot").ids()
        assert graph["Slot", {"room": "r", "day": "2024-01-01"}].id == found[0]
        assert graph["Slot", found[0]].room == "r"
        assert graph["N", 7].id == "7"
        with pytest.raises(InputError, match="incomplete key for Slot; expected"):
            graph.node("Slot", ("r",))


def test_tuples_are_lists_and_empty_predicates_match_all(people: Graph) -> None:
    nodes = people.nodes("Person")
    assert nodes.filter("age in (25, 30)").count() == 3
    assert nodes.filter("(name in ('ann', 'cyd') or age in (25)) and not (name = 'cyd')").count() == 2
    with pytest.raises(UsageError, match="a predicate must be a string, not NoneType"):
        nodes.filter(None)  # type: ignore[arg-type]


def test_unknown_enum_value_is_rejected(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node P { k: String @key  e: enum(core, web)? }")
    graph.insert("P", {"k": "a", "e": "web"})
    assert graph.nodes("P").where(e="web").count() == graph.nodes("P").where(e=["web"]).count() == 1
    for wrong in ("wep", ["core", "wep"]):
        with pytest.raises(InputError, match="'wep' is not a valid value for") as told:
            graph.nodes("P").where(e=wrong)
        assert told.value.hint == "did you mean `web`?"


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("name like 'a%'", "`matches(..)`"),
        ("name matches 'a'", "`matches(..)`"),
        ("age > 3 AND age < 9", "write `and`"),
        ("name = ann", "put a string in quotes"),
    ],
)
def test_hint_for_a_word_that_is_no_property(people: Graph, predicate: str, words: str) -> None:
    with pytest.raises(InputError, match="has no property") as refused:
        people.nodes("Person").filter(predicate).count()
    assert words in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("predicate", "ids"),
    [
        ("in = 'z'", ["a"]),
        ("in in ('z', 'y')", ["a", "b"]),
        ("not in = 'z'", ["b"]),
        ("(null is null) and not = 'n'", ["a"]),
        ("not contains(in, 'z')", ["b"]),
    ],
)
def test_properties_named_like_keywords_can_be_filtered(tmp_path: Path, predicate: str, ids: list[str]) -> None:
    schema = "node P { k: String @key  in: String?  not: String?  null: String? }"
    graph = omnigraph.init(tmp_path / "g", schema, durability="os")
    graph.insert("P", {"k": "a", "in": "z", "not": "n"}, {"k": "b", "in": "y", "not": "m", "null": "set"})
    assert graph.nodes("P").filter(predicate).order_by("k").ids() == ids


def test_where_with_a_predicate_names_filter(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node P { n: String @key  age: I32? }")
    with pytest.raises(UsageError, match="`where` accepts values by property name") as caught:
        graph.nodes("P").where("age > 30")  # type: ignore[arg-type]
    assert caught.value.hint == 'write .filter("age > 30")'
