"""A newest manifest version torn by a power loss is set aside once, by a writable open."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.api import opening as graphs
from omnigraph.errors import GraphNotInitialized, StorageError
from omnigraph.history.recovery_records import list_recovery_records
from omnigraph.history.torn_manifests import set_aside_torn_versions
from omnigraph.storage import layout, torn_versions
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import open_store
from omnigraph.storage.torn_versions import TornVersionError
from tests.rig.invariants import check_invariants, files
from tests.rig.writes import append, init_small, line_at, make_graph, read_graph, write

Tear = Callable[[bytes], bytes]
TEARS: dict[str, Tear] = {
    "empty": lambda _: b"",
    "zeros": lambda body: bytes(len(body)),
    "half": lambda body: body[: len(body) // 2],
    "holes": lambda body: body[:512] + bytes(512) + body[1024:],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A graph with three writes, of which no line is held any more."""
    init_small(tmp_path / "graph")
    line = line_at(tmp_path / "graph")
    for number in range(3):
        write(line, append({f"p{number}": number}))
    return tmp_path / "graph"


def version_file(root: Path, version: int) -> Path:
    """The file of a manifest version of main."""
    return root / "__manifest" / "_versions" / f"{(1 << 64) - 1 - version:020}.manifest"


def tear(root: Path, version: int, how: Tear) -> None:
    """Damage the file of a manifest version."""
    path = version_file(root, version)
    path.write_bytes(how(path.read_bytes()))


@pytest.mark.parametrize("how", TEARS.values(), ids=TEARS.keys())
def test_a_torn_newest_version_is_set_aside_by_a_read_write_open(root: Path, how: Tear) -> None:
    write(line_at(root), append({"never": 9}))
    tear(root, 5, how)
    before = files(open_store(str(root)))
    with pytest.raises(TornVersionError, match="power loss"):
        graphs.open(root, read_only=True)
    assert files(open_store(str(root))) == before

    assert graphs.open(root).table("Person").count_rows() == 3
    (one,) = list_recovery_records(open_store(str(root)))
    assert (one.kind, one.branch) == ("set_aside", "main")
    assert len(list((root / layout.ASIDE).iterdir())) == 1
    assert write(line_at(root), append({"next": 1})) is not None
    graphs.open(root)
    assert len(list_recovery_records(open_store(str(root)))) == 1
    check_invariants(root)


def test_complete_but_corrupt_version_is_damage_and_kept(root: Path) -> None:
    write(line_at(root), append({"acknowledged": 9}))
    tear(root, 5, lambda body: body[:-40] + b"\xff" * 20 + body[-20:])
    for read_only in (True, False):
        with pytest.raises(StorageError, match="__manifest is damaged"):
            graphs.open(root, read_only=read_only)
    assert version_file(root, 5).exists()
    assert list_recovery_records(open_store(str(root))) == []


def test_torn_version_below_the_newest_is_kept(root: Path) -> None:
    tear(root, 3, TEARS["empty"])
    assert graphs.open(root).table("Person").count_rows() == 3
    assert version_file(root, 3).exists()
    assert list_recovery_records(open_store(str(root))) == []


@pytest.mark.parametrize("how", TEARS.values(), ids=TEARS.keys())
@pytest.mark.parametrize("count", [2, 3])
def test_consecutive_torn_versions_are_set_aside(root: Path, how: Tear, count: int) -> None:
    for number in range(count):
        write(line_at(root), append({f"never{number}": 9}))
    for number in range(count):
        tear(root, 5 + number, TEARS["empty"] if number else how)
    before = files(open_store(str(root)))
    with pytest.raises(TornVersionError, match=f"version {4 + count} .*power loss"):
        graphs.open(root, read_only=True)
    assert files(open_store(str(root))) == before

    assert graphs.open(root).table("Person").count_rows() == 3
    outcomes = list_recovery_records(open_store(str(root)))
    assert [one.kind for one in outcomes] == ["set_aside"] * count
    assert len(list((root / layout.ASIDE).iterdir())) == count
    made = write(line_at(root), append({"next": 1}))
    assert made is not None
    assert made.manifest_version == 5
    check_invariants(root)


def test_interrupted_set_aside_is_continued_by_the_next_open(root: Path) -> None:
    for number in (5, 6):
        write(line_at(root), append({f"never{number}": 9}))
    for number in (5, 6):
        tear(root, number, TEARS["empty"])
    store = open_store(str(root), durability="os")
    # The record and the move of the newest version; then the process ends.
    fault = Fault(3, "before", KeyboardInterrupt())
    with store.effects.failing(fault), pytest.raises(KeyboardInterrupt):
        set_aside_torn_versions(store, "main", "main")
    assert not version_file(root, 6).exists()
    assert version_file(root, 5).exists()
    assert graphs.open(root).table("Person").count_rows() == 3
    assert len(list_recovery_records(store)) == 2


@pytest.mark.parametrize("read_only", [True, False])
def test_torn_versions_without_a_readable_base_are_kept(root: Path, read_only: bool) -> None:
    for version in (4, 3):
        tear(root, version, TEARS["empty"])
    version_file(root, 2).unlink()
    before = files(open_store(str(root)))
    with pytest.raises(StorageError, match="damaged") as caught:
        graphs.open(root, read_only=read_only)
    assert not isinstance(caught.value, TornVersionError)
    assert (caught.value.kind, caught.value.effect) == ("permanent", "none")
    assert files(open_store(str(root))) == before


def test_unreadable_files_are_not_torn(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tear(root, 4, TEARS["empty"])
    real = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.suffix == ".manifest":
            raise PermissionError(13, "denied")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert torn_versions.find_torn_version(open_store(str(root)), "__manifest") is None


@pytest.mark.parametrize("read_only", [True, False])
def test_a_missing_fragment_of_the_newest_version_is_damage(root: Path, read_only: bool) -> None:
    data = root / "__manifest" / "data"
    max(data.iterdir(), key=lambda one: one.stat().st_mtime_ns).unlink()
    with pytest.raises(StorageError) as caught:
        graphs.open(root, read_only=read_only)
    assert (caught.value.kind, caught.value.effect) == ("permanent", "none")
    assert version_file(root, 4).exists()


def test_torn_first_version_is_an_incomplete_init(tmp_path: Path) -> None:
    init_small(tmp_path / "graph")
    tear(tmp_path / "graph", 1, TEARS["empty"])
    with pytest.raises(GraphNotInitialized):
        graphs.open(tmp_path / "graph")
    make_graph(open_store(str(tmp_path / "graph"), durability="os"), force=True)
    assert read_graph(tmp_path / "graph")["main"]["node:Person"] == []


def test_second_opener_keeps_a_reused_version_number(root: Path) -> None:
    store = open_store(str(root))
    tear(root, 4, TEARS["empty"])
    assert torn_versions.find_torn_version(store, "__manifest") == 4
    # Both openers have seen version 4 torn; the first sets it aside and publishes a new one.
    graphs.open(root)
    commit = write(line_at(root), append({"new": 4}))
    assert commit is not None
    assert commit.manifest_version == 4
    assert torn_versions.set_aside_version(store, "__manifest", 4, lambda _: pytest.fail("recorded")) is None
    check_invariants(root, acknowledged=[commit])


def test_interrupted_set_aside_leaves_one_record(root: Path) -> None:
    store = open_store(str(root))
    tear(root, 4, TEARS["empty"])

    class CutError(Exception):
        """The process ended."""

    def cut(event: str) -> None:
        from omnigraph.history.recovery_records import record_torn_version

        record_torn_version(store, event, "main")
        raise CutError

    with pytest.raises(CutError):
        torn_versions.set_aside_version(store, "__manifest", 4, cut)
    graphs.open(root)
    assert [one.kind for one in list_recovery_records(store)] == ["set_aside"]


def test_transient_failure_sets_nothing_aside(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(24, os.strerror(24))

    monkeypatch.setattr("lance.dataset", refuse)
    with pytest.raises(StorageError) as caught:
        graphs.open(root)
    assert not isinstance(caught.value, TornVersionError)
    monkeypatch.undo()
    assert version_file(root, 4).exists()
    assert graphs.open(root).table("Person").count_rows() == 3
