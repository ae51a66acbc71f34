"""Errors about the values of `update` and of node sets name the caller's arguments, never generated parameters."""

from collections.abc import Callable

import pytest

from omnigraph import Graph
from omnigraph.errors import InputError, ParameterError, UsageError


def update_in_transaction(graph: Graph) -> None:
    with graph.transaction() as running:
        running.update("Person", set={"team": "web", "age": "x"}, where="name = 'ann'")


@pytest.mark.parametrize(
    ("call", "message", "parameter"),
    [
        (
            lambda graph: graph.update("Person", set={"team": "web", "age": "x"}, where="name = 'ann'"),
            "set: age: expected I32, got string 'x'",
            "set: age",
        ),
        (update_in_transaction, "set: age: expected I32, got string 'x'", "set: age"),
        (
            lambda graph: graph.update("Person", set={"age": "x"}, where="name = $n", n=5),
            "set: age: expected I32, got string 'x'; parameter '$n': expected String, got integer 5",
            "set: age",
        ),
        (
            lambda graph: graph.update("Person", set={"age": 5}, where="name = $n", n=5),
            "parameter '$n': expected String, got integer 5",
            "n",
        ),
        (
            lambda graph: graph.update("Person", set={"born": "parameter '$p0': "}, where="name = 'ann'"),
            "set: born: expected Date (YYYY-MM-DD, years 0001 to 9999), got string 'parameter '$p0': '",
            "set: born",
        ),
        (lambda graph: graph.nodes("Person").where(age="x").ids(), "where: age: expected I32, got string 'x'", None),
        (lambda graph: graph.nodes("Person").where(age="x").count(), "where: age: expected I32, got string 'x'", None),
        (
            lambda graph: graph.nodes("Person").limit(-1).ids(),
            "limit: expected a non-negative number for `limit`, got -1",
            "limit",
        ),
        (
            lambda graph: graph.nodes("Person").limit(1).offset("x").ids(),
            "offset: expected I64, got string 'x'",
            "offset",
        ),
    ],
)
def test_error_names_the_argument(
    graph: Graph, call: Callable[[Graph], object], message: str, parameter: str | None
) -> None:
    with pytest.raises(ParameterError) as rejected:
        call(graph)
    assert rejected.value.message == message
    assert rejected.value.parameter == (parameter or message.rsplit(": ", 1)[0])
    assert "$p0': expected" not in str(rejected.value.to_json())


def test_set_must_be_a_mapping_of_property_names(graph: Graph) -> None:
    with pytest.raises(UsageError, match="set must be a mapping of property names to values, not list"):
        graph.update("Person", set=["age"], where="name = 'ann'")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Person has no property '5'"):
        graph.update("Person", set={5: "x"}, where="name = 'ann'")  # type: ignore[dict-item]
