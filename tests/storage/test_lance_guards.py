"""Facts about Lance commits that storage relies on or avoids, one test for each.

A failure here after an upgrade of pylance says that a rule of `storage` lost its reason or its
ground: find the rule before changing the test. That pylance syncs nothing is not tested here: it
needs a look at system calls.
"""

import json
import pickle
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import FragmentMetadata, LanceDataset
from lance import LanceOperation as Op
from lance.commit import CommitConflictError
from lance.dataset import Transaction
from lance.fragment import RowIdSequence, write_fragments
from lance.schema import LanceSchema

from omnigraph.values import clock_and_ids as source

STAMP = {b"stamp": b"100"}
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())], metadata=STAMP)


def rows(*names: str, n: int = 0) -> pa.Table:
    return pa.table({"id": list(names), "n": [n] * len(names)}, schema=SCHEMA)


def names(ds: Any) -> list[str]:
    return sorted(ds.to_table()["id"].to_pylist())


def fragments(ds: Any, *more: str) -> list[FragmentMetadata]:
    found: list[FragmentMetadata] = write_fragments(
        rows(*more), ds, mode="append", data_storage_version="2.2", enable_stable_row_ids=True
    )
    return found


def detached(ds: Any, operation: Any) -> Any:
    return LanceDataset.commit(ds, operation, read_version=ds.version, detached=True)


def swap(ds: Any, *content: str, retries: int = 0) -> Any:
    operation = Op.Overwrite(ds.lance_schema, fragments(ds, *content))
    return LanceDataset.commit(ds, Transaction(ds.version, operation, uuid=a_uuid()), max_retries=retries)


def a_uuid() -> str:
    text = source.new_nonce()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def addresses(ds: Any, *wanted: str) -> list[int]:
    found = ds.to_table(with_row_address=True).to_pylist()
    return [one["_rowaddr"] for one in found if one["id"] in wanted]


def without(ds: Any, *gone: str) -> FragmentMetadata:
    """The first fragment with deletions marked, staged."""
    offsets = [address & 0xFFFFFFFF for address in addresses(ds, *gone)]
    marked: FragmentMetadata | None = ds.get_fragment(0).delete_rows(offsets)
    assert marked is not None
    return marked


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Version 1 of a table with four rows."""
    return lance.write_dataset(
        rows("a", "b", "c", "d"), tmp_path / "t", enable_stable_row_ids=True, data_storage_version="2.2"
    )


# The swap.


def test_an_overwrite_without_retries_is_strict(table: Any) -> None:
    first = swap(table, "mine")
    with pytest.raises(CommitConflictError) as caught:
        swap(table, "theirs")
    assert caught.value.retryable
    assert (first.version, table.latest_version, names(lance.dataset(table.uri))) == (2, 2, ["mine"])


def test_overwrite_with_retries_undoes_concurrent_commits(table: Any) -> None:
    """Why there are none."""
    LanceDataset.commit(table, Op.Append(fragments(table, "mine")), read_version=1)
    assert swap(table, "theirs", retries=20).version == 3
    assert names(lance.dataset(table.uri)) == ["theirs"]


@pytest.mark.parametrize("kind", ["append", "delete"])
def test_other_operations_are_rebased_even_without_retries(table: Any, kind: str) -> None:
    """Why a swap is an overwrite, and nothing else."""
    operation = (
        Op.Append(fragments(table, "late")) if kind == "append" else Op.Delete([without(table, "a")], [], "id = 'a'")
    )
    LanceDataset.commit(table, Op.Append(fragments(table, "early")), read_version=1)
    done = LanceDataset.commit(table, operation, read_version=1, max_retries=0)
    assert done.version == 3
    assert "early" in names(done)


def test_repeated_transaction_returns_its_own_version(table: Any) -> None:
    transaction = Transaction(1, Op.Overwrite(table.lance_schema, fragments(table, "mine")), uuid=a_uuid())
    copy = pickle.loads(pickle.dumps(transaction))
    first = LanceDataset.commit(table, transaction, max_retries=0)
    assert LanceDataset.commit(table, copy, max_retries=0).version == first.version == 2
    swap(first, "later")
    again = LanceDataset.commit(table, copy, max_retries=0)
    assert (again.version, names(again), again.latest_version) == (2, ["mine"], 3)


def test_a_swap_into_a_gap_succeeds_and_is_not_the_newest(table: Any) -> None:
    """Why a swap is acknowledged only after a look at the newest version."""
    newest = swap(swap(table, "two"), "three")
    Path(table.uri, "_versions", f"{(1 << 64) - 1 - 2}.manifest").unlink()
    late = swap(table, "late")
    assert (late.version, late.latest_version) == (2, newest.version)
    assert names(lance.dataset(table.uri)) == ["three"]


def test_old_handle_reports_the_newest_version(table: Any) -> None:
    assert table.latest_version == 1
    swap(swap(table, "two"), "three")
    assert (table.version, table.latest_version) == (1, 3)


def test_version_hint_is_ignored_on_a_disk(table: Any) -> None:
    swap(swap(table, "two"), "three")
    hint = Path(table.uri, "_versions", "latest_version_hint.json")
    for text in ('{"version":1}', '{"version":99}', ""):
        hint.write_text(text)
        assert lance.dataset(table.uri).version == table.latest_version == 3


def test_a_swap_keeps_the_stamp_only_with_the_schema_of_its_base(table: Any) -> None:
    assert swap(table, "mine").schema.metadata == STAMP
    operation = Op.Overwrite(SCHEMA.remove_metadata(), fragments(table, "mine"))
    lost = LanceDataset.commit(table.uri, operation, read_version=2, max_retries=0)
    assert not lost.schema.metadata


def test_fragment_ids_continue_after_an_overwrite(table: Any) -> None:
    """A fragment id is never used twice in one line of versions."""
    second = swap(table, "two")
    third = detached(second, Op.Append(fragments(second, "three")))
    assert [f.fragment_id for f in second.get_fragments()] == [1]
    assert [f.fragment_id for f in third.get_fragments()] == [1, 2]


# Staging.


def test_staging_does_not_move_the_head(table: Any) -> None:
    staged = fragments(table, "new")
    marked = without(table, "a")
    assert table.latest_version == 1
    assert names(lance.dataset(table.uri)) == ["a", "b", "c", "d"]
    assert len(staged) == 1
    assert marked.num_deletions == 1


def test_a_fragment_without_rows_left_is_reported_as_none(table: Any) -> None:
    assert table.get_fragment(0).delete_rows([0, 1, 2, 3]) is None


def test_an_address_is_a_fragment_and_an_offset(table: Any) -> None:
    more = detached(table, Op.Append(fragments(table, "e", "f")))
    assert addresses(more, "b", "f") == [1, 1 << 32 | 1]


def test_fragments_pass_through_json(table: Any) -> None:
    """What an intent keeps of a staged change."""
    fresh = fragments(table, "a")[0]
    fresh.row_id_meta = RowIdSequence([0]).to_inline_metadata()
    for one in (fresh, without(table, "a")):
        text = json.dumps(one.to_json())
        assert FragmentMetadata.from_json(text).to_json() == one.to_json()
    revived = FragmentMetadata.from_json(json.dumps(fresh.to_json()))
    done = detached(table, Op.Update(updated_fragments=[without(table, "a")], new_fragments=[revived]))
    assert row_ids(done)["a"] == 0


def test_insert_update_and_delete_are_one_operation(table: Any) -> None:
    fresh = fragments(table, "b", "new")
    fresh[0].row_id_meta = RowIdSequence([1]).to_inline_metadata()
    marked = without(table, "a", "b")
    done = detached(table, Op.Update(updated_fragments=[marked], new_fragments=fresh, update_mode=""))
    # Given ids are for the leading rows; the others get new ones.
    assert row_ids(done) == {"b": 1, "c": 2, "d": 3, "new": 4}


def row_ids(ds: Any) -> dict[str, int]:
    found = ds.to_table(with_row_id=True).to_pylist()
    return {one["id"]: one["_rowid"] for one in found}


def test_given_row_ids_are_kept_and_not_checked(table: Any) -> None:
    """Why a row id is given only to a row whose old copy goes in the same operation."""
    fresh = fragments(table, "impostor")
    fresh[0].row_id_meta = RowIdSequence([2]).to_inline_metadata()
    done = detached(table, Op.Update(new_fragments=fresh, update_mode=""))
    assert row_ids(done) == {"a": 0, "b": 1, "c": 2, "d": 3, "impostor": 2}


def test_staged_merge_loses_its_key(tmp_path: Path) -> None:
    """Why ids are looked up by us: two writers of one new id both succeed."""
    key = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema([pa.field("id", pa.string(), nullable=False, metadata=key)])
    ds = lance.write_dataset(pa.table({"id": ["a"]}, schema=schema), tmp_path / "t")
    staged = [
        ds.merge_insert("id")
        .when_not_matched_insert_all()
        .execute_uncommitted(pa.table({"id": ["new"]}, schema=schema))[0]
        for _ in range(2)
    ]
    for transaction in staged:
        ds = LanceDataset.commit(ds.uri, transaction, max_retries=0)
    assert names(ds) == ["a", "new", "new"]


def test_schema_from_arrow_gets_new_field_ids(table: Any) -> None:
    """Why a schema is derived from the one of the table, and never from Arrow."""
    kept = LanceSchema.from_pyarrow(pa.schema([("n", pa.int64())]))
    assert [(f.name(), f.id()) for f in table.lance_schema.fields()] == [("id", 0), ("n", 1)]
    assert [(f.name(), f.id()) for f in kept.fields()] == [("n", 0)]


# Detached versions.


def test_detached_commit_does_not_move_the_head(table: Any) -> None:
    one = detached(table, Op.Append(fragments(table, "e")))
    two = detached(one, Op.Append(fragments(one, "f")))
    assert table.latest_version == 1
    assert names(lance.dataset(table.uri)) == ["a", "b", "c", "d"]
    assert names(lance.dataset(table.uri, version=two.version)) == ["a", "b", "c", "d", "e", "f"]


def test_detached_version_has_a_large_number_and_its_own_file(table: Any) -> None:
    version = detached(table, Op.Append(fragments(table, "e"))).version
    assert 1 << 63 <= version < 1 << 64
    found = {path.name for path in Path(table.uri, "_versions").iterdir()}
    assert {f"d{version}.manifest", f"{(1 << 64) - 2}.manifest"} <= found


def test_a_detached_commit_checks_no_conflicts(table: Any) -> None:
    """Why `replays` proves that a change fits where it is committed."""
    mine, theirs = without(table, "a"), without(table, "b")
    one = detached(table, Op.Update(updated_fragments=[mine], update_mode=""))
    both = detached(one, Op.Update(updated_fragments=[theirs], update_mode=""))
    assert names(one) == ["b", "c", "d"]
    assert names(both) == ["a", "c", "d"]  # the first deletion was undone


def test_an_append_can_be_committed_again_on_a_newer_version(table: Any) -> None:
    """What a replay is: the same files, other fragment ids and row ids."""
    staged = Op.Append(fragments(table, "late"))
    early = detached(table, Op.Append(fragments(table, "early")))
    alone, after = detached(table, staged), detached(early, staged)
    assert row_ids(alone)["late"] == row_ids(early)["early"] == 4
    assert row_ids(after) == {"a": 0, "b": 1, "c": 2, "d": 3, "early": 4, "late": 5}
    assert [f.fragment_id for f in after.get_fragments()] == [0, 1, 2]


def test_a_detached_commit_needs_its_retries(table: Any) -> None:
    with pytest.raises(OSError, match="after 0 retries"):
        LanceDataset.commit(table, Op.Append(fragments(table, "e")), read_version=1, detached=True, max_retries=0)


@pytest.mark.parametrize("verb", ["delete", "update", "insert", "create_scalar_index"])
def test_methods_that_commit_by_themselves_fail_on_a_detached_version(table: Any, verb: str) -> None:
    one = detached(table, Op.Append(fragments(table, "e")))
    arguments: dict[str, Sequence[Any]] = {
        "delete": ("id = 'a'",),
        "update": ({"n": "1"},),
        "insert": (rows("f"),),
        "create_scalar_index": ("id", "BTREE"),
    }
    with pytest.raises((OSError, RuntimeError, ValueError)):
        getattr(one, verb)(*arguments[verb])
    assert names(lance.dataset(table.uri, version=one.version)) == ["a", "b", "c", "d", "e"]


def test_lance_cleanup_removes_files_of_detached_versions(table: Any) -> None:
    """Why Lance's cleanup is never called on a data table."""
    one = detached(table, Op.Append(fragments(table, "e")))
    table.cleanup_old_versions(timedelta(0), delete_unverified=True)
    manifest = Path(table.uri, "_versions", f"d{one.version}.manifest")
    assert manifest.exists()
    with pytest.raises((OSError, ValueError)):
        names(lance.dataset(table.uri, version=one.version))


def test_new_table_has_no_automatic_cleanup(table: Any) -> None:
    assert table.config() == {}


# Opening.


def test_absent_table_raises_an_unspecific_error_type(tmp_path: Path) -> None:
    """Why `Store.open` proves absence by a listing."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        lance.dataset(tmp_path / "nothing")
    assert type(caught.value) is ValueError


def test_unreachable_store_raises_the_same_error_type() -> None:
    options = {
        "aws_endpoint": "http://127.0.0.1:1",
        "allow_http": "true",
        "aws_region": "us-east-1",
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
        "client_max_retries": "0",
    }
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        lance.dataset("s3://bucket/t", storage_options=options)
    assert type(caught.value) is ValueError
