"""Reports of tasks arrive at the driver as they were made, whatever values they carry."""

import math
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import (
    ClientError,
    ConstraintViolation,
    InputError,
    InternalError,
    PropertyValueError,
    ResourceLimitExceeded,
    UniqueViolation,
)
from omnigraph.ingest.position_runs import pack_positions
from omnigraph.ingest.problem import LoadProblem
from omnigraph.rules.violation import Violation
from omnigraph.spark.report_encoding import decode_json, encode_json, error_from_members, error_members
from omnigraph.spark.report_rows import (
    KEY_ROWS,
    PATCHED_ROWS,
    REPLACED_EDGE_ROWS,
    REPORT_SCHEMA,
    ROW_KINDS,
    TUPLE_ROWS,
    RowKind,
    widen_batch,
)
from omnigraph.spark.staged_fragments import StagedFragment
from omnigraph.spark.task_reports import (
    REPORT_TYPES,
    ExistingIdReport,
    FailureReport,
    HeldValueReport,
    LineCountReport,
    NulledValuesReport,
    PatchedColumnsReport,
    PatchedRowsReport,
    ProblemCountReport,
    RecordCountReport,
    RejectReport,
    RemovedRowsReport,
    ReportedTypeReport,
    RowViolationReport,
    StagedFragmentReport,
    TaskReport,
    read_reports,
    select_reports,
)
from omnigraph.values.table_key import TableKey

VIOLATION = Violation(
    "@unique",
    TableKey("node:P"),
    "a",
    ("x", "y"),
    input_line=7,
    value=date(2024, 1, 31),
    conflicting_id="b",
    conflicting_line=3,
)
ERROR = PropertyValueError(type_name="P", property="age", line=3, expected="I32", actual="'x'", hint="a hint")
FRAGMENT = StagedFragment(
    TableKey("edge:E"),
    {"id": 0, "files": [{"path": "a.lance", "file_size_bytes": 9}], "row_id_meta": None},
    pack_positions(np.array([5, 6, 9])),
    3,
    ids_generated=True,
)
REPORTS: list[TaskReport] = [
    FailureReport(1 << 40 | 1, InputError("cannot read x", reason="unreadable")),
    LineCountReport(4, 100),
    RecordCountReport(TableKey("node:P"), 3, truncated=True, given_names=("age", "name")),
    NulledValuesReport(TableKey("node:P"), {"age": 2}),
    ProblemCountReport(3),
    PatchedRowsReport(TableKey("node:P"), 7, 100, 800, ("age",)),
    PatchedColumnsReport(TableKey("node:P"), {"fragment": {"id": 7}, "fields": [3], "checksums": {}}),
    RejectReport(LoadProblem(3, "P", "a", ERROR, None, ("1", "\ud800"), b"\xff{")),
    RejectReport(LoadProblem(None, None, None, ERROR)),
    RowViolationReport(VIOLATION),
    ExistingIdReport(Violation("key", TableKey("node:P"), "a")),
    HeldValueReport(VIOLATION),
    StagedFragmentReport(FRAGMENT),
    RemovedRowsReport(TableKey("node:P"), np.array([1, 1 << 63], np.uint64)),
    ReportedTypeReport(TableKey("node:P"), has_unwritten=True),
]


def arrived(*reports: TaskReport) -> list[TaskReport]:
    return read_reports(pa.Table.from_batches([one.to_batch() for one in reports]))


def shown(value: Any) -> Any:
    """A value that can be compared: errors and arrays have no equality of their own."""
    if isinstance(value, ClientError):
        facts = {name: fact for name, fact in vars(value).items() if name not in ("message", "has_given_message")}
        return type(value), value.message, facts
    if isinstance(value, LoadProblem | TaskReport):
        return {one.name: shown(getattr(value, one.name)) for one in fields(cast(Any, value))}
    return (value.dtype, value.tolist()) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("report", REPORTS, ids=lambda one: type(one).__name__)
def test_a_report_of_every_type_comes_back(report: TaskReport) -> None:
    (back,) = arrived(report)
    assert type(back) is type(report)
    assert shown(back) == shown(report)
    assert report.to_batch().schema == REPORT_SCHEMA


def test_every_type_is_tried() -> None:
    assert {type(one) for one in REPORTS} == set(REPORT_TYPES.values())
    assert not REPORT_TYPES.keys() & {one.kind for one in ROW_KINDS}


def test_reports_arrive_in_input_order_and_are_selected_by_type() -> None:
    late, early = (RowViolationReport(Violation("enum", TableKey("node:P"), input_line=n)) for n in (9, 2))
    found = arrived(late, LineCountReport(0, 1), early)
    assert [type(one) for one in found] == [LineCountReport, *[RowViolationReport] * 2]
    assert select_reports(found, RowViolationReport) == [early, late]
    assert select_reports(found, HeldValueReport) == []


def test_an_unknown_kind_is_an_internal_error() -> None:
    batch = widen_batch("gossip", 1, {"members": "{}"})
    with pytest.raises(InternalError, match="unknown kind 'gossip'") as caught:
        read_reports(pa.Table.from_batches([batch]))
    assert "same version" in str(caught.value.hint)


def test_an_unknown_class_of_error_is_an_internal_error() -> None:
    members = {**error_members(ERROR), "class": "NoSuchError"}
    with pytest.raises(InternalError, match="NoSuchError"):
        error_from_members(members)


@pytest.mark.parametrize(
    "error",
    [
        ERROR,
        InputError(reason="there is no type 'X'", hint="did you mean 'Y'?"),
        UniqueViolation(type_name="P", property=("a", "b"), value="1, 2", first_id="x"),
        ConstraintViolation(rule="@card", type_name="E", edge="'a' -> 'b'", value=(1, 2.5)),
        ResourceLimitExceeded(resource="keyed rows", limit=2, actual=3, status=429),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_error_keeps_its_class_message_facts_and_hint(error: ClientError) -> None:
    back = error_from_members(decode_json(encode_json(error_members(error))))
    assert shown(back) == shown(error)
    assert (str(back), back.to_json()) == (str(error), error.to_json())


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(1 << 70),
        (1 << 64) - 1,
        0.1,
        -0.0,
        math.inf,
        "a\u0000\ud800é",
        b"\x00\xff",
        date(1, 1, 1),
        datetime(2024, 2, 29, 1, 2, 3, 456789),
        datetime(2024, 2, 29, tzinfo=UTC),
        time(1, 2, 3, 4),
        timedelta(days=-1, microseconds=1),
        Decimal("1.10"),
        [1, [None, (b"x", ())]],
        {"a": {1: [date(2024, 1, 1)]}, "$date": "plain"},
        {},
    ],
    ids=repr,
)
def test_a_value_keeps_its_type(value: Any) -> None:
    back = decode_json(encode_json(value))
    assert (type(back), back, str(back)) == (type(value), value, str(value))


def test_not_a_number_and_numbers_of_numpy() -> None:
    assert math.isnan(decode_json(encode_json(math.nan)))
    assert decode_json(encode_json([np.int64(3), np.float32(0.5), np.bool_(True)])) == [3, 0.5, True]


def test_a_value_that_cannot_travel_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="type object"):
        encode_json({"x": object()})


def key_rows() -> pa.RecordBatch:
    return KEY_ROWS.batch(2, type=1, id=None, src=pa.array(["a", "b"]), dst=["c", "d"], spot=[5, 6])


def tuple_rows() -> pa.RecordBatch:
    spots = np.array([7, 8])
    return TUPLE_ROWS.batch(2, type=1, grp=0, value=["x", "y"], id=["a", "b"], spot=spots)


def replaced_rows() -> pa.RecordBatch:
    return REPLACED_EDGE_ROWS.batch(1, type=2, id=pa.chunked_array([["e"]]), src=["a"])


def patched_rows() -> pa.RecordBatch:
    return PATCHED_ROWS.batch(1, type=2, grp=7, payload=pa.array([b"\x00rows"], pa.binary()))


@pytest.mark.parametrize(
    ("row_kind", "make"),
    [
        (KEY_ROWS, key_rows),
        (TUPLE_ROWS, tuple_rows),
        (REPLACED_EDGE_ROWS, replaced_rows),
        (PATCHED_ROWS, patched_rows),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_rows_of_every_kind_come_back(row_kind: RowKind, make: Callable[[], pa.RecordBatch]) -> None:
    rows = make()
    report = row_kind.to_report(rows)
    assert (rows.schema, report.schema) == (row_kind.schema, REPORT_SCHEMA)
    assert row_kind.from_report(report).equals(rows)
    others = [one for one in ROW_KINDS if one is not row_kind]
    assert [one.from_report(report).num_rows for one in others] == [0, 0, 0]


def test_table_keys_arrive_as_table_keys() -> None:
    for report in arrived(*REPORTS):
        holder = getattr(report, "violation", None) or getattr(report, "fragment", None) or report
        assert isinstance(getattr(holder, "table_key", TableKey("node:P")), TableKey)
