"""Facts about Lance versions and files that storage relies on or avoids.

A failure here after an upgrade of pylance says that a rule of `storage` lost its reason or its
ground: find the rule before changing the test.
"""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset
from lance import LanceOperation as Op
from lance.blob import Blob, blob_array, blob_field
from lance.fragment import RowIdSequence, write_fragments
from lance.lance import _Session as Session

from omnigraph.storage.large_blobs import blob_file_name

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


def rows(*names: str, n: int = 0) -> pa.Table:
    return pa.table({"id": list(names), "n": [n] * len(names)}, schema=SCHEMA)


def fragments(ds: Any, content: pa.Table) -> list[Any]:
    found: list[Any] = write_fragments(
        content, ds, mode="append", data_storage_version="2.2", enable_stable_row_ids=True
    )
    return found


def appended(ds: Any, *names: str, read_version: int | None = None) -> Any:
    operation = Op.Append(fragments(ds, rows(*names)))
    return LanceDataset.commit(ds, operation, read_version=read_version or ds.version, detached=True)


def found(ds: Any) -> list[str]:
    return sorted(ds.to_table()["id"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Version 1 of a table with two rows."""
    return lance.write_dataset(rows("a", "b"), tmp_path / "t", enable_stable_row_ids=True, data_storage_version="2.2")


# Which version a detached commit stands on.


def test_detached_commit_is_based_on_its_handle_not_its_read_version(table: Any) -> None:
    """Why a change is committed with a handle that was opened at its base."""
    one = appended(table, "c")
    assert found(appended(one, "d", read_version=1)) == ["a", "b", "c", "d"]


def test_detached_commit_without_a_handle_is_based_on_the_head(table: Any) -> None:
    one = appended(table, "c")
    operation = Op.Append(fragments(one, rows("d")))
    alone = LanceDataset.commit(table.uri, operation, read_version=1, detached=True)
    assert found(alone) == ["a", "b", "d"]


def test_sibling_versions_share_row_ids_and_one_session_separates_them(table: Any) -> None:
    """Why row ids and fragment ids mean something within one line of versions only."""
    session = Session()
    versions = [appended(table, name).version for name in ("mine", "theirs")]
    both = [lance.dataset(table.uri, version=v, session=session) for v in versions]
    for _ in range(2):
        seen = [one.to_table(filter="_rowid = 2", with_row_id=True).to_pylist() for one in both]
        assert [[row["id"] for row in each] for each in seen] == [["mine"], ["theirs"]]
        assert [[f.fragment_id for f in one.get_fragments()] for one in both] == [[0, 1], [0, 1]]


def test_row_versions_are_unordered(table: Any) -> None:
    """Why version columns and `delta` decide nothing: after a detached version they are random."""
    two = appended(appended(table, "c"), "d")
    column = "_row_created_at_version"
    seen = {one["id"]: one[column] for one in two.to_table(columns=["id", column]).to_pylist()}
    assert (seen["a"], seen["c"]) == (1, 2)
    assert seen["d"] > 1 << 63
    assert seen["d"] != two.version


def test_given_row_ids_do_not_move_the_next_one(table: Any) -> None:
    """Why ids are never made up: a later row gets the same."""
    fresh = fragments(table, rows("made up"))
    fresh[0].row_id_meta = RowIdSequence([3]).to_inline_metadata()
    one = LanceDataset.commit(table, Op.Update(new_fragments=fresh, update_mode=""), read_version=1, detached=True)
    two = appended(appended(one, "c"), "d").to_table(with_row_id=True).to_pylist()
    ids = [row["_rowid"] for row in two]
    assert len(ids) != len(set(ids))


# Which files belong to a version.


def test_the_files_of_a_detached_version_are_not_tracked(table: Any) -> None:
    """Why live files are found by our own walk over versions."""
    one = appended(table, "c")
    own = {f.path for fragment in one.get_fragments() for f in fragment.metadata.files}
    tracked = {Path(path).name for path in one.tracked_files().read_all()["path"].to_pylist()}
    there = {path.name for path in Path(table.uri, "data").iterdir()}
    assert own <= there
    assert not own <= tracked


def test_large_blobs_are_in_files_that_no_fragment_names(tmp_path: Path) -> None:
    """Why everything below `data/<stem>/` belongs to a data file."""
    schema = pa.schema([pa.field("id", pa.string()), blob_field("pic")])
    content = pa.table([pa.array(["a"]), blob_array([b"y" * 6_000_000])], schema=schema)
    ds = lance.write_dataset(content, tmp_path / "t", data_storage_version="2.2")
    (data,) = ds.get_fragments()[0].metadata.files
    beside = list((tmp_path / "t" / "data" / Path(data.path).stem).iterdir())
    assert [path.suffix for path in beside] == [".blob"]
    shutil.rmtree(beside[0].parent)
    (blob,) = lance.dataset(tmp_path / "t").take_blobs("pic", indices=[0])
    assert blob is not None
    with pytest.raises((OSError, ValueError)):
        blob.read()


def test_blobs_are_copied_from_files(tmp_path: Path) -> None:
    """Why a large blob needs no memory: Lance copies the file, also through a link, and names the copy by an id."""
    schema = pa.schema([pa.field("id", pa.string()), blob_field("pic")])
    ds = lance.write_dataset(schema.empty_table(), tmp_path / "t", data_storage_version="2.2")
    contents = [b"y" * 6_000_000, b"small", b""]
    for number, content in enumerate(contents):
        (tmp_path / f"file{number}").write_bytes(content)
        (tmp_path / f"link{number}").symlink_to(tmp_path / f"file{number}")
    blobs = blob_array([Blob.from_uri((tmp_path / f"link{number}").as_uri()) for number in range(3)])
    content = pa.table([pa.array(["a", "b", "c"]), blobs], schema=schema)
    written = write_fragments(content, ds, mode="append", data_storage_version="2.2", external_blob_mode="ingest")
    ds = LanceDataset.commit(ds, Op.Append(written), read_version=ds.version)
    for number in range(3):
        (tmp_path / f"file{number}").unlink()
    assert [blob.read() for blob in ds.take_blobs("pic", indices=[0, 1, 2]) if blob is not None] == contents
    described = ds.to_table(columns=["pic"])["pic"].to_pylist()
    assert [(blob["kind"], blob["position"], blob["size"], blob["blob_id"]) for blob in described[:2]] == [
        (2, 0, 6_000_000, 1),
        (0, 0, 5, 0),
    ]
    stem = Path(ds.get_fragments()[0].metadata.files[0].path).stem
    copy = tmp_path / "t" / "data" / stem / blob_file_name(1)
    assert copy.read_bytes() == contents[0]


def test_a_tag_does_not_protect_a_detached_version(table: Any) -> None:
    """Why a tag of ours is a branch that nobody publishes to."""
    one = appended(table, "c")
    table.tags.create("kept", one.version)
    table.cleanup_old_versions(timedelta(0), delete_unverified=True)
    with pytest.raises((OSError, ValueError)):
        found(lance.dataset(table.uri, version=one.version))


def test_files_of_a_killed_writer_are_harmless(table: Any) -> None:
    """On a disk a version is a finished file that is linked to its name."""
    place = Path(table.uri, "_versions")
    (place / f"{(1 << 64) - 1 - 2}.manifest#1").write_bytes(b"")
    assert lance.dataset(table.uri).version == 1
    operation = Op.Overwrite(table.lance_schema, fragments(table, rows("next")))
    done = LanceDataset.commit(table, operation, read_version=1, max_retries=0)
    assert (done.version, found(lance.dataset(table.uri))) == (2, ["next"])


def test_transactions_are_not_needed_to_read(table: Any) -> None:
    """Why a copy and a sweep may leave them out."""
    one = appended(table, "c")
    shutil.rmtree(Path(table.uri, "_transactions"))
    assert found(lance.dataset(table.uri, version=one.version)) == ["a", "b", "c"]
    assert found(appended(lance.dataset(table.uri, version=one.version), "d"))[-1] == "d"


def test_a_moved_table_reads_the_same(table: Any, tmp_path: Path) -> None:
    """Names inside a table are relative to it."""
    one = appended(table, "c")
    shutil.move(table.uri, tmp_path / "far")
    assert found(lance.dataset(tmp_path / "far", version=one.version)) == ["a", "b", "c"]


def test_a_branch_of_lance_does_not_survive_a_move(table: Any, tmp_path: Path) -> None:
    """Why branches are ours: Lance's hold absolute paths."""
    branch = table.create_branch("f")
    assert found(branch) == ["a", "b"]
    shutil.move(table.uri, tmp_path / "far")
    with pytest.raises((OSError, ValueError)):
        found(lance.dataset(tmp_path / "far").checkout_version(("f", None)))
