"""The same on S3: the client is cut off at its k-th PUT, inside whatever call of Lance sends it.

Before the cut the request may reach the store or not; after it nothing is answered any more.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from omnigraph import graph as graphs
from omnigraph.errors import OmnigraphError
from omnigraph.history.branches import create_branch, delete_branch, list_branches, open_line
from omnigraph.history.line import Line
from omnigraph.storage import root as roots
from omnigraph.storage.layout import MAIN
from tests.crash.matrix import overdue, shape
from tests.rig.invariants import check_invariants
from tests.rig.plugin import S3
from tests.rig.proxy import requests_of
from tests.rig.writes import (
    TABLES,
    append,
    init_small,
    line_at,
    overwrite,
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


VERBS: dict[str, Verb] = {
    "append-1": Verb(lambda line, name: write(line, append({name: 1}))),
    "append-3": Verb(lambda line, name: write(line, append({name: 1}), TABLES)),
    "upsert-1": Verb(
        lambda line, name: write(line, upsert({f"old-{name}": 2, name: 1})),
        lambda line, name: write(line, append({f"old-{name}": 1})),
    ),
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
    assert write(line, append({f"next-{name}": 0})) is not None
    with overdue():
        graphs.open(s3.url)
        for one in list_branches(line.store):
            if one != MAIN and one.startswith("cut"):
                _met(line, one)
    left = shape(s3.url, {f"next-{name}"})
    assert left.rows in (before.rows, _after(s3, line, verb, name, before.rows, left.rows))
    if told == "none":
        assert left.rows == before.rows
    if told == "done":
        assert left.rows != before.rows
    check_invariants(s3.url)


def _met(line: Line, name: str) -> None:
    """Meet a branch whose deletion may have been cut off between its end and its name."""
    try:
        open_line(line.store, name)
    except OmnigraphError:
        assert name not in list_branches(line.store)


def _after(s3: S3, line: Line, verb: Verb, name: str, before: object, left: object) -> object:
    """What the verb makes of the graph: if it is not there yet, the verb is run once more."""
    if left == before:
        verb.run(line, name)
        again = shape(s3.url, {f"next-{name}"})
        assert again.rows != before
        return again.rows
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


@pytest.mark.parametrize("forward", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_client_cut_off_in_a_detached_commit(s3: S3, line: Line, forward: bool) -> None:
    cut(s3, line, VERBS["append-1"], "cut", 3, forward=forward)
