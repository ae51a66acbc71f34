"""The size of a load is estimated before it starts and rejected if the disk is too small."""

import gzip
from collections import namedtuple
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import ResourceLimitExceeded
from omnigraph.ingest.disk_space import estimate_input, require_disk_space
from omnigraph.ingest.input_parts import find_input_files

Usage = namedtuple("Usage", "total used free")


def test_record_count_is_estimated_from_a_sample(tmp_path: Path) -> None:
    line = b'{"type": "N", "data": {"k": "abcdefgh"}}\n'
    (tmp_path / "a.ndjson").write_bytes(line * 20_000)
    pq.write_table(pa.table({"k": ["x"] * 500}), tmp_path / "N.parquet")
    assert estimate_input(find_input_files(str(tmp_path / "N.parquet"))).rows == 500
    lines = estimate_input(find_input_files(str(tmp_path / "a.ndjson")))
    assert 19_900 < lines.rows < 20_100
    assert 0 < lines.bytes < len(line) * 20_000
    (tmp_path / "b.ndjson.gz").write_bytes(gzip.compress(line * 10))
    assert estimate_input(find_input_files(str(tmp_path / "b.ndjson.gz"))).rows == 0
    (tmp_path / "bad.parquet").write_bytes(b"none")
    assert estimate_input(find_input_files({"N": str(tmp_path / "bad.parquet")})).rows == 0


def test_insufficient_disk_space_is_reported_with_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = omnigraph.init(tmp_path / "g", "node N { k: String @key }", durability="os")
    store: Any = graph._handle.branch_state.store
    require_disk_space(store, 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(9, 9, 1_500_000))
    require_disk_space(store, 1_500_000)
    with pytest.raises(ResourceLimitExceeded, match=r"requires about 2 GB .* only 1.5 MB is free") as told:
        require_disk_space(store, 2_000_000_000)
    assert (told.value.limit, told.value.actual) == (1_500_000, 2_000_000_000)
    assert told.value.hint == "free disk space, or load less data"
