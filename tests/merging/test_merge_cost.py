"""A merge reads what changed, independent of the size of its target; no clock is used."""

from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph
from tests.merging.test_diff import _compacted

SCHEMA = "node Doc { name: String @key  n: I64?  text: String? }"
FEW, MANY = 5_000, 50_000
SLACK = 256 * 1024  # bytes; all rows of the larger target are some ten megabytes


def _rows(count: int) -> pa.Table:
    numbers = np.arange(count)
    names = pa.array([f"d{one:06d}" for one in numbers], pa.string())
    texts = pa.array([f"{one:06d}" * 30 for one in numbers], pa.string())
    return pa.table({"name": names, "n": pa.array(numbers), "text": texts})


def _read() -> int:
    """How many bytes this process has read from files so far."""
    facts = Path("/proc/self/io").read_text().split()
    return int(facts[facts.index("rchar:") + 1])


def _merged(root: Path, rows: int, *, compacted: bool = False) -> int:
    """The bytes that a merge of one changed row reads; both sides changed something."""
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.load({"Doc": _rows(rows)}, mode="append")
    graph.maintenance.ensure_indices()
    side = graph.branches.create("side")
    side.update("Doc", where="name = 'd000007'", set={"n": -1})
    graph.update("Doc", where="name = 'd004321'", set={"n": -2})
    if compacted:
        _compacted(graph, "node:Doc")
        graph.maintenance.ensure_indices()
    fresh = omnigraph.open(root, durability="os")
    before = _read()
    assert fresh.merge("side").outcome == "merged"
    read = _read() - before
    assert (fresh["Doc", "d000007"].properties["n"], fresh["Doc", "d004321"].properties["n"]) == (-1, -2)
    return read


def test_merge_of_one_row_reads_the_same_for_any_target_size(tmp_path: Path) -> None:
    few, many = _merged(tmp_path / "few", FEW), _merged(tmp_path / "many", MANY)
    assert many <= few + SLACK, (few, many)


def test_merge_of_one_row_reads_the_same_after_compaction(tmp_path: Path) -> None:
    few = _merged(tmp_path / "few", FEW, compacted=True)
    many = _merged(tmp_path / "many", MANY, compacted=True)
    assert many <= few + SLACK, (few, many)
