"""Results: equal conversions, row-count checks, bounded and escaped renderings."""

import os
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from omnigraph import Result, ResultStream, Row
from omnigraph.errors import InputError

HOSTILE = ["<script>alert(1)</script>", "&amp; & \"quotes\" 'single'", "\u202eabc", "x" * 1_000_000]


def result(**columns: Any) -> Result:
    return Result(pa.table(columns), query_name="q", commit_id="01J0")


ALL = result(
    a=[1, None],
    b=["x", None],
    c=[1.5, float("nan")],
    d=[date(2020, 1, 1), None],
    e=[datetime(2020, 1, 1, tzinfo=UTC), None],
    f=[[1, 2], None],
)


def test_all_conversions_return_the_same_values_in_order() -> None:
    found = result(a=[3, 1, 2], b=["x", None, "z"])
    rows = [{"a": 3, "b": "x"}, {"a": 1, "b": None}, {"a": 2, "b": "z"}]
    assert found.to_dicts() == rows == found.to_arrow().to_pylist()
    assert found.to_lists() == [[3, "x"], [1, None], [2, "z"]]
    assert found.to_records() == [(3, "x"), (1, None), (2, "z")]
    assert [dict(row) for row in found] == rows
    assert pa.Table.from_batches(found.to_batches(2)).to_pylist() == rows
    assert found.to_reader().read_all().to_pylist() == rows
    assert pa.table(found).to_pylist() == rows  # by the C stream interface
    assert found.to_numpy("a").tolist() == [3, 1, 2]
    assert (found.columns, found.num_rows, len(found)) == (("a", "b"), 3, 3)


def test_rows_and_columns_are_selected_by_index_slice_and_name() -> None:
    found = Result(pa.table({"p.name": ["ann", "bob", "cyd"], "q.name": ["x", "y", "z"]}))
    assert found[0]["p.name"] == "ann"
    assert found[-1]["p.name"] == "cyd"
    assert [row["p.name"] for row in found[1:]] == ["bob", "cyd"]
    assert [row["p.name"] for row in found[::-2]] == ["cyd", "ann"]
    assert found["q.name"].to_pylist() == ["x", "y", "z"]
    with pytest.raises(IndexError):
        found[3]
    with pytest.raises(InputError, match="unknown column 'name'"):
        found["name"]
    with pytest.raises(AttributeError, match="several columns"):
        _ = found[0].name
    assert Row(("p.age",), (3,)).age == 3


@pytest.mark.parametrize("count", [0, 2])
def test_one_requires_exactly_one_row(count: int) -> None:
    found = result(a=[1] * count)
    with pytest.raises(InputError, match=f"found {count}"):
        found.one()
    with pytest.raises(InputError):
        found.scalar()
    if count:
        with pytest.raises(InputError):
            found.one_or_none()
    else:
        assert found.one_or_none() is found.first() is None
        assert not found


def test_scalars_requires_one_column() -> None:
    assert result(a=[7]).scalar() == 7
    assert result(a=[7, 8]).scalars() == [7, 8]
    assert result(a=[7], b=[8]).scalars("b") == [8]
    for wrong in (result(a=[1], b=[2]).scalar, result(a=[1], b=[2]).scalars):
        with pytest.raises(InputError, match="one column"):
            wrong()


def test_vectors_become_a_matrix() -> None:
    column = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    assert Result(pa.table({"v": column})).to_numpy("v").tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_written_files_contain_the_rows(tmp_path: Path) -> None:
    found = result(a=[1, 2], b=["x,\n", None])
    found.write_parquet(tmp_path / "a.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pylist() == found.to_dicts()
    found.write_ipc(tmp_path / "a.arrow")
    with pa.OSFile(str(tmp_path / "a.arrow")) as file:
        assert pa.ipc.open_file(file).read_all().to_pylist() == found.to_dicts()
    found.write_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == 'a,b\n1,"x,\n"\n2,null\n'
    found.write_ndjson(tmp_path / "a.ndjson")
    assert (tmp_path / "a.ndjson").read_text() == '{"a":1,"b":"x,\\n"}\n{"a":2,"b":null}\n'


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_missing_optional_library_is_named_in_the_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"pip install omnigraph\[{name}\]"):
        getattr(ALL, f"to_{name}")()


@pytest.mark.full
def test_a_result_is_read_by_polars_1(tmp_path: Path) -> None:
    """Only `DataFrame(result)` returns a frame in both major versions; `from_arrow` returns a Series under polars 2."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), "polars<1.31"]
    subprocess.run(install, check=True, capture_output=True)
    program = """
import polars, pyarrow
from omnigraph.api.results.result import Result
result = Result(pyarrow.table({"n": [1, 2], "s": ["a", None]}))
assert polars.__version__.startswith("1."), polars.__version__
assert polars.DataFrame(result).to_dicts() == result.to_polars().to_dicts() == result.to_dicts()
assert isinstance(polars.from_arrow(result), polars.DataFrame)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_a_result_is_read_by_polars_and_duckdb() -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    numbers = result(a=[1, 2], b=["x", None])
    assert numbers.to_polars().to_dicts() == polars.DataFrame(numbers).to_dicts() == numbers.to_dicts()
    assert duckdb.sql("select sum(a), count(b) from numbers").fetchall() == [(3, 1)]


def test_notebook_cards_escape_html_and_are_bounded() -> None:
    wide = {f"c{n}": HOSTILE * 10 for n in range(60)}
    wide["<b>"] = HOSTILE * 10
    for found in (result(**wide), result(s=[{"<i>": text} for text in HOSTILE])):
        html = found._repr_html_()
        assert len(html.encode()) < 200_000
        for raw in ("<script", "<b>", "<i>", "\u202e", '"quotes"'):
            assert raw not in html
        assert "&lt;" in html
    assert "20 more rows, 11 columns" in result(**wide)._repr_html_().replace("more columns", "columns")
    assert set(ALL._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_tables_render_unusual_values() -> None:
    vectors = pa.array([[0.0, 1.0], None, [float("nan"), 1.0]], pa.list_(pa.float32(), 2))
    html = Result(pa.table({"v": vectors, "b": [b"ab", None, b""]}))._repr_html_()
    assert "2 bytes" in html
    assert "▁█ <small>2</small>" in html
    assert result(a=[])._repr_html_().count("<tr>") == 1


def test_repr_shows_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(a=list(range(30)))
    assert repr(found).startswith("<Result: 30 rows from branch main via q>\na\n")
    assert repr(found).endswith("… 20 more")
    found.show(2)
    shown = "30 rows from branch main via q\na\n-\n0\n1\n… 28 more\n"
    assert capsys.readouterr().out == shown


def test_results_and_rows_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(ALL))
    assert again.to_dicts()[0] == ALL.to_dicts()[0]
    assert (again.query_name, again.commit_id) == ("q", "01J0")
    assert pickle.loads(pickle.dumps(ALL[0])) == ALL[0]


def test_stream_is_consumed_once_and_warns_if_abandoned() -> None:
    table = pa.table({"a": [1, 2, 3]})
    told: list[int] = []
    with ResultStream(table.schema, iter(table.to_batches(2)), on_close=told.append) as stream:
        assert next(stream).num_rows == 2
        assert "open" in repr(stream)
    assert told == [2]
    assert list(stream) == []
    whole = ResultStream(table.schema, iter(table.to_batches(2)))
    assert [row.a for row in whole.iter_rows()] == [1, 2, 3]
    assert pa.table(ResultStream(table.schema, iter(table.to_batches(2)))).num_rows == 3
    forgotten = ResultStream(table.schema, iter(table.to_batches(2)))
    with pytest.warns(ResourceWarning, match="unclosed"):
        del forgotten
