"""Lost and damaged ref objects: reported, kept by cleanup, restored by repair, or dropped."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import AlreadyExists, BranchNotFound, InputError, NotFound, StorageError
from omnigraph.history import branches, refs
from omnigraph.history.state import GraphState
from omnigraph.maintenance.finding import Checkup, IntegrityFinding
from omnigraph.publish import branch_lifecycle
from omnigraph.publish.closing_version import publish_closing_version
from omnigraph.storage.store import open_store
from tests.cli.conftest import Program
from tests.cli.conftest import omnigraph as shell  # noqa: F401 - a fixture
from tests.rig.invariants import check_invariants, files
from tests.rig.plugin import S3

SCHEMA = "node P { k: String @key  n: I32? }"
BRANCHES = {"used": 2, "fresh": 1, "renamed": 2, "moved": 1, "again": 1}  # rows of each
TAG = "v1"
ALL = [*BRANCHES, TAG]
QUERY = "match { $p: P } return { $p.k }"


def add(graph: Graph, key: str) -> None:
    graph.load({"P": [{"k": key}]}, mode="append")


def fill(graph: Graph) -> None:
    """Branches of every history, and a tag."""
    add(graph, "a")
    add(graph.branches.create("used"), "used")
    graph.branches.create("fresh")
    add(graph.branches.create("former"), "former")
    graph.branches.rename("former", "renamed")
    graph.branches.create("still")
    graph.branches.rename("still", "moved")
    for _ in range(2):
        graph.branches.create("again")
        graph.branches.delete("again", force=True)
    graph.branches.create("again")
    graph.tag(TAG, message="first")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("names") / "g"
    fill(omnigraph.init(place, SCHEMA, durability="os"))
    return place


@pytest.fixture
def root(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "g"))


def open_again(root: Path, branch: str = "main") -> Graph:
    return omnigraph.open(root, branch=branch, durability="os")


def ref_objects(root: Path, name: str) -> list[Path]:
    return sorted(Path(root, "_refs", "tags" if name == TAG else "branches", name).iterdir())


def lose_ref(root: Path, name: str) -> str:
    """Remove the ref object that opens a name; returns the manifest it named."""
    path = ref_objects(root, name)[-1]
    ulid = json.loads(path.read_text())["ulid"]
    path.unlink()
    return str(ulid)


def check(root: Path) -> Checkup:
    return omnigraph.open(root, read_only=True).maintenance.check(quick=True)


def ref_findings(found: Checkup) -> list[IntegrityFinding]:
    return [one for one in found.findings if one.kind in ("ref", "manifest")]


def keys(root: Path, name: str) -> list[str]:
    graph = open_again(root)
    shown = graph.at(TAG) if name == TAG else open_again(root, name)
    return sorted(row["p.k"] for row in shown.query(QUERY))


def use_for_everything(root: Path, name: str) -> None:
    """Write, merge, delete, create again: all that a branch or a tag is for."""
    graph = open_again(root)
    if name == TAG:
        graph.tags.delete(TAG)
        graph.tag(TAG)
    else:
        add(open_again(root, name), "more")
        graph.merge(name)
        graph.branches.delete(name, force=True)
        assert name not in graph.branches
        add(graph.branches.create(name), "even more")
    assert not check(root).findings
    check_invariants(root)


@pytest.mark.parametrize("name", ALL)
def test_a_lost_ref_object_is_reported_spared_and_restored(root: Path, name: str) -> None:
    before = keys(root, name)
    ulid = lose_ref(root, name)
    with pytest.raises((NotFound, InputError)):
        keys(root, name)
    (finding,) = check(root).findings
    assert (finding.kind, finding.severity) == ("ref", "error")
    assert finding.branch == (f"tag {name}" if name == TAG else name)
    assert ulid in finding.reason
    manifest = {one for one in files(open_store(str(root))) if ulid in one}
    graph = open_again(root)
    done = graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    assert [(one["manifest"], one["name"]) for one in done.unnamed] == [(f"__branches/{ulid}", name)]
    assert manifest <= set(files(open_store(str(root))))
    left = files(open_store(str(root)))
    (row,) = graph.maintenance.repair().names
    assert (row.action, row.name) == ("preview", name)
    assert files(open_store(str(root))) == left
    assert str(row.commit_id) in finding.reason
    repaired = graph.maintenance.repair(confirm=True)
    assert [(one.action, one.name) for one in repaired.names] == [("restored", name)]
    assert not repaired.damage
    assert not check(root).findings
    assert keys(root, name) == before
    assert graph.maintenance.operations.recoveries()[-1].operation == "restore_name"
    use_for_everything(root, name)


def test_repair_command_restores_all_lost_refs(root: Path, shell: Program) -> None:  # noqa: F811
    for name in ALL:
        lose_ref(root, name)
    ended = shell("check", str(root))
    assert (ended.code, ended.out.count("ref object for")) == (1, len(ALL))
    preview = shell("repair", str(root))
    assert (preview.code, preview.out.count("would be restored")) == (1, len(ALL))
    note = shell("cleanup", str(root), "--keep", "1", "--grace", "0s", "--confirm", "--yes").err
    assert note.count(
        "is missing its ref object, but the data is kept; run `omnigraph repair` to restore the name"
    ) == len(ALL)
    done = shell("repair", str(root), "--confirm", "--yes")
    assert (done.code, done.out.count("ref_lost, restored")) == (0, len(ALL))
    assert shell("check", str(root)).code == 0
    tag = open_again(root).tags.values()[0]
    assert (tag.message, tag.branch) == ("first", "main")
    for name in ALL:
        assert len(keys(root, name)) == BRANCHES.get(name, 1)


def test_lost_ref_whose_name_was_reused_is_not_restored(root: Path) -> None:
    ulid = lose_ref(root, "used")
    graph = open_again(root)
    add(graph.branches.create("used"), "another")
    (row,) = graph.maintenance.repair(confirm=True).names
    assert (row.action, "already exists" in str(row.reason)) == ("refused", True)
    with pytest.raises(InputError):
        graph.maintenance.repair(confirm=True, restore="01J00000000000000000000000", name="rescued")
    (row,) = graph.maintenance.repair(confirm=True, restore=ulid, name="rescued").names
    assert row.action == "restored"
    assert (keys(root, "used"), keys(root, "rescued")) == (["a", "another"], ["a", "used"])
    use_for_everything(root, "rescued")


def test_two_manifests_of_one_name_require_a_choice(root: Path) -> None:
    first = lose_ref(root, "used")
    add(open_again(root).branches.create("used"), "second")
    second = lose_ref(root, "used")
    graph = open_again(root)
    assert {one.action for one in graph.maintenance.repair(confirm=True).names} == {"refused"}
    graph.maintenance.repair(confirm=True, restore=second)
    graph.maintenance.repair(confirm=True, drop=first)
    assert keys(root, "used") == ["a", "second"]
    assert not check(root).findings


@pytest.mark.parametrize("name", ["used", "fresh", TAG])
def test_dropped_branch_is_removed_by_cleanup(root: Path, name: str) -> None:
    ulid = lose_ref(root, name)
    graph = open_again(root)
    (row,) = graph.maintenance.repair(drop=ulid).names
    assert row.action == "preview"
    (row,) = graph.maintenance.repair(confirm=True, drop=ulid).names
    assert row.action == "dropped"
    assert not check(root).findings
    before = {one for one in files(open_store(str(root))) if ulid in one}
    assert not graph.maintenance.cleanup(keep=1, grace=0, confirm=True).unnamed
    after = {one for one in files(open_store(str(root))) if ulid in one}
    assert after < before  # the closing version stays
    if name == TAG:
        graph.tag(TAG)
    else:
        add(graph.branches.create(name), "new")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"ulid": 7}', None])
def test_damaged_ref_object_is_reported_and_restored(root: Path, body: bytes | None) -> None:
    for name in ("used", TAG):
        path = ref_objects(root, name)[-1]
        flipped = path.read_bytes().replace(b"parent", b"par!nt")
        path.write_bytes(flipped if body is None else body)
    found = {one.branch: one for one in check(root).findings}
    assert set(found) == {"used", f"tag {TAG}"}
    assert all(one.name and one.name.startswith("_refs/") for one in found.values())
    with pytest.raises(StorageError, match="ref object for branch 'used'"):
        open_again(root, "used")
    graph = open_again(root)
    assert graph.tags.values() == []
    assert keys(root, "renamed") == ["a", "former"]
    with pytest.raises(StorageError, match="damaged"):
        graph.branches.create("used")
    assert len(graph.maintenance.cleanup(keep=1, grace=0, confirm=True).unnamed) == 2
    assert {one.action for one in graph.maintenance.repair(confirm=True).names} == {"restored"}
    assert not check(root).findings
    for name in ("used", TAG):
        use_for_everything(root, name)


def test_damaged_ref_without_a_manifest_can_be_dropped(root: Path) -> None:
    graph = open_again(root)
    publish_closing_version(graph._handle.store, branches.open_branch(graph._handle.store, "used"))
    ref_objects(root, "used")[-1].write_bytes(b"{")
    assert [one.branch for one in check(root).findings] == ["used"]
    assert [one.action for one in graph.maintenance.repair(confirm=True).names] == ["refused"]
    assert [one.action for one in graph.maintenance.repair(confirm=True, drop="used").names] == ["dropped"]
    assert not check(root).findings
    add(graph.branches.create("used"), "new")


@pytest.mark.parametrize("name", ["used", TAG])
def test_ref_without_a_manifest_is_reported(root: Path, name: str) -> None:
    ulid = json.loads(ref_objects(root, name)[-1].read_text())["ulid"]
    shutil.rmtree(root / "__branches" / ulid)
    with pytest.raises(StorageError, match=f"__branches/{ulid}/_versions is missing"):
        keys(root, name)
    (finding,) = check(root).findings
    assert (finding.kind, ulid in str(finding.name)) == ("manifest", True)
    graph = open_again(root)
    assert [one.action for one in graph.maintenance.repair(confirm=True, drop=name).names] == ["dropped"]
    assert not check(root).findings


def test_a_fragment_of_a_manifest_that_is_missing_is_named(root: Path) -> None:
    ulid = json.loads(ref_objects(root, "fresh")[-1].read_text())["ulid"]
    (fragment,) = (root / "__branches" / ulid / "data").iterdir()
    fragment.unlink()
    with pytest.raises(StorageError, match=fragment.name):
        open_again(root, "fresh")


def test_main_without_its_manifest_is_damage(root: Path) -> None:
    shutil.rmtree(root / "__manifest")
    for branch in ("main", "no-such-branch"):
        with pytest.raises(StorageError, match="__manifest/_versions is missing"):
            open_again(root, branch)
    assert keys_of_branch(root) == ["a", "used"]


def keys_of_branch(root: Path) -> list[str]:
    graph = omnigraph.open(root, branch="used", read_only=True)
    return sorted(row["p.k"] for row in graph.query(QUERY))


def test_deleted_branch_without_a_closing_version_is_reported(root: Path) -> None:
    graph = open_again(root)
    ulid = graph.branches["used"].ulid
    graph.branches.delete("used", force=True)
    min((root / "__branches" / ulid / "_versions").iterdir()).unlink()
    (finding,) = check(root).findings
    assert "was deleted, and the manifest version that marks it as deleted is missing" in finding.reason
    with pytest.raises(BranchNotFound):
        open_again(root, "used")
    assert [one.action for one in graph.maintenance.repair(confirm=True).names] == ["closed"]
    assert not check(root).findings
    assert "used" not in open_again(root).branches


def test_unnamed_manifest_of_an_older_release_is_kept_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "g"
    _as_older_release(monkeypatch)
    graph = omnigraph.init(root, SCHEMA, durability="os")
    add(graph, "a")
    add(graph.branches.create("used"), "used")
    graph.branches.create("fresh")
    graph.tag(TAG)
    ulids = {name: lose_ref(root, name) for name in ("used", "fresh", TAG)}
    found = {one.branch: one.severity for one in check(root).findings}
    assert found == {"used": "error", ulids["fresh"]: "warning", ulids[TAG]: "warning"}
    assert len(graph.maintenance.cleanup(keep=1, grace=0, confirm=True).unnamed) == 3
    rows = {one.target[-26:]: one.action for one in graph.maintenance.repair(confirm=True).names}
    assert rows == {ulids["used"]: "restored", ulids["fresh"]: "refused", ulids[TAG]: "refused"}
    graph.maintenance.repair(confirm=True, restore=ulids["fresh"], name="fresh")
    graph.maintenance.repair(confirm=True, restore=ulids[TAG], name=TAG, tag=True)
    assert not check(root).findings
    for name in ("used", "fresh", TAG):
        use_for_everything(root, name)


def _as_older_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record nothing of the creation, as before it was recorded."""
    from dataclasses import replace

    real: Callable[..., GraphState] = branch_lifecycle.forked_state
    monkeypatch.setattr(branch_lifecycle, "forked_state", lambda *given: replace(real(*given), origin=None))


def test_loser_of_a_name_race_leaves_garbage_but_no_damage(root: Path) -> None:
    graph = open_again(root)

    def take_first(*given: object) -> None:
        raise AlreadyExists("taken")

    real = refs.open_name
    refs.open_name = take_first  # type: ignore[assignment]
    try:
        with pytest.raises(AlreadyExists):
            graph.branches.create("late")
    finally:
        refs.open_name = real
    assert not check(root).findings
    assert graph.maintenance.cleanup(keep=1, grace=0, confirm=True).orphans
    assert not check(root).findings


def test_lost_ref_object_on_s3_is_restored(s3: S3) -> None:
    graph = omnigraph.init(s3.url, SCHEMA)
    add(graph, "a")
    add(graph.branches.create("used"), "used")
    graph.tag(TAG)
    for name in ("branches/used", f"tags/{TAG}"):
        graph._handle.store.objects.remove(f"_refs/{name}/0000000001.json")
    fresh = omnigraph.open(s3.url)
    assert len(ref_findings(fresh.maintenance.check(quick=True))) == 2
    assert len(fresh.maintenance.cleanup(keep=1, grace=0, confirm=True).unnamed) == 2
    assert {one.action for one in fresh.maintenance.repair(confirm=True).names} == {"restored"}
    assert not omnigraph.open(s3.url).maintenance.check(quick=True).findings
    assert len(omnigraph.open(s3.url, branch="used").query(QUERY)) == 2
