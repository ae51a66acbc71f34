"""Opening tables: cached handles, and absence that is proven."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.dataset_cache import DatasetCache
from omnigraph.storage.failures import AbsentError
from omnigraph.storage.stage_rows import stage_append
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.table import Table, commit, create_table, open_table
from tests.rig.plugin import S3
from tests.rig.server_process import free_ports

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False)])


def a_table(store: Store) -> Table:
    table = create_table(store, "nodes/shelf", SCHEMA)
    return commit(store, table, stage_append(store, table, pa.table({"id": ["a"]})))


@pytest.fixture(params=["disk", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "disk":
        return str(tmp_path / "graph")
    place: S3 = request.getfixturevalue("s3")
    return place.url


def test_version_is_opened_once_and_cached(url: str) -> None:
    version = a_table(open_store(url)).version
    store = open_store(url)
    first = open_table(store, "nodes/shelf", version)
    assert first.dataset.count_rows() == 1
    assert open_table(store, "nodes/shelf", version).dataset is first.dataset


def test_unused_table_handles_are_released(tmp_path: Path) -> None:
    store = replace(open_store(str(tmp_path)), dataset_cache=DatasetCache(limit=2))
    tables = [create_table(store, f"nodes/{n}", SCHEMA) for n in range(3)]
    assert store.dataset_cache.get("nodes/0", 1) is None
    assert store.dataset_cache.get("nodes/2", 1) is tables[2].dataset


@pytest.mark.parametrize("version", [None, 1, 7, 1 << 63])
def test_missing_table_is_absent(url: str, version: int | None) -> None:
    with pytest.raises(AbsentError) as caught:
        open_store(url).open_dataset("nodes/nothing", version)
    assert (caught.value.kind, caught.value.effect) == ("not_found", "none")


@pytest.mark.parametrize("version", [2, 1 << 63])
def test_missing_version_is_absent(url: str, version: int) -> None:
    store = open_store(url)
    a_table(store)
    with pytest.raises(AbsentError):
        store.open_dataset("nodes/shelf", version)


def test_unreadable_table_is_not_absent(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    version = a_table(store).version
    manifest = tmp_path / "nodes/shelf/_versions" / f"d{version}.manifest"
    manifest.write_bytes(b"")
    with pytest.raises(StorageError) as caught:
        open_store(str(tmp_path)).open_dataset("nodes/shelf", version)
    assert not isinstance(caught.value, AbsentError)
    assert (caught.value.kind, caught.value.effect) == ("unknown", "none")


@pytest.mark.parametrize("version", [None, 1])
def test_unreachable_store_does_not_report_absent_tables(
    s3: S3, monkeypatch: pytest.MonkeyPatch, version: int | None
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{free_ports(1)[0]}")
    store = open_store(s3.url)
    root = replace(store.root, options={**store.root.options, "client_max_retries": "0"})
    with pytest.raises(StorageError) as caught:
        replace(store, root=root).open_dataset("nodes/shelf", version)
    assert not isinstance(caught.value, AbsentError)


def test_session_is_replaced_when_its_versions_use_too_much_memory(tmp_path: Path) -> None:
    cache = DatasetCache(bytes_per_session=100_000)
    store = replace(open_store(str(tmp_path)), dataset_cache=cache)
    sessions = []
    for number in range(12):
        create_table(store, f"nodes/{number}", pa.schema([("id", pa.string())]))
        sessions.append(cache.session)
    changes = [number for number in range(1, 12) if sessions[number] is not sessions[number - 1]]
    assert changes == [4, 9]  # an empty table uses a bit more than 20 KiB
