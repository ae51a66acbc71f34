"""Facts about Lance indexes that storage relies on or avoids.

A failure here after an upgrade of pylance says that a rule of `storage` lost its reason or its
ground: find the rule before changing the test.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation as Op
from lance.fragment import RowIdSequence, write_fragments
from lance.optimize import Compaction
from lance.query import MatchQuery

ROWS = 300
VECTOR = pa.list_(pa.float32(), 4)
TEXTS = [(name, pa.string()) for name in ("id", "k", "t", "g")]
SCHEMA = pa.schema([*TEXTS, ("n", pa.int64()), ("v", VECTOR)])
Ask = Callable[[Any, int, bool], set[str]]


def row(name: str, n: int) -> dict[str, Any]:
    """A row whose every indexed value follows from `n`."""
    vector = [float(n), float(n * n % 97), 1.0, 0.0]
    texts = {"k": f"k{n}", "t": f"a word{n} here", "g": f"gram{n:05d}"}
    return {"id": name, "n": n, "v": vector, **texts}


def ids(found: pa.Table) -> set[str]:
    return set(found["id"].to_pylist())


def filtered(template: str) -> Ask:
    def ask(ds: Any, n: int, index: bool) -> set[str]:
        return ids(ds.to_table(filter=template.format(n=n), use_scalar_index=index))

    return ask


def match(ds: Any, n: int, index: bool) -> set[str]:
    if not index:
        return ids(ds.to_table(filter=f"t = 'a word{n} here'"))
    return ids(ds.to_table(full_text_query=MatchQuery(f"word{n}", "t")))


def nearest(ds: Any, n: int, index: bool) -> set[str]:
    q = {"column": "v", "q": row("", n)["v"], "k": 1, "use_index": index, "nprobes": 4}
    return ids(ds.to_table(nearest=q))


INDEXES: dict[str, tuple[str, Ask]] = {
    "BTREE": ("n", filtered("n = {n}")),
    "BITMAP": ("k", filtered("k = 'k{n}'")),
    "INVERTED": ("t", match),
    "NGRAM": ("g", filtered("contains(g, 'gram{n:05d}')")),
    "IVF_FLAT": ("v", nearest),
}


def indexed(path: Path, kind: Any) -> Any:
    """A table of which one column is indexed."""
    rows = pa.Table.from_pylist([row(f"r{n}", n) for n in range(ROWS)], schema=SCHEMA)
    ds = lance.write_dataset(rows, path, enable_stable_row_ids=True, data_storage_version="2.2")
    column = INDEXES[kind][0]
    if kind == "IVF_FLAT":
        return ds.create_index(column, kind, num_partitions=2)
    ds.create_scalar_index(column, kind)
    return lance.dataset(path)


def change(ds: Any, mode: str, new: int) -> Any:
    """Give one row other values and keep its row id, as an update of ours does."""
    at = ds.to_table(filter="id = 'r5'", with_row_id=True, with_row_address=True)
    address, row_id = at["_rowaddr"][0].as_py(), at["_rowid"][0].as_py()
    marked = ds.get_fragment(address >> 32).delete_rows([address & 0xFFFFFFFF])
    rows = pa.Table.from_pylist([row("r5", new)], schema=SCHEMA)
    fresh = write_fragments(rows, ds, mode="append", data_storage_version="2.2")
    fresh[0].row_id_meta = RowIdSequence([row_id]).to_inline_metadata()
    operation = Op.Update(updated_fragments=[marked], new_fragments=fresh, update_mode=mode)
    return lance.LanceDataset.commit(ds, operation, read_version=ds.version, detached=True)


def truthful(ds: Any, kind: str) -> bool:
    """Whether the index gives the answers of a scan, for old, untouched and new values."""
    ask = INDEXES[kind][1]
    return all(ask(ds, n, True) == ask(ds, n, False) for n in (5, 6, 150, 5000))


def coverage(ds: Any) -> tuple[int, int]:
    """Rows that the only index covers, and rows that it does not."""
    found = ds.stats.index_stats(ds.describe_indices()[0].name)
    return found["num_indexed_rows"], found["num_unindexed_rows"]


@pytest.mark.parametrize("kind", INDEXES)
def test_query_uses_the_index(tmp_path: Path, kind: str) -> None:
    ds = indexed(tmp_path / "t", kind)
    assert INDEXES[kind][1](ds, 5, True) == {"r5"}
    assert coverage(ds) == (ROWS, 0)


@pytest.mark.parametrize("new", [150, 5000])
@pytest.mark.parametrize("kind", INDEXES)
def test_index_is_correct_after_our_update(tmp_path: Path, kind: str, new: int) -> None:
    ds = change(indexed(tmp_path / "t", kind), "", new)
    assert "r5" in INDEXES[kind][1](ds, new, False) or kind == "IVF_FLAT"
    assert truthful(ds, kind)


@pytest.mark.parametrize("kind", INDEXES)
def test_most_indexes_are_wrong_after_update_mode_rewrite_rows(tmp_path: Path, kind: str) -> None:
    """Why `rewrite_rows` without lists of fields is forbidden: only BTREE looks again."""
    ds = change(indexed(tmp_path / "t", kind), "rewrite_rows", 5000)
    assert INDEXES[kind][1](ds, 5000, False) == {"r5"}
    assert truthful(ds, kind) == (kind == "BTREE")


@pytest.mark.full
@pytest.mark.parametrize("kind", INDEXES)
def test_rows_that_no_index_covers_are_found_by_scanning(tmp_path: Path, kind: str) -> None:
    ds = indexed(tmp_path / "t", kind)
    rows = pa.Table.from_pylist([row("new", 5000)], schema=SCHEMA)
    fresh = write_fragments(rows, ds, mode="append", data_storage_version="2.2")
    ds = lance.LanceDataset.commit(ds, Op.Append(fresh), read_version=ds.version, detached=True)
    assert coverage(ds) == (ROWS, 1)
    assert INDEXES[kind][1](ds, 5000, True) == {"new"}
    assert truthful(ds, kind)


@pytest.mark.full
@pytest.mark.parametrize("kind", INDEXES)
def test_plain_rewrite_loses_coverage_but_stays_correct(tmp_path: Path, kind: str) -> None:
    """Why index segments are built again after a compaction."""
    ds = indexed(tmp_path / "t", kind)
    ds.delete("id = 'r5'")
    options: Any = {"materialize_deletions_threshold": 0.0}
    results = [task.execute(ds) for task in Compaction.plan(ds, options).tasks]
    groups = [Op.RewriteGroup(r.original_fragments, r.new_fragments) for r in results]  # type: ignore[attr-defined]
    done = lance.LanceDataset.commit(ds, Op.Rewrite(groups, []), read_version=ds.version, detached=True)
    assert coverage(done) == (0, ROWS - 1)
    assert truthful(done, kind)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "NGRAM", "INVERTED"])
def test_an_index_is_staged_and_then_named_by_a_detached_version(tmp_path: Path, kind: str) -> None:
    rows = pa.Table.from_pylist([row(f"r{n}", n) for n in range(ROWS)], schema=SCHEMA)
    ds = lance.write_dataset(rows, tmp_path / "t", enable_stable_row_ids=True)
    column, ask = INDEXES[kind]
    staged = ds.create_index_uncommitted(
        column, kind, name="by_value", fragment_ids=[f.fragment_id for f in ds.get_fragments()]
    )
    if kind == "INVERTED":
        staged = ds.merge_existing_index_segments([staged])
    assert (ds.latest_version, ds.describe_indices()) == (1, [])
    named = lance.LanceDataset.commit(ds, Op.CreateIndex([staged], []), read_version=ds.version, detached=True)
    assert coverage(named) == (ROWS, 0)
    assert ask(named, 5, True) == {"r5"}
    assert lance.dataset(tmp_path / "t").describe_indices() == []


def test_a_full_text_index_cannot_be_used_before_its_segments_are_merged(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([row(f"r{n}", n) for n in range(ROWS)], schema=SCHEMA)
    ds = lance.write_dataset(rows, tmp_path / "t", enable_stable_row_ids=True)
    staged = ds.create_index_uncommitted("t", "INVERTED", name="by_value", fragment_ids=[0])
    named = lance.LanceDataset.commit(ds, Op.CreateIndex([staged], []), read_version=ds.version, detached=True)
    with pytest.raises((OSError, ValueError)):
        match(named, 5, True)
