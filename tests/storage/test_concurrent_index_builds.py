"""Index builds while other threads use the same table object."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.storage.column_index import SegmentBuild, build_segment
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, open_table
from omnigraph.storage.text.fulltext import TEXT_INDEX_KIND, text_index_key
from tests.rig.writes import PERSON, append, init_small, line_at, write

BUILDS = 10


@pytest.mark.parametrize(("index_key", "kind"), [("n", "BTREE"), (text_index_key("id"), TEXT_INDEX_KIND)])
def test_a_table_is_read_while_threads_build_indexes(tmp_path: Path, index_key: str, kind: str) -> None:
    init_small(tmp_path)
    line = line_at(tmp_path)
    write(line, append({f"p{number}": number for number in range(2000)}))
    entry = line.refresh().state.tables[PERSON]
    table = open_table(line.store, entry.location, entry.lance_version)
    build = SegmentBuild(index_key, kind, "an_index", (0,))
    assert failures_of_readers(table, lambda: build_often(line.store, table, build)) == []


def build_often(store: Store, table: Table, build: SegmentBuild) -> None:
    for _ in range(BUILDS):
        build_segment(store, table, build)


def failures_of_readers(table: Table, work: Callable[[], None]) -> list[str]:
    """Read the table while two threads work on it, and return all errors."""
    failures: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(work), pool.submit(work)]
        while not all(future.done() for future in futures):
            try:
                assert table.schema.names[0] == "id"
                assert table.dataset.count_rows() == 2000
            except RuntimeError as error:
                failures.append(str(error))
            threading.Event().wait(0.001)
    return failures + [str(future.exception()) for future in futures if future.exception()]
