"""Every case under tests/cases/query/lower: the plan that a query is lowered to."""

import pytest

from omnigraph.lang.query import compile_queries, explain_plan, plan
from tests.lang.query_check.blocks import Block, blocks

CASES = blocks("lower")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lowering_case(case: Block) -> None:
    compiled = compile_queries(case.text, case.catalog, "case.gq")
    assert explain_plan(compiled[0].plan) == case.parts[1].rstrip("\n")


def test_equivalent_texts_have_equal_plans() -> None:
    heads = ("match { $c: Firm  $c worksAt $p }", "match { $c: Firm // x\n $p worksAt $c }")
    texts = [f"query q() {{ {head} return {{ $p.name }} }}" for head in heads]
    first, second = (compile_queries(text, CASES[0].catalog)[0].plan for text in texts)
    assert first == second
    assert hash(first) == hash(second)


def test_long_matches_are_lowered_in_reasonable_time() -> None:
    # The guard is the timeout of the suite: a cubic search for the next traversal needs minutes.
    walks = " ".join(f"$v{at} knows $v{at + 1}" for at in reversed(range(1500)))
    text = f"query q() {{ match {{ {walks} $v0: Person }} return {{ $v0.name }} }}"
    compiled = compile_queries(text, CASES[0].catalog)[0].plan
    assert isinstance(compiled, plan.ReadPlan)
    assert [type(one).__name__ for one in compiled.operators] == ["NodeScan", *["Expand"] * 1500]
