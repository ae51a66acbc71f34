"""Creating a graph: once, atomically, and only on a suitable store."""

import errno
import os
import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import (
    AlreadyExists,
    InitializationClaimed,
    InitializationCommitted,
    InitializationIndeterminate,
    InputError,
    OmnigraphError,
    SchemaUnsupported,
    StorageError,
)
from omnigraph.history.commit import SchemaRow
from omnigraph.history.schemas import StoredSchema, write_schema
from omnigraph.publish import init
from omnigraph.storage import layout
from omnigraph.storage.effects import Effects, Fault
from omnigraph.storage.store import Store, open_store
from tests.api.graph.conftest import people, tree
from tests.rig.plugin import S3
from tests.rig.timeouts import PATIENCE
from tests.rig.writes import SCHEMA, make_graph


def test_a_second_init_is_refused_and_changes_nothing(graph: Graph) -> None:
    before = tree(graph.uri)
    for force in (False, True):
        with pytest.raises(AlreadyExists):
            omnigraph.init(graph.uri, SCHEMA, force=force)
    assert tree(graph.uri) == before


def test_init_opens_an_existing_graph_with_an_equivalent_schema(graph: Graph) -> None:
    spaced = SCHEMA.replace("{", "{\n").replace("}", "\n}")
    assert people(omnigraph.init(graph.uri, spaced, exist_ok=True)) == people(graph)
    with pytest.raises(SchemaUnsupported) as refused:
        omnigraph.init(graph.uri, "node Person { n: I32? }", exist_ok=True)
    assert refused.value.steps


def test_a_schema_is_text_or_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.pg").write_text(SCHEMA)
    graphs = [omnigraph.init("a", SCHEMA), omnigraph.init("c", Path("small.pg"))]
    assert {graph.schema.source for graph in graphs} == {SCHEMA}
    with pytest.raises(InputError, match="cannot read"):
        omnigraph.init("d", Path("missing.pg"))
    with pytest.raises(InputError, match="is not a schema") as refused:  # text is never opened as a file
        omnigraph.init("d", "small.pg")
    assert "pathlib.Path" in str(refused.value.hint)
    assert not Path("d").exists()


def interrupted(root: Path, fault: Fault) -> Effects:
    """Make a graph, and fail at one effect."""
    effects = Effects()
    store = open_store(str(root), effects=effects, durability="os")
    with effects.failing(fault), pytest.raises((OmnigraphError, OSError, KeyboardInterrupt)):
        make_graph(store)
    return effects


def effects_of_init(root: Path) -> list[str]:
    effects = Effects()
    make_graph(open_store(str(root), effects=effects, durability="os"))
    return [one.target for one in effects.completed]


def test_init_interrupted_before_the_first_manifest_can_be_repeated(tmp_path: Path) -> None:
    targets = effects_of_init(tmp_path / "whole")
    commit_point = targets.index(layout.MANIFEST) + 1
    for at in range(1, commit_point + 1):
        root = tmp_path / f"cut-{at}"
        interrupted(root, Fault(at, "before", KeyboardInterrupt()))
        with pytest.raises(OmnigraphError):
            omnigraph.open(root)
        if (root / layout.CLAIM).exists():
            with pytest.raises(InitializationClaimed):
                omnigraph.init(root, SCHEMA)
        graph = omnigraph.init(root, SCHEMA, force=True)
        assert len(graph.log()) == 1
        assert not (root / layout.CLAIM).exists()


def test_init_interrupted_after_the_first_manifest_created_the_graph(tmp_path: Path) -> None:
    targets = effects_of_init(tmp_path / "whole")
    commit_point = targets.index(layout.MANIFEST) + 1
    root = tmp_path / "cut"
    interrupted(root, Fault(commit_point, "after", KeyboardInterrupt()))
    assert len(omnigraph.open(root).log()) == 1
    with pytest.raises(AlreadyExists):
        omnigraph.init(root, SCHEMA, force=True)


def test_lost_response_to_the_first_manifest_is_verified(tmp_path: Path) -> None:
    targets = effects_of_init(tmp_path / "whole")
    effects = Effects()
    store = open_store(str(tmp_path / "g"), effects=effects, durability="os")
    with effects.failing(Fault(targets.index(layout.MANIFEST) + 1, "after")):
        make_graph(store)
    assert len(omnigraph.open(tmp_path / "g").log()) == 1
    assert not (tmp_path / "g" / layout.CLAIM).exists()


def test_failed_first_manifest_raises_and_removes_the_claim(tmp_path: Path) -> None:
    targets = effects_of_init(tmp_path / "whole")
    interrupted(tmp_path / "g", Fault(targets.index(layout.MANIFEST) + 1, "before"))
    assert not (tmp_path / "g" / layout.CLAIM).exists()
    omnigraph.init(tmp_path / "g", SCHEMA)


def test_remaining_init_claim_is_reported(tmp_path: Path) -> None:
    targets = effects_of_init(tmp_path / "whole")
    effects = Effects()
    store = open_store(str(tmp_path / "g"), effects=effects, durability="os")
    with effects.failing(Fault(len(targets), "before")), pytest.raises(InitializationCommitted) as told:
        make_graph(store)
    assert told.value.effect == "done"
    assert len(omnigraph.open(tmp_path / "g").log()) == 1


def test_init_on_an_unreachable_store_has_unknown_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = effects_of_init(tmp_path / "whole")
    effects = Effects()
    store = open_store(str(tmp_path / "g"), effects=effects, durability="os")

    def silent(*_: object) -> None:
        raise StorageError(kind="transient", effect="none")

    monkeypatch.setattr(init, "read_manifest", silent)
    with (
        effects.failing(Fault(targets.index(layout.MANIFEST) + 1, "after")),
        pytest.raises(InitializationIndeterminate) as told,
    ):
        make_graph(store)
    assert told.value.effect == "unknown"
    assert (tmp_path / "g" / layout.CLAIM).exists()
    assert len(omnigraph.open(tmp_path / "g").log()) == 1


@pytest.mark.full
def test_unverifiable_init_is_reported_as_unknown(s3: S3) -> None:
    s3.proxy.cut(1, "PUT", "*/__manifest/_versions/*")
    with pytest.raises(InitializationIndeterminate) as told:
        omnigraph.init(s3.url, SCHEMA)
    assert told.value.effect == "unknown"
    s3.proxy.heal()
    assert len(omnigraph.open(s3.url).log()) == 1


def test_one_of_two_forced_inits_wins(tmp_path: Path) -> None:
    ready, outcomes = threading.Barrier(4), []

    def make() -> None:
        ready.wait()
        try:
            outcomes.append(omnigraph.init(tmp_path / "g", SCHEMA, force=True).head.id)
        except OmnigraphError as error:
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    head = omnigraph.open(tmp_path / "g").head.id
    assert outcomes.count(head) == 1
    assert set(outcomes) - {head} <= {"AlreadyExists", "InitializationClaimed"}


def test_losing_init_does_not_affect_the_winning_handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, won = tmp_path / "g", []

    def overtaken(store: Store, contract: StoredSchema) -> SchemaRow:
        monkeypatch.undo()
        won.append(omnigraph.init(root, SCHEMA, force=True))
        return write_schema(store, contract)

    monkeypatch.setattr(init, "write_schema", overtaken)
    with pytest.raises(AlreadyExists):
        omnigraph.init(root, SCHEMA, force=True)
    assert won[0].refresh().head.id == omnigraph.open(root).head.id


def test_late_init_reports_an_existing_graph(s3: S3) -> None:
    outcomes: list[str] = []

    def make() -> None:
        try:
            outcomes.append(omnigraph.init(s3.url, SCHEMA).head.id)
        except AlreadyExists as error:
            outcomes.append(error.message)

    held = s3.proxy.hold("PUT", "*/__manifest/data/*")
    late = threading.Thread(target=make)
    late.start()
    assert held.hit.wait(PATIENCE)
    head = omnigraph.init(s3.url, SCHEMA, force=True).head.id
    held.release()
    late.join()
    assert outcomes == [f"another init created the graph at {s3.url}"]
    assert [one.id for one in omnigraph.open(s3.url).log()] == [head]


def test_store_without_create_if_absent_is_rejected(careless_s3: S3) -> None:
    with pytest.raises(StorageError, match="cannot be used for a graph") as refused:
        omnigraph.init(careless_s3.url, SCHEMA)
    assert refused.value.kind == "configuration"


def test_disk_without_hard_links_is_read_only(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError, match="does not support hard links"):
        omnigraph.init(tmp_path / "new", SCHEMA)
    assert tree(tmp_path / "new") == {}
    assert people(omnigraph.open(graph.uri, read_only=True)) == people(graph)


def test_service_specific_endpoint_takes_precedence(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert len(omnigraph.init(s3.url, SCHEMA).log()) == 1


@pytest.mark.parametrize("uri", ["http://h/g", "https://h/g", "ftp://h/g", "s3://bucket", "s3://key:secret@b/p", ""])
def test_unsupported_location_is_rejected(uri: str) -> None:
    with pytest.raises(InputError) as making:
        omnigraph.init(uri, SCHEMA)
    with pytest.raises(InputError) as opening:
        omnigraph.open(uri)
    assert "secret" not in f"{making.value} {opening.value}"


@pytest.mark.parametrize("read_only", [False, True])
def test_reserved_actor_names_are_rejected(graph: Graph, read_only: bool) -> None:
    with pytest.raises(InputError, match="reserved"):
        omnigraph.open(graph.uri, actor="omnigraph:recovery", read_only=read_only)
    with pytest.raises(InputError, match="reserved"):
        omnigraph.init(f"{graph.uri}-new", SCHEMA, actor="omnigraph:me")
    assert not Path(f"{graph.uri}-new").exists()
