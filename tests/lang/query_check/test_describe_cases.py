"""Every case under tests/cases/query/describe: what clients are told about a query."""

import json

import pytest

from omnigraph.lang.query import compile_queries
from tests.lang.query_check.blocks import Block, blocks


@pytest.mark.parametrize("case", blocks("describe"), ids=str)
def test_case(case: Block) -> None:
    compiled = compile_queries(case.text, case.catalog, "case.gq")
    assert compiled[0].to_json() == json.loads(case.parts[1])
