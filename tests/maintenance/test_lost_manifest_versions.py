"""Lost manifest versions: provable losses are reported and restored, nothing else is claimed."""

import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import Conflict, InputError, StorageError
from omnigraph.maintenance.finding import IntegrityFinding
from omnigraph.maintenance.retention.collector_fence import raise_fences
from omnigraph.publish import intent as intents
from omnigraph.storage import layout
from omnigraph.storage.effects import Fault
from tests.cli.conftest import Program
from tests.cli.conftest import omnigraph as shell  # noqa: F401 - a fixture
from tests.rig.invariants import check_invariants
from tests.rig.plugin import S3

SCHEMA = "node P { k: String @key }"
QUERY = "match { $p: P } return { $p.k }"


def add(graph: Graph, key: str) -> str:
    graph.load({"P": [{"k": key}]}, mode="append")
    return str(graph.head.id)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    for key in ("a", "b"):
        add(made, key)
    return made


def versions(graph: Graph, ulid: str = "main") -> list[Path]:
    """The version files of a manifest, newest first."""
    place = "__manifest" if ulid == "main" else f"__branches/{ulid}"
    return sorted(Path(graph.uri, place, "_versions").iterdir())


def lose_newest(graph: Graph, count: int = 1, ulid: str = "main") -> None:
    for path in versions(graph, ulid)[:count]:
        path.unlink()


def findings(graph: Graph) -> list[IntegrityFinding]:
    return list(omnigraph.open(graph.uri, read_only=True).maintenance.check(quick=True).findings)


def keys(graph: Graph, branch: str = "main") -> list[str]:
    return sorted(row["p.k"] for row in omnigraph.open(graph.uri, branch=branch).query(QUERY))


def restore(graph: Graph, **how: object) -> list[str]:
    opened = omnigraph.open(graph.uri, durability="os")
    assert all(one.action == "preview" for one in opened.maintenance.repair(**how).versions)  # type: ignore[arg-type]
    done = opened.maintenance.repair(confirm=True, **how)  # type: ignore[arg-type]
    return [one.action for one in done.versions]


def test_missing_newest_version_may_be_an_interrupted_write(graph: Graph) -> None:
    lose_newest(graph)
    (finding,) = findings(graph)
    assert (finding.kind, finding.severity, finding.branch) == ("manifest", "warning", "main")
    assert str(graph.head.id) in finding.reason
    assert "the newest version was deleted" in finding.reason
    assert restore(graph) == []
    with pytest.raises(InputError):
        restore(graph, commit=graph.log()[-1].id)
    assert restore(graph, commit=str(graph.head.id)) == ["restored"]
    assert not findings(graph)
    assert keys(graph) == ["a", "b"]
    assert omnigraph.open(graph.uri).head == graph.head


@pytest.mark.parametrize("witness", ["branch", "tag", "merged"])
def test_commit_known_to_another_branch_proves_a_lost_version(graph: Graph, witness: str) -> None:
    if witness == "branch":
        graph.branches.create("side")
    elif witness == "tag":
        graph.tag("v1")
    else:
        add(graph.branches.create("side"), "s")
        add(graph, "c")
        graph.merge("main", into="side")
    before, log = keys(graph), [(one.id, one.manifest_version) for one in graph.log()]
    lose_newest(graph)
    (finding,) = findings(graph)
    assert (finding.severity, log[0][0] in finding.reason) == ("error", True)
    assert keys(graph) != before
    assert restore(graph) == ["restored"]
    assert not findings(graph)
    assert keys(graph) == before
    fresh = omnigraph.open(graph.uri, durability="os")
    assert [(one.id, one.manifest_version) for one in fresh.log()] == log
    assert fresh.maintenance.operations.recoveries()[-1].operation == "restore_version"
    add(fresh, "new")
    assert not findings(graph)
    check_invariants(graph.uri)


def test_gap_proves_all_lost_versions_but_the_last(graph: Graph) -> None:
    ids = [add(graph, key) for key in ("c", "d", "e")]
    lose_newest(graph, 3)
    (finding,) = findings(graph)
    assert finding.severity == "error"
    with pytest.raises(Conflict, match="versions 4 to 5 of __manifest are missing"):
        omnigraph.open(graph.uri).maintenance.cleanup(keep=1, grace=0, confirm=True)
    assert restore(graph) == ["restored"]
    assert keys(graph) == ["a", "b", "c", "d"]
    (finding,) = findings(graph)
    assert (finding.severity, ids[-1] in finding.reason) == ("warning", True)
    omnigraph.open(graph.uri).maintenance.cleanup(keep=9, grace=0, confirm=True)
    assert not findings(graph)


def test_restored_versions_keep_their_numbers(graph: Graph) -> None:
    add(graph, "c")
    raise_fences(graph._handle.store, [f"{layout.COMMITS}/x"])
    last = add(graph, "d")
    graph.tag("v1")
    number = graph.head.manifest_version
    lose_newest(graph, 2)  # the commit and the fence
    assert restore(graph) == ["restored"]
    fresh = omnigraph.open(graph.uri)
    assert (fresh.head.id, fresh.head.manifest_version) == (last, number)


def test_restore_does_not_overwrite_newer_commits(graph: Graph, shell: Program) -> None:  # noqa: F811
    graph.branches.create("side")
    lost = graph.head.id
    lose_newest(graph)
    fresh = omnigraph.open(graph.uri, durability="os")
    add(fresh, "other")
    (finding,) = findings(graph)
    assert (finding.severity, str(lost) in finding.reason) == ("error", True)
    assert "merge or cherry-pick" in str(finding.hint)
    ended = shell("repair", graph.uri, "--confirm", "--yes")
    assert (ended.code, "refused: the lost commits do not follow" in ended.out) == (1, True)
    fresh.merge("side")
    assert keys(graph) == ["a", "b", "other"]
    assert not findings(graph)


def test_lost_newest_version_of_a_branch_is_restored(graph: Graph) -> None:
    side = graph.branches.create("side")
    for key in ("s", "t"):
        add(side, key)
    graph.merge("side")
    lose_newest(graph, ulid=graph.branches["side"].ulid)
    (finding,) = findings(graph)
    assert (finding.severity, finding.branch) == ("error", "side")
    assert restore(graph) == ["restored"]
    assert keys(graph, "side") == ["a", "b", "s", "t"]
    assert not findings(graph)


def test_reused_branch_name_is_not_a_lost_version(graph: Graph) -> None:
    first = graph.head.id
    add(graph.branches.create("side"), "s")
    graph.merge("side")
    graph.branches.delete("side", force=True)
    graph.branches.create("side", commit=first)
    assert not findings(graph)
    graph.branches.rename("side", "other")
    graph.branches.create("side")
    assert not findings(graph)


def test_lost_middle_version_is_no_damage(graph: Graph) -> None:
    add(graph, "c")
    versions(graph)[1].unlink()
    (finding,) = findings(graph)
    assert (finding.severity, "no other version depends on them" in finding.reason) == ("warning", True)
    assert keys(graph) == ["a", "b", "c"]
    fresh = omnigraph.open(graph.uri, durability="os")
    assert len(fresh.log()) == 4
    add(fresh, "d")
    fresh.maintenance.cleanup(keep=1, grace=0, confirm=True)
    assert not findings(graph)


def test_lost_first_version_is_no_damage(graph: Graph) -> None:
    side = graph.branches.create("side")
    add(side, "s")
    for ulid in ("main", graph.branches["side"].ulid):
        versions(graph, ulid)[-1].unlink()
    assert not findings(graph)
    assert keys(graph, "side") == ["a", "b", "s"]
    add(omnigraph.open(graph.uri, durability="os"), "c")
    check_invariants(graph.uri)


@pytest.mark.parametrize("name", ["side", "v1"])
def test_lost_only_version_of_a_branch_or_tag_is_reported(graph: Graph, name: str) -> None:
    graph.branches.create("side")
    graph.tag("v1")
    ulid = graph.branches["side"].ulid if name == "side" else graph.tags.values()[0].ulid
    lose_newest(graph, ulid=ulid)
    (finding,) = findings(graph)
    assert (finding.kind, finding.severity) == ("manifest", "error")
    opened = omnigraph.open(graph.uri, durability="os")
    with pytest.raises(StorageError, match=f"__branches/{ulid}/_versions is missing"):
        opened.at("v1") if name == "v1" else opened.checkout("side")
    with pytest.raises(Conflict):
        opened.maintenance.cleanup(keep=1, grace=0, confirm=True)
    assert restore(graph) == ["restored"]
    assert not findings(graph)
    assert sorted(row["p.k"] for row in opened.at(name).query(QUERY)) == ["a", "b"]


def test_loss_of_all_main_versions_is_reported(graph: Graph, shell: Program) -> None:  # noqa: F811
    lose_newest(graph, 99)
    with pytest.raises(StorageError, match="__manifest/_versions is missing"):
        omnigraph.open(graph.uri)
    assert shell("check", graph.uri).code == 1
    preview = shell("repair", graph.uri)
    assert "would be restored" in preview.out
    done = shell("repair", graph.uri, "--confirm", "--yes")
    assert "restored" in done.out
    assert keys(graph) == ["a"]  # the last one may have been interrupted
    assert restore(graph, commit=str(graph.head.id)) == ["restored"]
    assert keys(graph) == ["a", "b"]


def test_unfinished_operation_proves_a_lost_version(graph: Graph) -> None:
    with graph.maintenance.hold():
        lose_newest(graph)
        (finding,) = findings(graph)
        assert finding.severity == "error"
        assert str(graph.head.id) in finding.reason


def test_an_interrupted_write_is_a_warning_until_the_next_one(graph: Graph) -> None:
    store = graph._handle.store
    with store.effects.recording() as done:
        add(graph, "c")
    at = next(n for n, one in enumerate(done, 1) if one.kind == "publish")
    with store.effects.failing(Fault(at, "before")), pytest.raises(StorageError):
        add(graph, "d")
    assert [one.severity for one in findings(graph)] == ["warning"]
    add(graph, "e")
    assert not findings(graph)


def test_a_torn_version_that_was_set_aside_is_not_lost(graph: Graph) -> None:
    add(graph, "c")
    versions(graph)[0].write_bytes(b"")
    omnigraph.open(graph.uri, durability="os")  # sets it aside
    assert all(one.severity == "warning" for one in findings(graph))


def test_file_copy_of_a_root_has_no_lost_versions(graph: Graph, tmp_path: Path) -> None:
    add(graph.branches.create("side"), "s")
    graph.tag("v1")
    graph.maintenance.copy_to(tmp_path / "copy")
    shutil.copytree(graph.uri, tmp_path / "plain", copy_function=shutil.copyfile)
    for place in ("copy", "plain"):
        assert not omnigraph.open(tmp_path / place).maintenance.check().findings


def test_lost_version_on_s3_is_restored(s3: S3) -> None:
    graph = omnigraph.init(s3.url, SCHEMA)
    for key in ("a", "b"):
        add(graph, key)
    graph.branches.create("side")
    objects = graph._handle.store.objects
    objects.remove(min(one.name for one in objects.list("__manifest/_versions")))
    fresh = omnigraph.open(s3.url)
    (finding,) = fresh.maintenance.check(quick=True).findings
    assert (finding.kind, finding.severity) == ("manifest", "error")
    assert [one.action for one in fresh.maintenance.repair(confirm=True).versions] == ["restored"]
    assert not omnigraph.open(s3.url).maintenance.check(quick=True).findings
    assert len(omnigraph.open(s3.url).query(QUERY)) == 2
    assert intents.list_intents(graph._handle.store).pending == ()
