"""A bad record of an unfinished operation never blocks a graph: it is set aside and reported."""

import json
import os
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.publish import intent as intents
from omnigraph.publish import settle_operation
from omnigraph.storage.store import open_store
from tests.cli import conftest as cli
from tests.cli.conftest import Program
from tests.crash.verbs import make_start, overdue
from tests.publish.recovery.bad_records import (
    BROKEN,
    EVERY,
    ID,
    NEWER,
    UNREADABLE,
    Poison,
    contents,
    decided,
    exercise,
    kinds,
    parts_left,
    put,
    record,
    recover_now,
)
from tests.rig.plugin import S3
from tests.rig.upload import bring

shell = cli.omnigraph  # the program, in this process
# Settled without help: nothing is left of them to decide about.
REFUSED = "load of a table that does not exist"
SET_ASIDE = [name for name in EVERY if name != REFUSED]
WHOLE = ("branch with a name too long", "load with a torn plan", "garbage", "newer release")


def marker_of(name: str) -> str:
    """The part that sets a poisoned operation aside."""
    return "newer" if name in NEWER else "set_aside"


def check_set_aside(graph: Graph, poison: Poison, marker: str) -> None:
    """The operation is kept and reported everywhere, as a warning."""
    assert parts_left(graph._handle.store) >= {*poison.parts, marker}
    for part, body in poison.parts.items():
        assert graph._handle.store.objects.read(f"__recovery/{ID}.{part}") == body
    (waiting,) = graph.maintenance.operations.set_aside()
    assert waiting.id == ID
    assert waiting.error
    assert kinds(graph) == ["set_aside"]
    status = graph.maintenance.status()
    assert status.set_aside == 1
    assert any("operation set aside" in one.what for one in status.warnings)
    findings = graph.maintenance.check(quick=True).findings
    assert [(one.kind, one.severity) for one in findings] == [("intent", "warning")]
    assert findings[0].name == f"__recovery/{ID}.json"
    assert findings[0].hint


@pytest.mark.parametrize("name", SET_ASIDE)
def test_poisoned_operation_is_set_aside_and_the_graph_keeps_working(graph: Graph, name: str) -> None:
    before, poison = contents(graph), EVERY[name](graph)
    put(graph._handle.store, poison)
    with overdue():
        opened = omnigraph.open(graph.uri, durability="os")
        opened.insert("Person", {"name": "new"})
    assert contents(opened) == before
    check_set_aside(opened, poison, marker_of(name))
    assert recover_now(opened._handle.store) == [], "it is attempted again"


@pytest.mark.parametrize("name", [pytest.param(one, marks=[] if one in WHOLE else [pytest.mark.full]) for one in EVERY])
def test_every_verb_works_beside_a_poisoned_operation(graph: Graph, name: str) -> None:
    before, poison = contents(graph), EVERY[name](graph)
    put(graph._handle.store, poison)
    opened = exercise(graph.uri)
    assert contents(opened) == before
    if name in SET_ASIDE:
        check_set_aside(opened, poison, marker_of(name))


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[] if one in WHOLE[:3] else [pytest.mark.full]) for one in SET_ASIDE]
)
def test_every_verb_works_on_s3(s3: S3, made: Path, name: str) -> None:
    bring(s3.server, made, s3.url)
    graph = omnigraph.open(s3.url)
    before, poison = contents(graph), EVERY[name](graph)
    put(graph._handle.store, poison)
    opened = exercise(s3.url)
    assert contents(opened) == before
    check_set_aside(opened, poison, marker_of(name))


def test_plan_that_does_not_apply_is_rejected(graph: Graph) -> None:
    put(graph._handle.store, BROKEN[REFUSED](graph))
    assert recover_now(graph._handle.store) == ["refused"]
    assert parts_left(graph._handle.store) == set()


@pytest.mark.parametrize("operation", ["load", "branch_create", "tag_create", "branch_rename"])
def test_undecided_operation_on_a_missing_branch_is_discarded(graph: Graph, operation: str) -> None:
    facts = record(graph, operation, branch="ghost", branch_ulid="ghost", base_commit="nothing")
    poison = decided(facts)
    del poison.parts["verdict"]
    put(graph._handle.store, poison)
    assert recover_now(graph._handle.store) == ["discarded"]
    assert parts_left(graph._handle.store) == set()


@pytest.mark.parametrize("operation", ["branch_create", "tag_create"])
def test_creation_from_a_missing_source_is_discarded(graph: Graph, operation: str) -> None:
    put(graph._handle.store, decided(record(graph, operation, base_commit="nothing")))
    assert recover_now(graph._handle.store) == ["discarded"]
    assert exercise(graph.uri).maintenance.operations.set_aside() == []


def test_operations_after_a_poisoned_one_are_recovered(graph: Graph) -> None:
    put(graph._handle.store, UNREADABLE["garbage"](graph))
    later = "01J0000000000000000000000Z"
    facts = record(graph, "branch_create", operation_id=later)
    graph._handle.store.objects.create_json(f"__recovery/{later}.json", facts)
    graph._handle.store.objects.create_json(f"__recovery/{later}.verdict", {"verdict": "publish"})
    assert recover_now(graph._handle.store) == ["finished"]
    assert "fresh" in graph.branches
    assert [one.id for one in graph.maintenance.operations.set_aside()] == [ID]


def test_without_setting_aside_every_recovery_retries_the_operation(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule taken away: the operation is neither reported nor left alone."""
    monkeypatch.setattr("omnigraph.publish.recover._try_set_aside", lambda *_: None)
    poison = BROKEN["branch with a name too long"](graph)
    put(graph._handle.store, poison)
    with overdue():
        opened = omnigraph.open(graph.uri, durability="os")
    with pytest.raises(AssertionError):
        check_set_aside(opened, poison, "set_aside")


def test_transient_failure_is_retried_and_blocks_nothing(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    put(graph._handle.store, decided(record(graph, "branch_create")))
    with monkeypatch.context() as patch:
        patch.setattr(settle_operation, "resume_creation", no_space)
        assert exercise(graph.uri).maintenance.operations.set_aside() == []
    assert "will be resolved later" in caplog.text
    assert "No space left" in caplog.text
    assert recover_now(graph._handle.store) == ["finished"]
    assert "fresh" in graph.branches


def test_read_only_disk_does_not_stop_an_open(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    put(graph._handle.store, decided(record(graph, "branch_create")))

    def refuse(*_: object) -> bool:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch, overdue():
        patch.setattr("omnigraph.storage.effects.Effects.run", refuse)
        assert omnigraph.open(graph.uri, durability="os").nodes("Person").ids() == ["ada", "bob"]
    assert recover_now(graph._handle.store) == ["finished"]


def test_lease_from_the_far_future_counts_as_expired(graph: Graph) -> None:
    facts = record(graph, "branch_create")
    put(graph._handle.store, decided(facts, lease=b"{}"))
    for part in ("json", "lease"):
        os.utime(Path(graph.uri, f"__recovery/{ID}.{part}"), (4e9, 4e9))
    opened = omnigraph.open(graph.uri, durability="os")
    assert "fresh" in opened.branches
    assert opened.maintenance.status().intents == 0


def test_stray_objects_are_ignored_and_reported(graph: Graph) -> None:
    names = ["notes.json", "backup/01J00000000000000000000000.json", "01J.lease", "x.json/y.json"]
    for name in names:
        path = Path(graph.uri, "__recovery", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"?")
    Path(graph.uri, "__recovery", "01J0000000000000000000000Q.json").mkdir()
    opened = exercise(graph.uri)
    found = {one.name for one in opened.maintenance.check(quick=True).findings}
    assert found == {f"__recovery/{name}" for name in names}
    assert opened.maintenance.operations.set_aside() == []
    assert all(Path(graph.uri, "__recovery", name).read_bytes() == b"?" for name in names)


def test_newer_release_resolves_operations_set_aside_by_an_older_one(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = record(graph, "branch_create", schema_version=2)
    put(graph._handle.store, decided(facts))
    with monkeypatch.context() as older, overdue():
        opened = omnigraph.open(graph.uri, durability="os")
        check = [(one.id, one.needs) for one in opened.maintenance.operations.set_aside()]
        assert check == [(ID, {"schema_version": 2})]
        older.setattr("omnigraph.publish.intent_record.SCHEMA_VERSION", 2)
        older.setattr("omnigraph.publish.settle_operation.SCHEMA_VERSION", 2)
        omnigraph.open(graph.uri, durability="os")
    assert "fresh" in graph.branches
    assert kinds(graph) == ["set_aside", "finished"]
    assert recover_now(graph._handle.store) == []
    assert parts_left(graph._handle.store) == set(), "the marker is left"


def test_operation_with_a_live_owner_of_a_newer_release_is_kept(graph: Graph) -> None:
    put(graph._handle.store, NEWER["newer release"](graph))
    opened = omnigraph.open(graph.uri, durability="os")
    assert parts_left(graph._handle.store) == {"json"}
    assert [one.id for one in opened.maintenance.operations.set_aside()] == [ID], "nobody would know of it"


def test_copy_keeps_set_aside_operations(graph: Graph, tmp_path: Path) -> None:
    put(graph._handle.store, BROKEN["load with a torn plan"](graph))
    recover_now(graph._handle.store)
    graph.maintenance.copy_to(tmp_path / "copy")
    copied = omnigraph.open(tmp_path / "copy", durability="os")
    assert [one.error for one in copied.maintenance.operations.set_aside()] == [
        one.error for one in graph.maintenance.operations.set_aside()
    ]
    assert copied.maintenance.operations.drop(ID).kind == "dropped"
    assert parts_left(graph._handle.store) == {"json", "confirmed", "verdict", "set_aside"}


def test_commands_list_a_pending_operation(shell: Program, tmp_path: Path) -> None:
    root = make_start("confirmed", tmp_path)
    (pending,) = intents.list_intents(open_store(str(root))).pending
    listed = shell("recovery", "list", str(root))
    assert listed.out == f"{pending.id}  pending  insert  main  -\n"
    assert "will be recovered by the next write" in listed.err
    (told,) = json.loads(shell("recovery", "list", str(root), "--json").out)["pending"]
    assert told["operation_id"] == pending.id


def test_commands_report_set_aside_operations(graph: Graph, shell: Program) -> None:
    put(graph._handle.store, BROKEN["branch without a name"](graph))
    recover_now(graph._handle.store)
    listed = shell("recovery", "list", graph.uri)
    assert (
        f"{ID}  set_aside  branch_create  main  -  operation {ID} does not record the name and ULID of the new object"
        in listed.out
    )
    told = json.loads(shell("recovery", "list", graph.uri, "--json").out)
    assert [one["operation_id"] for one in told["set_aside"]] == [ID]
    assert [one["recovery_kind"] for one in told["recoveries"]] == ["set_aside"]
    checked = shell("check", graph.uri)
    assert (checked.code, "warning: intent" in checked.out) == (5, True)
    assert f"omnigraph recovery retry {ID}" in checked.err
    assert "1 operation set aside" in shell("status", graph.uri).out
    assert shell("repair", graph.uri).code == 0
    failed = shell("recovery", "retry", ID, "--store", graph.uri)
    assert failed.code == 1
    preview = shell("recovery", "drop", ID, "--store", graph.uri)
    assert (preview.code, "nothing was changed" in preview.err) == (0, True)
    dropped = shell("recovery", "drop", ID, "--store", graph.uri, "--confirm", "--as", "ann")
    assert (dropped.code, "dropped" in dropped.out) == (0, True)
    assert shell("recovery", "drop", ID, "--store", graph.uri).code != 0
    told = json.loads(shell("recovery", "list", graph.uri, "--json").out)
    assert told["set_aside"] == []
    assert told["recoveries"][-1]["actor_id"] == "ann"
    assert shell("check", graph.uri).code == 0


def test_readers_see_set_aside_operations_without_writing(graph: Graph) -> None:
    put(graph._handle.store, UNREADABLE["empty"](graph))
    reader = omnigraph.open(graph.uri, read_only=True)
    assert [one.id for one in reader.maintenance.operations.set_aside()] == [ID]
    assert parts_left(open_store(graph.uri)) == {"json"}
