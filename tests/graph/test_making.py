"""Making a graph: once, whole or not at all, and only where a graph can live."""

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
from tests.graph.conftest import people, tree
from tests.rig.patience import PATIENCE
from tests.rig.plugin import S3
from tests.rig.writes import SCHEMA, make_graph


def test_a_second_init_is_refused_and_changes_nothing(graph: Graph) -> None:
    before = tree(graph.uri)
    for force in (False, True):
        with pytest.raises(AlreadyExists):
            omnigraph.init(graph.uri, SCHEMA, force=force)
    assert tree(graph.uri) == before


def test_an_existing_graph_is_opened_if_its_schema_means_the_same(graph: Graph) -> None:
    spaced = SCHEMA.replace("{", "{\n").replace("}", "\n}")
    assert people(omnigraph.init(graph.uri, spaced, exist_ok=True)) == people(graph)
    with pytest.raises(SchemaUnsupported) as refused:
        omnigraph.init(graph.uri, "node Person { n: I32? }", exist_ok=True)
    assert refused.value.steps


def test_a_schema_is_text_or_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.pg").write_text(SCHEMA)
    made = [omnigraph.init("a", SCHEMA), omnigraph.init("b", "small.pg"), omnigraph.init("c", tmp_path / "small.pg")]
    assert {one.schema.source for one in made} == {SCHEMA}
    with pytest.raises(InputError, match="cannot read"):
        omnigraph.init("d", "gone.pg")
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


def test_an_init_cut_off_before_the_first_state_can_be_made_again(tmp_path: Path) -> None:
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


def test_an_init_cut_off_behind_the_first_state_made_the_graph(tmp_path: Path) -> None:
    targets = effects_of_init(tmp_path / "whole")
    commit_point = targets.index(layout.MANIFEST) + 1
    root = tmp_path / "cut"
    interrupted(root, Fault(commit_point, "after", KeyboardInterrupt()))
    assert len(omnigraph.open(root).log()) == 1
    with pytest.raises(AlreadyExists):
        omnigraph.init(root, SCHEMA, force=True)


def test_a_lost_answer_to_the_first_state_is_looked_up(tmp_path: Path) -> None:
    targets = effects_of_init(tmp_path / "whole")
    effects = Effects()
    store = open_store(str(tmp_path / "g"), effects=effects, durability="os")
    with effects.failing(Fault(targets.index(layout.MANIFEST) + 1, "after")):
        make_graph(store)
    assert len(omnigraph.open(tmp_path / "g").log()) == 1
    assert not (tmp_path / "g" / layout.CLAIM).exists()


def test_a_first_state_that_did_not_land_is_an_error_and_no_claim_stays(tmp_path: Path) -> None:
    targets = effects_of_init(tmp_path / "whole")
    interrupted(tmp_path / "g", Fault(targets.index(layout.MANIFEST) + 1, "before"))
    assert not (tmp_path / "g" / layout.CLAIM).exists()
    omnigraph.init(tmp_path / "g", SCHEMA)


def test_a_claim_that_stays_is_told_with_the_graph(tmp_path: Path) -> None:
    targets = effects_of_init(tmp_path / "whole")
    effects = Effects()
    store = open_store(str(tmp_path / "g"), effects=effects, durability="os")
    with effects.failing(Fault(len(targets), "before")), pytest.raises(InitializationCommitted) as told:
        make_graph(store)
    assert told.value.effect == "done"
    assert len(omnigraph.open(tmp_path / "g").log()) == 1


def test_a_store_that_says_nothing_more_leaves_it_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_an_outcome_that_cannot_be_seen_is_told_as_such(s3: S3) -> None:
    s3.proxy.cut(1, "PUT", "*/__manifest/_versions/*")
    with pytest.raises(InitializationIndeterminate) as told:
        omnigraph.init(s3.url, SCHEMA)
    assert told.value.effect == "unknown"
    s3.proxy.heal()
    assert len(omnigraph.open(s3.url).log()) == 1


def test_of_two_that_force_one_makes_the_graph(tmp_path: Path) -> None:
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


def test_who_loses_the_making_of_a_graph_leaves_the_handle_of_the_winner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, won = tmp_path / "g", []

    def overtaken(store: Store, contract: StoredSchema) -> SchemaRow:
        monkeypatch.undo()
        won.append(omnigraph.init(root, SCHEMA, force=True))
        return write_schema(store, contract)

    monkeypatch.setattr(init, "write_schema", overtaken)
    with pytest.raises(AlreadyExists):
        omnigraph.init(root, SCHEMA, force=True)
    assert won[0].refresh().head.id == omnigraph.open(root).head.id


def test_an_init_that_comes_too_late_says_that_another_made_the_graph(s3: S3) -> None:
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


def test_a_store_that_lets_the_second_win_is_refused(careless_s3: S3) -> None:
    with pytest.raises(StorageError, match="cannot hold a graph") as refused:
        omnigraph.init(careless_s3.url, SCHEMA)
    assert refused.value.kind == "configuration"


def test_a_disk_without_hard_links_is_refused_but_can_be_read(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError, match="no hard links"):
        omnigraph.init(tmp_path / "new", SCHEMA)
    assert tree(tmp_path / "new") == {}
    assert people(omnigraph.open(graph.uri, read_only=True)) == people(graph)


def test_the_special_endpoint_wins(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert len(omnigraph.init(s3.url, SCHEMA).log()) == 1


@pytest.mark.parametrize("uri", ["http://h/g", "https://h/g", "ftp://h/g", "s3://bucket", "s3://key:secret@b/p", ""])
def test_what_is_not_storage_is_refused(uri: str) -> None:
    with pytest.raises(InputError) as making:
        omnigraph.init(uri, SCHEMA)
    with pytest.raises(InputError) as opening:
        omnigraph.open(uri)
    assert "secret" not in f"{making.value} {opening.value}"


@pytest.mark.parametrize("read_only", [False, True])
def test_names_of_our_own_are_no_actors(graph: Graph, read_only: bool) -> None:
    with pytest.raises(InputError, match="reserved"):
        omnigraph.open(graph.uri, actor="omnigraph:recovery", read_only=read_only)
    with pytest.raises(InputError, match="reserved"):
        omnigraph.init(f"{graph.uri}-new", SCHEMA, actor="omnigraph:me")
    assert not Path(f"{graph.uri}-new").exists()
