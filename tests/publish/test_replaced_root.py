"""A root that is removed and recreated: equal version numbers never confuse the two graphs."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import NotFound, OmnigraphError, ReadSetConflict
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.manifest import read_manifest
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage.store import open_store
from tests.rig.independent_writers import apart, held, write_while
from tests.rig.invariants import check_invariants
from tests.rig.plugin import S3
from tests.rig.writes import PERSON, append, init_small, read_branch, read_graph, write

OLD, NEW = "node Person { n: I64? }", "node Person { n: I64? }\nnode City { n: I64? }"


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "g")


def remove(root: str) -> None:
    """Everything of a root, behind the back of whoever has it open."""
    if "://" not in root:
        shutil.rmtree(root)
        return
    store = open_store(root)
    for one in store.objects.list(""):
        store.objects.remove(one.name)


def make(root: str, *rows: str) -> BranchState:
    """A graph with one commit for each row, by a process that knows nothing of others."""
    init_small(root)
    line = apart(root)
    for row in rows:
        write(line, append({row: 1}))
    return line


def again(root: str, *rows: str) -> Callable[[], object]:
    """The root is removed and made again, with other rows."""

    def run() -> None:
        remove(root)
        make(root, *rows)

    return run


def rows_of(root: str) -> list[str]:
    return [name for name, _ in read_graph(root)["main"][PERSON]]


def test_init_and_open_show_the_recreated_graph(root: str) -> None:
    old = omnigraph.init(root, OLD)
    shutil.rmtree(root)
    new = omnigraph.init(root, NEW)
    assert new.head.id != old.head.id
    assert sorted(new.snapshot.tables) == ["node:City", "node:Person"]
    assert omnigraph.open(root).head.id == new.head.id
    with pytest.raises(ReadSetConflict) as caught:
        old.refresh()
    assert caught.value.member == "graph"
    assert "open the graph again" in (caught.value.hint or "")


@pytest.mark.parametrize("rows", [(), ("x",), ("x", "y"), ("x", "y", "z")])
def test_graph_recreated_by_another_process_is_detected(root: str, rows: tuple[str, ...]) -> None:
    old = make(root, "a")
    again(root, *rows)()
    with pytest.raises(ReadSetConflict):
        old.refresh()
    with pytest.raises(ReadSetConflict):  # and it stays so
        old.last_known()
    line = open_branch(open_store(root, durability="os"), "main")
    assert [name for name, _ in read_branch(line)[PERSON]] == list(rows)


def test_shared_branch_state_is_replaced_for_the_recreated_graph(root: str) -> None:
    make(root, "a")
    old = open_branch(open_store(root, durability="os"), "main")
    make_elsewhere = again(root, "x")
    make_elsewhere()
    new = open_branch(open_store(root, durability="os"), "main")
    assert new is not old
    write(new, append({"y": 1}))
    assert rows_of(root) == ["x", "y"]


def refused(line: BranchState) -> None:
    with pytest.raises(OmnigraphError) as caught:
        write(line, append({"b": 1}))
    assert isinstance(caught.value, ReadSetConflict)
    assert caught.value.effect == "none"


@pytest.mark.parametrize("rows", [(), ("x",), ("x", "y"), ("x", "y", "z")])
@pytest.mark.parametrize("looked", [True, False])
def test_old_handle_cannot_write_to_the_recreated_graph(root: str, rows: tuple[str, ...], looked: bool) -> None:
    make(root, "a")
    old = apart(root)
    old.last_known()
    if looked:
        old.refresh()
    again(root, *rows)()
    refused(old)
    refused(old)
    assert rows_of(root) == list(rows)
    check_invariants(root)
    write(apart(root), append({"next": 1}))
    assert rows_of(root) == sorted([*rows, "next"])


@pytest.mark.parametrize("rows", [(), ("x",)])
def test_planned_write_does_not_reach_the_recreated_graph(root: str, rows: tuple[str, ...]) -> None:
    old = make(root, "a")
    with pytest.raises(ReadSetConflict):
        write_while(old, append({"b": 1}), again(root, *rows))
    assert rows_of(root) == list(rows)
    check_invariants(root)


@pytest.mark.parametrize("rows", [(), ("x",)])
def test_swap_that_lands_in_the_recreated_graph_is_withdrawn(
    root: str, rows: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make(root, "a")
    with held(monkeypatch, again(root, *rows)):
        refused(old)
    assert rows_of(root) == list(rows)
    write(apart(root), append({"next": 1}))
    assert rows_of(root) == sorted([*rows, "next"])
    check_invariants(root)


@pytest.mark.parametrize(
    ("rows", "looked"), [(("x",), False), (("x",), True), pytest.param((), True, marks=pytest.mark.full)]
)
def test_old_handle_cannot_write_to_the_recreated_graph_on_s3(s3: S3, rows: tuple[str, ...], looked: bool) -> None:
    make(s3.url, "a")
    old = apart(s3.url)
    old.last_known()
    if looked:
        old.refresh()
    again(s3.url, *rows)()
    refused(old)
    with pytest.raises(ReadSetConflict):
        old.refresh()
    assert rows_of(s3.url) == list(rows)
    write(apart(s3.url), append({"next": 1}))
    assert rows_of(s3.url) == sorted([*rows, "next"])
    check_invariants(s3.url)


def test_recreated_graph_with_an_equal_version_number_is_detected_on_s3(s3: S3) -> None:
    make(s3.url, "a")
    old = apart(s3.url)
    old.last_known()  # read once, and never asked about since
    again(s3.url, "x")()
    with pytest.raises(ReadSetConflict):
        old.refresh()


def test_write_does_not_recreate_a_removed_root(root: str) -> None:
    old = make(root, "a")
    shutil.rmtree(root)
    with pytest.raises(NotFound):
        write(old, append({"b": 1}))
    with pytest.raises(NotFound):
        omnigraph.open(root)
    omnigraph.init(root, NEW)


def test_write_does_not_recreate_a_removed_root_on_s3(s3: S3) -> None:
    old = make(s3.url, "a")
    old.refresh()
    remove(s3.url)
    with pytest.raises(NotFound):
        write(old, append({"b": 1}))
    with pytest.raises(NotFound):
        omnigraph.open(s3.url)


def test_root_replaced_by_its_copy_accepts_writes(root: str, tmp_path: Path) -> None:
    line = make(root, "a")
    line.refresh()
    shutil.copytree(root, tmp_path / "copy")
    shutil.rmtree(root)
    (tmp_path / "copy").rename(root)
    write(apart(root), append({"b": 1}))
    write(line, append({"c": 1}))
    assert rows_of(root) == ["a", "b", "c"]
    check_invariants(root)


def test_root_restored_from_an_older_copy_is_detected(root: str, tmp_path: Path) -> None:
    line = make(root, "a")
    shutil.copytree(root, tmp_path / "backup")
    write(line, append({"b": 1}))
    shutil.rmtree(root)
    (tmp_path / "backup").rename(root)
    refused(line)
    with pytest.raises(ReadSetConflict):
        line.refresh()
    assert rows_of(root) == ["a"]


def test_idempotency_key_of_the_old_graph_is_not_matched(root: str) -> None:
    make(root)
    old, key = apart(root), CommitMetadata(idempotency_key="k", request_hash="r")
    write(old, append({"a": 1}), signature=key)
    again(root)()
    with pytest.raises(ReadSetConflict):
        write(old, append({"a": 1}), signature=key)
    assert rows_of(root) == []


def test_deletion_by_an_old_handle_does_not_close_a_new_branch(root: str) -> None:
    make(root, "a")
    store = open_store(root, durability="os")
    create_branch(store, "f", open_branch(store, "main"))
    again(root, "x")()
    with pytest.raises(NotFound):
        delete_branch(store, "f")
    assert not read_manifest(open_store(root)).state.head.closed
    check_invariants(root)
