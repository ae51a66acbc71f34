"""The same on S3: the client is cut off at its k-th PUT, inside whatever call of Lance sends it.

Before the cut the request may reach the store or not; after it nothing is answered any more.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from omnigraph import graph as graphs
from omnigraph.errors import AlreadyExists, GraphNotInitialized, OmnigraphError
from omnigraph.history.branches import create_branch, delete_branch, list_branches, open_line
from omnigraph.history.copy import copy_graph
from omnigraph.history.line import Line
from omnigraph.history.manifest import manifest_exists
from omnigraph.history.plan import Signature
from omnigraph.storage import root as roots
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import open_store
from tests.crash.matrix import Shape, overdue, shape
from tests.rig.invariants import check_invariants
from tests.rig.plugin import S3
from tests.rig.proxy import requests_of
from tests.rig.writes import (
    TABLES,
    append,
    delete,
    init_small,
    line_at,
    make_graph,
    overwrite,
    rewrite,
    update,
    upsert,
    write,
    write_long,
)

Run = Callable[[Line, str], object]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb that can be repeated under new names, and what a graph must have to begin with."""

    run: Run
    prepare: Run = lambda *_: None


def _give(line: Line, name: str) -> None:
    """A row that the verb can change."""
    write(line, append({f"old-{name}": 1}))


def _scatter(line: Line, name: str) -> None:
    """Two fragments that can be put together."""
    for part in ("one", "two"):
        write(line, append({f"{part}-{name}": 1}))


VERBS: dict[str, Verb] = {
    "append-1": Verb(lambda line, name: write(line, append({name: 1}))),
    "append-3": Verb(lambda line, name: write(line, append({name: 1}), TABLES)),
    "upsert-1": Verb(
        lambda line, name: write(line, upsert({f"old-{name}": 2, name: 1})),
        _give,
    ),
    "update-1": Verb(lambda line, name: write(line, update({f"old-{name}": 2})), _give),
    "delete-1": Verb(lambda line, name: write(line, delete([f"old-{name}"])), _give),
    "rewrite-1": Verb(lambda line, _: write(line, rewrite()), _scatter),
    "overwrite-1": Verb(lambda line, name: write(line, overwrite({name: 1}))),
    "long-append-3": Verb(lambda line, name: write_long(line, append({name: 1}), TABLES)),
    "branch-create": Verb(lambda line, name: create_branch(line.store, name, line)),
    "branch-delete": Verb(
        lambda line, name: delete_branch(line.store, name),
        lambda line, name: create_branch(line.store, name, line),
    ),
}


@pytest.fixture
def line(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Line:
    """A small graph behind the proxy, and a client that gives up at once."""
    monkeypatch.setitem(roots._TIMEOUTS, "client_max_retries", "0")
    init_small(s3.url)
    return line_at(s3.url)


def cut(s3: S3, line: Line, verb: Verb, name: str, at: int, *, forward: bool) -> None:
    """Cut a verb off at one PUT; the graph is before or after, and goes on."""
    verb.prepare(line, name)
    before = shape(s3.url)
    rule = s3.proxy.cut(at, "PUT", forward=forward)
    told = "done"
    try:
        verb.run(line, name)
    except OmnigraphError as error:
        told = error.effect
    s3.proxy.heal()
    assert rule.hit.is_set()
    assert write(line, append({f"next-{name}": 0}), signature=_next(name)) is not None
    with overdue():
        graphs.open(s3.url)
        for one in list_branches(line.store):
            if one != MAIN and one.startswith("cut"):
                _met(line, one)
    left = shape(s3.url, {f"next-{name}"})
    assert left in (before, _after(s3, line, verb, name, before, left))
    if told == "none":
        assert left == before
    if told == "done":
        assert left != before
    check_invariants(s3.url)


def _next(name: str) -> Signature:
    return Signature(message=f"next-{name}")


def _met(line: Line, name: str) -> None:
    """Meet a branch whose deletion may have been cut off between its end and its name."""
    try:
        open_line(line.store, name)
    except OmnigraphError:
        assert name not in list_branches(line.store)


def _after(s3: S3, line: Line, verb: Verb, name: str, before: Shape, left: Shape) -> Shape:
    """What the verb makes of the graph: if it is not there yet, the verb is run once more."""
    if left == before:
        verb.run(line, name)
        again = shape(s3.url, {f"next-{name}"})
        assert again != before
        return again
    return left


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", VERBS)
def test_a_client_cut_off_at_any_put(s3: S3, line: Line, name: str) -> None:
    verb = VERBS[name]
    verb.prepare(line, "whole")
    with requests_of(s3.proxy) as made:
        verb.run(line, "whole")
    for at in range(1, made.counts["PUT"] + 1):
        for forward in (True, False):
            cut(s3, line, verb, f"cut-{at}-{forward}", at, forward=forward)


@pytest.mark.parametrize(
    ("name", "at"), [("append-1", 3), ("update-1", 2), ("rewrite-1", 5), ("branch-create", 4)]
)
def test_a_client_cut_off_at_some_puts(s3: S3, line: Line, name: str, at: int) -> None:
    cut(s3, line, VERBS[name], "cut", at, forward=True)


def _puts(s3: S3, action: Callable[[], object]) -> int:
    with requests_of(s3.proxy) as made:
        action()
    return made.counts["PUT"]


def cut_init(s3: S3, url: str, at: int, *, forward: bool) -> None:
    """Cut an init off at one PUT: there is a graph, or none and it can be made."""
    rule = s3.proxy.cut(at, "PUT", forward=forward)
    told = "done"
    try:
        make_graph(open_store(url))
    except OmnigraphError as error:
        told = error.effect
    s3.proxy.heal()
    assert rule.hit.is_set()
    store = open_store(url)
    if manifest_exists(store):
        assert told != "none"
        with pytest.raises(AlreadyExists):
            make_graph(store, force=True)
    else:
        assert told != "done"
        make_graph(store, force=True)
    assert write(line_at(url), append({"next": 0})) is not None
    check_invariants(url)


@pytest.mark.parametrize("forward", [True, False])
def test_an_init_cut_off_at_its_first_state(s3: S3, line: Line, forward: bool) -> None:
    count = _puts(s3, lambda: make_graph(open_store(f"{s3.url}-whole")))
    cut_init(s3, f"{s3.url}-cut", count, forward=forward)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_an_init_cut_off_at_any_put(s3: S3, line: Line) -> None:
    count = _puts(s3, lambda: make_graph(open_store(f"{s3.url}-whole")))
    for at in range(1, count + 1):
        for forward in (True, False):
            cut_init(s3, f"{s3.url}-cut-{at}-{forward}", at, forward=forward)


def cut_copy(s3: S3, line: Line, target: str, at: int, *, forward: bool) -> None:
    """Cut a copy off at one PUT: the source is as it was, the copy is whole or refused."""
    before = shape(s3.url)
    rule = s3.proxy.cut(at, "PUT", forward=forward)
    with pytest.raises(OmnigraphError):
        copy_graph(line.store, open_store(target))
    s3.proxy.heal()
    assert rule.hit.is_set()
    assert shape(s3.url) == before
    store = open_store(target)
    if not manifest_exists(store):
        with pytest.raises(GraphNotInitialized):
            graphs.open(target)
        for one in store.objects.list(""):
            store.objects.remove(one.name)
        copy_graph(line.store, store)
    assert shape(target) == before
    assert write(line_at(target), append({"next": 0})) is not None
    check_invariants(target)


def _with_history(line: Line) -> None:
    write(line, append({"a": 1}), TABLES)
    write(create_branch(line.store, "side", line), append({"s": 1}))


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_copy_cut_off_at_any_put(s3: S3, line: Line) -> None:
    _with_history(line)
    count = _puts(s3, lambda: copy_graph(line.store, open_store(f"{s3.url}-whole")))
    for at in range(1, count + 1):
        for forward in (True, False):
            cut_copy(s3, line, f"{s3.url}-cut-{at}-{forward}", at, forward=forward)


def test_a_copy_cut_off_at_its_last_puts(s3: S3, line: Line) -> None:
    _with_history(line)
    count = _puts(s3, lambda: copy_graph(line.store, open_store(f"{s3.url}-whole")))
    cut_copy(s3, line, f"{s3.url}-there", count, forward=True)
    cut_copy(s3, line, f"{s3.url}-not", count, forward=False)
