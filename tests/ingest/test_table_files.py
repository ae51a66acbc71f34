"""Tables in files: read whole or in batches, the rows and names are the same."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.ingest import table_files
from omnigraph.ingest.table_files import count_rows, iter_tables, read_group_sizes, read_table

TABLE = pa.table({"name": ["a", "b", "c", "d", "e"], "age": pa.array([1, 2, None, 4, 5], "int16")})


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=2)
    return tmp_path / "t.parquet"


@pytest.mark.parametrize("mapping", [{}, {"name": "title", "absent": "x"}])
def test_whole_and_in_batches(parquet: Path, monkeypatch: pytest.MonkeyPatch, mapping: dict[str, str]) -> None:
    monkeypatch.setattr(table_files, "_BATCH_ROWS", 3)
    whole = read_table(parquet, "parquet", mapping)
    with parquet.open("rb") as file:
        batches = list(iter_tables(file, "parquet", mapping))
    assert whole.column_names == [mapping.get("name", "name"), "age"]
    assert whole.schema.field("age").type == pa.int16(), "types are those of the file"
    assert len(batches) > 1
    assert pa.concat_tables(batches).combine_chunks() == whole.combine_chunks()


def test_row_groups(parquet: Path) -> None:
    assert len(read_group_sizes(parquet)) == 3
    assert count_rows(parquet) == 5
    parts = [iter_tables(parquet, "parquet", {}, *span) for span in ((0, 1), (1, 3), (3, None))]
    names = [[name for one in part for name in one["name"].to_pylist()] for part in parts]
    assert names == [["a", "b"], ["c", "d", "e"], []]


def test_no_rows_keep_their_columns(tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 0), tmp_path / "none.parquet")
    assert read_table(tmp_path / "none.parquet", "parquet", {"age": "years"}).column_names == ["name", "years"]
    assert sum(one.num_rows for one in iter_tables(tmp_path / "none.parquet", "parquet", {})) == 0


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,age\na,1\nb,2\n")
    whole = read_table(path, "csv", {"age": "years"})
    with path.open("rb") as file:
        (batch,) = iter_tables(file, "csv", {"age": "years"})
    assert whole == batch == pa.table({"name": ["a", "b"], "years": [1, 2]})
