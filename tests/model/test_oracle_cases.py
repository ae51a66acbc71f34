"""The oracle agrees with every hand-written case."""

import pytest

from omnigraph.errors import OmnigraphError
from tests.model.engine_cases import Case, Part, all_cases
from tests.model.expected_values import bag, listed, rows_shown
from tests.model.match_reference import Unmodelled
from tests.model.oracle import Oracle
from tests.model.write_oracle import Refused

CASES = all_cases()


def check_rows(columns: tuple[str, ...], rows: list[list[object]], wanted: Part) -> None:
    """Rows against those of a case: as a bag, in order, or their number."""
    if wanted.word == "count":
        assert len(rows) == int(wanted.rest)
        return
    if wanted.rest:
        assert list(columns) == wanted.rest.split(" | ")
    if wanted.word == "ordered":
        assert listed(rows) == listed(wanted.values)
    else:
        assert bag(rows) == bag(wanted.values)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_oracle_agrees_with_the_case(case: Case) -> None:
    oracle = Oracle.of(case.schema, case.data)
    for action, wanted in case.steps:
        try:
            _step(oracle, action, wanted)
        except Unmodelled:
            pytest.skip("the oracle has no opinion")


def _step(oracle: Oracle, action: Part, wanted: Part) -> None:
    if action.word == "export" or (action.word == "load" and wanted.word == "error"):
        raise Unmodelled  # texts that the oracle does not read
    if "truncate" in action.text or (action.condition and wanted.word == "error"):
        raise Unmodelled
    if ("match {" in action.text) is not (action.word == "query"):
        raise Unmodelled
    if wanted.word == "error" and wanted.rest == "ExpressionError":
        raise Unmodelled  # the oracle has no positions in the text
    if wanted.word != "error":
        _good(oracle, action, wanted)
        return
    with pytest.raises((OmnigraphError, Refused)) as caught:
        _good(oracle, action, wanted)
    error = caught.value
    code = error.error if isinstance(error, Refused) else type(error).__name__
    assert code == wanted.rest


def _good(oracle: Oracle, action: Part, wanted: Part) -> None:
    if action.word == "query":
        found = oracle.query(action.source, action.given)
        check_rows(found.columns, rows_shown(found.rows), wanted)
        return
    if action.word == "mutate":
        counts = oracle.mutate(action.source, action.given)
    else:
        counts = oracle.load(action.text, action.rest)
    assert counts == ({} if wanted.word == "nothing" else wanted.done)


def test_case_names_are_unique() -> None:
    names = [str(one) for one in CASES]
    assert len(set(names)) == len(names)
