"""Columns of many rows are encoded by Arrow kernels, and become the same JSON as rows that are encoded one by one."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.api.results import json_encoding
from omnigraph.api.results.json_encoding import encode_column

MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.timestamp("ms", "UTC"): MOMENTS,
    pa.timestamp("us", "UTC"): MOMENTS,
    pa.date32(): st.dates(date(1, 1, 1), date(9999, 12, 31)),
    pa.string(): st.text(),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.binary(): st.binary(),
}


@pytest.mark.parametrize("arrow_type", COLUMNS, ids=str)
@given(data=st.data())
def test_long_columns_are_encoded_like_short_ones(arrow_type: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | COLUMNS[arrow_type], min_size=16, max_size=20))
    column = pa.chunked_array([pa.array(values[:7], arrow_type), pa.array(values[7:], arrow_type)])
    single_values = [encode_column(column.slice(index, 1))[0] for index in range(len(column))]
    assert repr(encode_column(column)) == repr(single_values)
    assert repr(encode_column(column.combine_chunks())) == repr(single_values)


def test_long_columns_use_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_encoding, "make_json_encoder", lambda _: pytest.fail("encoded value by value"))
    column = pa.array([datetime(2024, 1, 31, 12, tzinfo=UTC)] * 20, pa.timestamp("ms", "UTC"))
    assert encode_column(column) == ["2024-01-31T12:00:00.000Z"] * 20
