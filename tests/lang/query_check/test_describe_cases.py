"""Every case under tests/cases/query/describe: descriptions of queries for clients."""

import json

import pytest

from omnigraph.lang.query import compile_queries
from tests.lang.query_check.blocks import Block, blocks


@pytest.mark.parametrize("case", blocks("describe"), ids=str)
def test_describe_case(case: Block) -> None:
    compiled = compile_queries(case.text, case.catalog, "case.gq")
    assert compiled[0].to_json() == json.loads(case.parts[1])
