"""Filters evaluated by storage and by the engine agree for every type and edge case."""

import math
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.evaluate import TableSource, true_mask
from omnigraph.engine.operators.pushdown import to_storage_filter
from omnigraph.lang.query import plan
from omnigraph.storage import scan
from omnigraph.values import PropertyType, ScalarType
from omnigraph.values.table_key import TableKey
from tests.engine.stored_graph import Small

SCHEMA = """
node T {
    i32: I32?  i64: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?  b: Bool?  d: Date?
    t: DateTime?  s: String?
}
"""
STRINGS = ["", "a", "A", "a%", "a_b", "a\0b", "it's", 'say "x"', "\\", "\n", "é", "🙂", "\u202e"]
VALUES: dict[str, list[Any]] = {
    "i32": [-(2**31), -1, 0, 2, 3, 2**31 - 1],
    "i64": [-(2**63), -1, 0, 2, 3, 2**53 + 1, 2**63 - 1],
    "u32": [0, 2, 3, 2**32 - 1],
    "u64": [0, 2, 3, 2**53 + 1, 2**63, 2**64 - 1],
    "f32": [-math.inf, -2.5, -0.0, 0.0, 0.1, 2.5, 3.0, 2.0**24, math.inf, math.nan],
    "f64": [-math.inf, -2.5, -0.0, 0.0, 0.1, 2.5, 3.0, 2.0**53, math.inf, math.nan],
    "b": [True, False],
    "d": [-719162, -1, 0, 18262, 2932896],
    "t": [-62135596800000, -1, 0, 1577836800000, 253402300799999],
    "s": STRINGS,
}
NUMBERS: list[Any] = [
    *(0, 2, 3, -1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63, 2**64 - 1, -(2**63), 2**24 + 1),
    *(0.0, -0.0, 2.5, -2.5, 0.1, 3.0, 2.0**53, 2.0**63, 2.0**64, 1e300, -1e300, 1e-320),
    0.10000000149011612,
]
SCALARS = {
    "i32": ScalarType.I32,
    "i64": ScalarType.I64,
    "u32": ScalarType.U32,
    "u64": ScalarType.U64,
    "f32": ScalarType.F32,
    "f64": ScalarType.F64,
    "b": ScalarType.BOOL,
    "d": ScalarType.DATE,
    "t": ScalarType.DATETIME,
    "s": ScalarType.STRING,
}
PYTHON: dict[plan.CompareOperator, Any] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
OPERATORS = tuple(PYTHON)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Small:
    root: Path = tmp_path_factory.mktemp("push") / "graph"
    most = max(map(len, VALUES.values())) + 1
    rows = [
        {"id": f"r{at}"} | {name: held[at] for name, held in VALUES.items() if at < len(held)} for at in range(most)
    ]
    return Small(root, SCHEMA, {"node:T": rows})


def constants(name: str) -> list[Any]:
    return NUMBERS if SCALARS[name].is_numeric else VALUES[name]


def predicates(name: str) -> list[plan.Predicate]:
    kind = PropertyType(SCALARS[name], nullable=True)
    held = plan.PropertyValue("_", name, kind)
    given = [plan.Constant(one, kind) for one in [*constants(name), None]]
    found: list[plan.Predicate] = [plan.Compare(held, operator, one) for one, operator in product(given, OPERATORS)]
    found += [plan.Compare(one, "<", held) for one in given]
    some = constants(name)
    many = PropertyType(SCALARS[name], is_list=True)
    lists = ((), tuple(some), tuple(some[:3]), tuple(some[3:4]), None)
    found += [plan.InList(held, plan.Constant(items, many)) for items in lists]
    found += [plan.IsNull(held), plan.IsNull(held, negated=True)]
    return found + [plan.Or((one, other)) for one, other in zip(found[:20], found[7:], strict=False)]


@pytest.mark.parametrize("name", list(VALUES))
def test_pushed_filter_equals_evaluation(table: Small, name: str) -> None:
    shown = table.snapshot
    context = ExecutionContext(shown, shown.schema.ir.catalog, {})
    stored = context.table(TableKey("node:T"))
    every = scan.scan(stored, [name], row_ids=True)
    pushed = 0
    for predicate in predicates(name):
        expression = to_storage_filter(stored.schema, predicate, context.constant)
        if expression is None:
            continue
        pushed += 1
        expected = scan.row_id_array(every)[true_mask(TableSource(every, {}), predicate)]
        found = scan.row_id_array(scan.scan(stored, [], expression, row_ids=True))
        assert np.sort(found).tolist() == np.sort(expected).tolist(), predicate
    assert pushed > 10


@pytest.mark.parametrize("name", list(VALUES))
def test_comparison_is_by_value(table: Small, name: str) -> None:
    """Against Python, whose numbers compare exactly across types."""
    shown = table.snapshot
    every = scan.scan(shown.table(TableKey("node:T")), [name])
    held = [None, *VALUES[name]]
    if name == "f32":
        held = [None if one is None else float(np.float32(one)) for one in held]
    values = held[1:] + [None] * (every.num_rows - len(held) + 1)
    for constant, operator in product(constants(name), OPERATORS):
        kind = PropertyType(SCALARS[name])
        test = plan.Compare(plan.PropertyValue("_", name, kind), operator, plan.Constant(constant, kind))
        expected = [one is not None and PYTHON[operator](one, constant) for one in values]
        assert true_mask(TableSource(every, {}), test).tolist() == expected, test


@pytest.mark.parametrize(("left", "right"), list(product(list(VALUES)[:6], repeat=2)))
def test_columns_compare_by_value(table: Small, left: str, right: str) -> None:
    every = scan.scan(table.snapshot.table(TableKey("node:T")), sorted({left, right}))
    sides = [plan.PropertyValue("_", name, PropertyType(SCALARS[name])) for name in (left, right)]
    pairs = list(zip(every[left].to_pylist(), every[right].to_pylist(), strict=True))
    for operator in OPERATORS:
        found = true_mask(TableSource(every, {}), plan.Compare(sides[0], operator, sides[1])).tolist()
        assert found == [a is not None and b is not None and PYTHON[operator](a, b) for a, b in pairs], operator


def test_an_expression_of_constants_is_pushed_and_one_of_properties_is_not(table: Small) -> None:
    shown = table.snapshot
    context = ExecutionContext(shown, shown.schema.ir.catalog, {"n": 1})
    stored = context.table(TableKey("node:T"))
    kind = PropertyType(ScalarType.I64, nullable=True)
    held, given = plan.PropertyValue("_", "i32", kind), plan.Parameter("n", kind)
    total = plan.Arithmetic(given, (("+", plan.Constant(1, kind)),), kind)
    for predicate in (plan.Compare(held, "=", total), plan.Compare(total, "=", held)):
        expression = to_storage_filter(stored.schema, predicate, context.constant)
        assert scan.scan(stored, ["i32"], expression)["i32"].to_pylist() == [2]
    moved = plan.Arithmetic(held, (("-", given),), kind)
    truth = plan.Truth(plan.ScalarCall("matches", (held, plan.Constant("a", kind)), PropertyType(ScalarType.BOOL)))
    refused: list[plan.Predicate] = [
        plan.Compare(moved, "=", given),
        plan.Compare(held, "=", moved),
        plan.IsNull(moved),
        truth,
    ]
    refused += [plan.InList(moved, plan.Constant((1,), PropertyType(ScalarType.I64, is_list=True)))]
    refused += [plan.Or((plan.IsNull(held), truth)), plan.And((plan.IsNull(held), truth))]
    assert [to_storage_filter(stored.schema, one, context.constant) for one in refused] == [None] * len(refused)
