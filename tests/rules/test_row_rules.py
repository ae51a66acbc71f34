"""Row rules on Arrow batches equal the same rules on single values."""

import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
import re2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.catalog import NodeType, Range
from omnigraph.rules.row_rules import row_violations
from omnigraph.storage.arrow import arrow_type


def node(body: str) -> NodeType:
    return compile_schema(f"node N {{ {body} }}", "n.pg").nodes[0]


def broken(one: NodeType, name: str, values: list[Any], lines: Any = None) -> list[tuple[str, int]]:
    prop = one.property(name)
    assert prop is not None
    columns = {"id": pa.array([str(n) for n in range(len(values))])}
    columns[name] = pa.array(values, arrow_type(prop.type))
    rows = pa.record_batch(columns)
    return [(each.rule, int(each.entity_id or -1)) for each in row_violations(one, rows, lines)]


BOUNDS = [
    ("I32", "0..150"), ("I64", "-5..9007199254740993"), ("U64", "18446744073709551615.."),
    ("U32", "..-1"), ("I32", "2147483648.."), ("F64", "-0.5..9007199254740993"), ("F32", "..0.1"),
    ("I64", "0.5..2.5"), ("F64", "9007199254740993.."),
]  # fmt: skip
INTERESTING = [0, 1, 2, 3, 150, 151, -1, -5, -6, 2**31 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**64 - 1]
FLOATS = [0.0, -0.0, 0.1, -0.5, -0.6, 2.0**53, 2.0**53 + 2, 1e30]


@pytest.mark.parametrize(("kind", "bounds"), BOUNDS)
def test_ranges_are_exact(kind: str, bounds: str) -> None:
    one = node(f"p: {kind}?  @range(p, {bounds})")
    rule = next(each for each in one.constraints if isinstance(each, Range))
    limits = {"I32": (-(2**31), 2**31 - 1), "I64": (-(2**63), 2**63 - 1), "U32": (0, 2**32 - 1)}
    low, high = limits.get(kind, (0, 2**64 - 1))
    whole = kind[0] in "IU"
    values: list[Any] = [v for v in INTERESTING if low <= v <= high] if whole else list(FLOATS)
    stored = pa.array(values, arrow_type(one.properties[0].type)).to_pylist()
    expected = [
        ("@range", at)
        for at, value in enumerate(stored)
        if (rule.low is not None and Fraction(value) < Fraction(rule.low))
        or (rule.high is not None and Fraction(value) > Fraction(rule.high))
    ]
    assert broken(one, "p", [*values, None]) == expected


@given(st.lists(st.none() | st.text("aAé0 \n\0", max_size=4), max_size=6))
@pytest.mark.parametrize("pattern", ["^[a-z]+$", "a", "^.$", "(?i)A{2}", "\\\\pL0", "^$"])
def test_patterns_use_re2_syntax(pattern: str, values: list[str | None]) -> None:
    one = node(f'p: String?  @check(p, "{pattern}")')
    test = re2.compile(pattern.replace("\\\\", "\\"))
    expected = [("@check", at) for at, v in enumerate(values) if v is not None and not test.search(v)]
    assert broken(one, "p", values) == expected


def test_enums_and_required_values_are_checked() -> None:
    one = node("p: enum(x, y)")
    assert broken(one, "p", ["x", "z", None, "y"]) == [("enum", 1), ("required", 2)]
    assert broken(node("p: enum(x, y)?"), "p", [None, "x"]) == []


def test_numbers_and_list_elements_are_checked() -> None:
    bad = [math.nan, math.inf, 1.0, None]
    assert broken(node("p: F64?"), "p", bad) == [("value", 0), ("value", 1)]
    vectors = [[1.0, 2.0], None, [1.0, None], [math.inf, 0.0]]
    assert broken(node("p: Vector(2)?"), "p", vectors) == [("value", 2), ("value", 3)]
    assert broken(node("p: [String]?"), "p", [["a"], [], None, ["a", None]]) == [("value", 3)]


def test_violation_error_has_its_details() -> None:
    one = node("p: I32?  @range(p, 0..9)")
    rows = pa.table({"id": ["a", "b"], "p": pa.array([1, 10], pa.int32())})
    (found,) = row_violations(one, rows, pa.array([4, 7]).to_numpy())
    facts = found.to_error().details
    assert facts == {
        "rule": "@range", "type_name": "N", "entity_id": "b", "property": "p", "line": 7,
        "reason": "10 is not in 0..9", "value": 10,
    }  # fmt: skip
    assert found.conflict_kind == "value_constraint_violation"
