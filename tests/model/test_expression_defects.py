"""Planted defects in the evaluation of expressions: a comparison with the oracle finds every one of them.

The random queries of `test_random_queries.py` found all of them too, within 3,000 queries.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.engine.expressions import arithmetic, scalar_functions, scalars
from omnigraph.engine.expressions.evaluate import ColumnSource
from omnigraph.engine.operators import aggregate
from omnigraph.lang.query import plan
from tests.model.expected_values import listed, rows_shown
from tests.model.product_view import answer_of
from tests.model.test_random_queries import Shelf, traversal

Patch = pytest.MonkeyPatch


def floored_remainder(patch: Patch) -> None:
    """A remainder has the sign of the divisor."""

    def remainder(left: pa.Array, right: pa.Array) -> pa.Array:
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.array([None if not b or a is None else a % b for a, b in pairs], left.type)

    patch.setattr(arithmetic, "_integer_remainder", remainder)


def infinite_quotient(patch: Patch) -> None:
    """A division by zero is infinite."""
    original = arithmetic._without_zeros
    patch.setattr(
        arithmetic,
        "_without_zeros",
        lambda divisors: divisors if pa.types.is_floating(divisors.type) else original(divisors),
    )


def truncated_quotient(patch: Patch) -> None:
    """A division gives whole numbers."""
    patch.setitem(arithmetic._FLOAT_FUNCTIONS, "/", lambda left, right: pc.trunc(pc.divide(left, right)))


def swapped_difference(patch: Patch) -> None:
    """A chain of differences is computed from right to left."""
    patch.setitem(arithmetic._FLOAT_FUNCTIONS, "-", lambda left, right: pc.subtract(right, left))


def null_joined(patch: Patch) -> None:
    """Null is joined to a text like an empty one."""
    joined = pc.binary_join_element_wise
    patch.setattr(
        pc, "binary_join_element_wise", lambda left, right, by: joined(left.fill_null(""), right.fill_null(""), by)
    )


def rounded_to_even(patch: Patch) -> None:
    """Halves are rounded to the even neighbor."""
    rounded = pc.round
    patch.setattr(pc, "round", lambda column, **options: rounded(column, ndigits=options["ndigits"]))


def counted_from_zero(patch: Patch) -> None:
    """The first position of a text is 0."""
    original = scalar_functions._substring
    patch.setitem(
        scalar_functions._FUNCTIONS,
        "substring",
        lambda call, column, start, *more: original(call, column, start + 1, *more),
    )


def bytes_counted(patch: Patch) -> None:
    """The length of a text is that of its bytes."""
    patch.setattr(pc, "utf8_length", pc.binary_length)


def anchored_pattern(patch: Patch) -> None:
    """A pattern must match at the start."""
    found = pc.match_substring_regex
    patch.setattr(pc, "match_substring_regex", lambda column, pattern: found(column, pattern=f"^(?:{pattern})"))


def last_branch(patch: Patch) -> None:
    """The branches of `case` are tried from the last to the first."""
    original = scalars._choose_branch

    def reversed_case(source: ColumnSource, case: plan.Case) -> pa.Array:
        return original(source, plan.Case(case.branches[::-1], case.default, case.type))

    patch.setattr(scalars, "_choose_branch", reversed_case)


def first_argument(patch: Patch) -> None:
    """`coalesce` stops at its second argument."""
    original = scalars._first_valid

    def two_only(source: ColumnSource, call: plan.ScalarCall) -> pa.Array:
        return original(source, plan.ScalarCall("coalesce", call.arguments[:2], call.type))

    patch.setattr(scalars, "_first_valid", two_only)


def shifted_month(patch: Patch) -> None:
    """Months are counted from 0."""
    patch.setitem(scalar_functions._DATE_PARTS, "month", lambda column: pc.subtract(pc.month(column), 1))


def unsigned_sums(patch: Patch) -> None:
    """Totals of integers lose their sign."""
    original = aggregate._integer_sums
    patch.setattr(aggregate, "_integer_sums", lambda *given: [abs(total) for total in original(*given)])


# Each with a query that shows it.
DEFECTS: dict[Callable[[Patch], None], str] = {
    floored_remainder: "match { $p: Person } return { ($p.n - 1) % 3 as a }",
    infinite_quotient: "match { $p: Person } return { $p.single / 0 as a }",
    truncated_quotient: "match { $p: Person  1 / 2 < $p.n / 3 + 1 } return { $p.n / 4 as a }",
    swapped_difference: "match { $p: Person } return { $p.single - 1 - 2 as a }",
    null_joined: 'match { $p: Person } return { $p.label + "a" as a }',
    rounded_to_even: "match { $p: Person } return { round($p.single) as a, round($p.n + 0.5) as b }",
    counted_from_zero: "match { $p: Person } return { substring($p.name, 1, 1) as a }",
    bytes_counted: 'match { $p: Person } return { length($p.name + "é") as a }',
    anchored_pattern: 'match { $p: Person  matches("x" + $p.name, "[a-y]$") } return { $p.name }',
    last_branch: "match { $p: Person } return { case when $p.n > -9 then 1 when $p.n > 0 then 2 end as a }",
    first_argument: "match { $p: Person } return { coalesce($p.n, $p.n, 7) as a }",
    shifted_month: "match { $p: Person } return { sum(month($p.born)) as a }",
    unsigned_sums: "match { $p: Person } return { sum(-1 * length($p.name)) as a }",
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(Path(tmp_path_factory.mktemp("defects")))


def differs(shelf: Shelf, body: str) -> bool:
    """Whether a query shows a difference from the oracle on one of the random graphs."""
    text = f"query q() {{ {body} }}"
    for number in range(2):
        wanted = rows_shown(shelf.oracle(number).query(text, {}).rows)
        with traversal("csr"):
            _, rows = answer_of(shelf.graph(number, "loaded"), text, {})
        if listed(rows) != listed(wanted):
            return True
    return False


@pytest.mark.parametrize("plant", DEFECTS, ids=lambda plant: plant.__name__)
def test_a_planted_defect_is_found(plant: Callable[[Patch], None], shelf: Shelf) -> None:
    assert not differs(shelf, DEFECTS[plant])
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert differs(shelf, DEFECTS[plant])
