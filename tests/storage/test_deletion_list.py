"""Deletion lists: readable from and by Lance, and always validated."""

import json
import subprocess
import sys
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import FragmentMetadata, LanceOperation

from omnigraph.storage.deletion_list import read_offsets, write_offsets
from omnigraph.storage.deletions import read_bitmap

ROWS = 20_000
# Reads damaged files that passed the check: Lance must survive all of them.
READER = """
import json, lance, pathlib, sys
root, name, version, bodies = json.load(sys.stdin)
path = pathlib.Path(root, name)
for body in bodies:
    path.write_bytes(bytes.fromhex(body))
    try:
        lance.dataset(root, version=version).to_table()
    except Exception:
        pass
print("survived")
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    rows = pa.table({"k": pa.array(range(ROWS))})
    place = tmp_path_factory.mktemp("rows") / "t"
    return lance.write_dataset(rows, place, enable_stable_row_ids=True, data_storage_version="2.2")


def written_by_lance(table: lance.LanceDataset, offsets: list[int]) -> tuple[Path, FragmentMetadata]:
    marked = table.get_fragments()[0].delete_rows(offsets)
    assert marked is not None
    facts = marked.to_json()["deletion_file"]
    suffix = "arrow" if facts["file_type"] == "array" else "bin"
    name = f"{marked.id}-{facts['read_version']}-{facts['id']}.{suffix}"
    return Path(table.uri, "_deletions", name), marked


def some(count: int) -> list[int]:
    return sorted(np.random.default_rng(count).permutation(ROWS)[:count].tolist())


@pytest.mark.parametrize("count", [1, 2, 8, 9, 63, 64, 65, 500, 513, 4096, 4999])
def test_lists_written_by_lance_are_read(table: lance.LanceDataset, count: int) -> None:
    for offsets in (list(range(count)), some(count)):
        path, _ = written_by_lance(table, offsets)
        body = path.read_bytes()
        read = read_offsets(body) if path.suffix == ".arrow" else read_bitmap(body)
        assert read.tolist() == offsets


@pytest.mark.parametrize("count", [1, 8, 9, 64, 65, 4096, 9000])
def test_written_lists_are_read_by_lance(table: lance.LanceDataset, count: int) -> None:
    offsets = some(count)
    path, marked = written_by_lance(table, [0])
    path.write_bytes(write_offsets(offsets))
    facts = marked.to_json()
    facts["deletion_file"]["num_deleted_rows"] = count
    changed = FragmentMetadata.from_json(json.dumps(facts))
    operation = LanceOperation.Update(updated_fragments=[changed], update_mode="")
    after = lance.LanceDataset.commit(table, operation, read_version=1, detached=True)
    assert after.to_table()["k"].to_pylist() == sorted(set(range(ROWS)) - set(offsets))
    assert read_offsets(path.read_bytes()).tolist() == offsets


def passing(body: bytes, bits: range) -> list[str]:
    """The damaged bodies, one bit each, that our decoder lets through."""
    bodies = []
    for bit in bits:
        damaged = bytearray(body)
        damaged[bit >> 3] ^= 1 << (bit & 7)
        try:
            read_offsets(bytes(damaged))
        except (ValueError, OSError):
            continue
        bodies.append(damaged.hex())
    return bodies


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("count", [2, pytest.param(600, marks=pytest.mark.full)])
def test_accepted_lists_with_flipped_bits_do_not_crash_lance(table: lance.LanceDataset, count: int, step: int) -> None:
    path, marked = written_by_lance(table, some(count))
    operation = LanceOperation.Update(updated_fragments=[marked], update_mode="")
    after = lance.LanceDataset.commit(table, operation, read_version=1, detached=True)
    body = path.read_bytes()
    bodies = passing(body, range(0, 8 * len(body), step))
    assert 0 < len(bodies) < 8 * len(body) // step
    name = path.relative_to(table.uri).as_posix()
    job = json.dumps([table.uri, name, after.version, bodies])
    ended = subprocess.run([sys.executable, "-c", READER], input=job, capture_output=True, text=True, check=False)
    path.write_bytes(body)
    assert ended.stdout.strip() == "survived", ended.stderr[-500:]


@pytest.mark.parametrize("size", [0, 10, 383, 569, 697])
def test_truncated_list_is_rejected(size: int) -> None:
    with pytest.raises(ValueError, match=r"truncated|format that Lance"):
        read_offsets(write_offsets([1, 2])[:size])
