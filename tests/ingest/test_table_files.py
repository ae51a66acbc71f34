"""Tables in Parquet files, read in batches."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.ingest import table_files
from omnigraph.ingest.table_files import count_rows, iter_tables, read_group_sizes

TABLE = pa.table({"name": ["a", "b", "c", "d", "e"], "age": pa.array([1, 2, None, 4, 5], "int16")})


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=2)
    return tmp_path / "t.parquet"


@pytest.mark.parametrize("mapping", [{}, {"name": "title", "absent": "x"}])
def test_batches_contain_all_rows(parquet: Path, monkeypatch: pytest.MonkeyPatch, mapping: dict[str, str]) -> None:
    monkeypatch.setattr(table_files, "_BATCH_ROWS", 3)
    with parquet.open("rb") as file:
        batches = list(iter_tables(file, mapping))
    assert len(batches) > 1
    expected = TABLE.rename_columns([mapping.get("name", "name"), "age"])
    assert pa.concat_tables(batches).combine_chunks() == expected.combine_chunks()


def test_row_groups(parquet: Path) -> None:
    assert len(read_group_sizes(parquet)) == 3
    assert count_rows(parquet) == 5
    parts = [iter_tables(parquet, {}, *span) for span in ((0, 1), (1, 3), (3, None))]
    names = [[name for one in part for name in one["name"].to_pylist()] for part in parts]
    assert names == [["a", "b"], ["c", "d", "e"], []]


def test_file_without_rows_has_no_batches(tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 0), tmp_path / "none.parquet")
    assert sum(one.num_rows for one in iter_tables(tmp_path / "none.parquet", {})) == 0
