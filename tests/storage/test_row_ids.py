"""A change may carry row ids over only from rows that it removes itself."""

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import InternalError
from omnigraph.storage import row_ids, scan, stage_rows, table
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.table import Table

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64())])


def rows(*names: str) -> pa.Table:
    return pa.table({"id": list(names), "n": [7] * len(names)}, schema=SCHEMA)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path), durability="os")


@pytest.fixture
def shelf(store: Store) -> Table:
    """Two fragments: `a` to `c`, then `d`; `b` was replaced once, so it is a third."""
    made = table.create_table(store, "nodes/shelf", SCHEMA)
    for names in (("a", "b", "c"), ("d",)):
        made = table.commit(store, made, stage_rows.stage_append(store, made, rows(*names)))
    gone, kept = look(made, "b")
    changed = stage_rows.stage_change(store, made, removed_addresses=gone, replacements=(kept, rows("b")))
    return table.commit(store, made, changed)


def look(shelf: Table, *names: str) -> tuple[list[int], list[int]]:
    """The addresses and the row ids of rows."""
    found = scan.find_rows(shelf, "id", names, ["id"])
    return found["_rowaddr"].to_pylist(), found["_rowid"].to_pylist()


def test_rows_keep_their_ids_across_fragments(store: Store, shelf: Table) -> None:
    gone, kept = look(shelf, "a", "b", "d")
    change = stage_rows.stage_change(store, shelf, removed_addresses=gone, replacements=(kept, rows("a", "b", "d")))
    after = table.commit(store, shelf, change)
    assert look(after, "a", "b", "d")[1] == kept
    every = after.dataset.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
    assert len(every) == len(set(every)) == 4


def test_change_may_replace_fewer_rows_than_it_removes(store: Store, shelf: Table) -> None:
    gone, kept = look(shelf, "a", "b", "d")
    change = stage_rows.stage_change(store, shelf, removed_addresses=gone, replacements=(kept[1:2], rows("b")))
    after = table.commit(store, shelf, change)
    assert look(after, "b")[1] == kept[1:2]
    assert after.dataset.count_rows() == 2


@pytest.mark.parametrize("wrong", ["another row", "a new id", "twice", "too few", "too many"])
def test_other_row_ids_are_refused_before_anything_is_written(store: Store, shelf: Table, wrong: str) -> None:
    gone, kept = look(shelf, "a", "b")
    other = look(shelf, "c")[1]
    given = {
        "another row": [kept[0], *other],
        "a new id": [kept[0], 1 << 40],
        "twice": [kept[0], kept[0]],
        "too few": kept[:1],
        "too many": [*kept, *other],
    }[wrong]
    before = store.effects.counts_by_kind()
    with pytest.raises(InternalError):
        stage_rows.stage_change(store, shelf, removed_addresses=gone, replacements=(given, rows("a", "b")))
    assert store.effects.counts_by_kind() == before


@pytest.mark.parametrize("address", [9 << 32, 99])
def test_missing_row_address_is_rejected(store: Store, shelf: Table, address: int) -> None:
    with pytest.raises(InternalError):
        stage_rows.stage_change(store, shelf, removed_addresses=[address], replacements=([0], rows("a")))


def test_row_ids_in_a_separate_file_are_read(store: Store, shelf: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    class External:
        @staticmethod
        def from_inline_metadata(_: object) -> None:
            raise NotImplementedError

    monkeypatch.setattr(row_ids, "RowIdSequence", External)
    gone, kept = look(shelf, "a", "d")
    stage_rows.stage_change(store, shelf, removed_addresses=gone, replacements=(kept, rows("a", "d")))
    with pytest.raises(InternalError, match="old copy"):
        stage_rows.stage_change(store, shelf, removed_addresses=gone, replacements=([*kept[:1], 77], rows("a", "d")))
