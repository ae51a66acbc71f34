"""Every case under tests/cases/query/params: parameters bound before execution."""

import datetime
import json
from typing import Literal

import pytest

from omnigraph.errors import ParameterError
from omnigraph.lang.query import bind_parameters, compile_query
from tests.lang.query_check.blocks import Block, blocks, schema

CASES = blocks("params")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_parameter_case(case: Block) -> None:
    text = f"query q({case.first('params')}) {{ match {{ $x: Author }} return {{ $x.name }} }}"
    parameters = compile_query(text, schema("W")).parameters
    given = json.loads(case.parts[0])
    mode: Literal["javascript", "standard"] = "javascript" if case.first("mode") == "javascript" else "standard"
    problems = case.all("problem")
    if not problems:
        bound = bind_parameters(parameters, given, mode)
        assert json.loads(json.dumps(bound)) == json.loads(case.parts[1])
        return
    with pytest.raises(ParameterError) as caught:
        bind_parameters(parameters, given, mode)
    found = list(caught.value.details.get("problems", [caught.value.message]))
    assert len(found) == len(problems), found
    for message, line in zip(found, problems, strict=True):
        assert [phrase for phrase in line.split(" | ") if phrase not in message] == []
        assert message in caught.value.message
    assert caught.value.parameter == problems[0].split(" | ")[0].strip("'$")


def test_request_time_is_bound_if_given() -> None:
    query = compile_query("query q() { match { $x: Author } return { now() } }", schema("W"))
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    assert bind_parameters(query.parameters, {}, now=moment) == {"__now": 1000}
    assert bind_parameters(query.parameters, {}, now=1000) == {"__now": 1000}
    assert bind_parameters(query.parameters, {}) == {}


def test_reserved_parameter_name_is_rejected() -> None:
    with pytest.raises(ParameterError, match="__now"):
        bind_parameters((), {"__now": "2020-01-01T00:00:00Z"}, now=5)
