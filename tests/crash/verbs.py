"""What is cut off in the matrix: every verb that writes, and the graphs that they start from.

A graph is made once and copied for every cut, since a quiet root can be copied.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from omnigraph.errors import RecoveryRequired
from omnigraph.history import intent as intents
from omnigraph.history.branches import create_branch, delete_branch, open_line
from omnigraph.history.copy import copy_graph
from omnigraph.history.log import Log
from omnigraph.history.manifest import manifest_exists
from omnigraph.history.recover import recover
from omnigraph.storage.effects import Fault
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Store, open_store
from tests.rig.writes import (
    PERSON,
    TABLES,
    Change,
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

OVERDUE = timedelta(seconds=-1)
EXIT = 9
_COPY = ".copy"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb, the name of the graph that it starts from, and what it makes beside that, if so."""

    run: Callable[[Store], object]
    start: str = "base"
    beside: str = ""

    def made_at(self, root: str) -> str:
        """Where the verb shows what it did."""
        return f"{root}{self.beside}"


def _changes(name: str, change: Change) -> dict[str, Verb]:
    def on(keys: tuple[str, ...]) -> Verb:
        return Verb(lambda store: write(open_line(store, MAIN), change, keys))

    return {f"{name}-1": on((PERSON,)), f"{name}-3": on(TABLES)}


def _create_from_past(store: Store) -> None:
    line = open_line(store, MAIN)
    state = line.base().state
    *_, oldest = Log(store, state).first_parents(state.head.commit_id)
    create_branch(store, "past", line, commit_id=oldest.id)


def copy_beside(store: Store) -> None:
    """Copy a whole graph; effects of both places are counted together, the source has none."""
    target = f"{store.root.uri}{_COPY}"
    copy_graph(store, open_store(target, effects=store.effects, durability="os"))


VERBS: dict[str, Verb] = {
    "init": Verb(make_graph, "empty"),
    **_changes("append", append({"new": 7})),
    **_changes("upsert", upsert({"a": 7, "new": 7})),
    **_changes("update", update({"a": 7})),
    **_changes("delete", delete(["a"])),
    **_changes("overwrite", overwrite({"only": 7})),
    **_changes("rewrite", rewrite()),
    "branch-create": Verb(lambda s: create_branch(s, "fresh", open_line(s, MAIN))),
    "branch-create-past": Verb(_create_from_past),
    "branch-delete": Verb(lambda s: delete_branch(s, "side")),
    "copy": Verb(copy_beside, beside=_COPY),
    "long-append-3": Verb(lambda s: write_long(open_line(s, MAIN), append({"new": 7}), TABLES)),
    "long-rewrite-3": Verb(lambda s: write_long(open_line(s, MAIN), rewrite(), TABLES)),
    "recover-confirmed": Verb(recover, "confirmed"),
    "recover-refused": Verb(recover, "contested"),
    "recover-armed": Verb(recover, "armed"),
    "recover-creation": Verb(recover, "creating"),
}


def make_start(name: str, place: Path) -> Path:
    """The graph that some verbs start from, made in a directory once."""
    root = place / name
    if not root.exists():
        if name == "base":
            _make_base(root)
        elif name == "empty":
            root.mkdir(parents=True)
        else:
            shutil.copytree(make_start("base", place), root)
            _cut_off[name](root)
    return root


def _make_base(root: Path) -> None:
    init_small(root)
    line = line_at(root)
    write(line, append({"a": 1, "b": 2}), TABLES)
    write(line, append({"c": 3}), TABLES)
    side = create_branch(line.store, "side", line)
    write(side, append({"s": 4}))


def _confirm(root: Path) -> None:
    line = line_at(root)
    # Seven effects: the intent, three staged tables, the confirmation; the sixth is the verdict.
    with line.store.effects.failing(Fault(6, "before")), suppress(RecoveryRequired):
        write_long(line, append({"new": 7}), TABLES)


def _contest(root: Path) -> None:
    """Confirmed, but somebody else has taken an id meanwhile: it can only be refused."""
    _confirm(root)
    write(line_at(root), append({"new": 1}))


def _arm(root: Path) -> None:
    line = line_at(root)
    intent = intents.Intent("01J00000000000000000000000", "load", MAIN, MAIN, "", 0, commit_id="x")
    intents.arm(line.store, intent)


def _begin_creation(root: Path) -> None:
    line = line_at(root)
    head = line.base().state.head.commit_id
    intent = intents.Intent(
        "01J00000000000000000000000",
        "branch_create",
        MAIN,
        MAIN,
        head,
        0,
        creates="01J00000000000000000000001",
        facts={"name": "fresh"},
    )
    intents.arm(line.store, intent)
    intents.decide(line.store, intent, "publish")


_cut_off = {
    "confirmed": _confirm,
    "contested": _contest,
    "armed": _arm,
    "creating": _begin_creation,
}


def end_after(verb: str, root: str, at: int) -> None:
    """Run a verb in a process of its own, which ends right after its `at`-th effect."""
    intents.LEASE = OVERDUE
    store = open_store(root, durability="os")
    with store.effects.failing(Fault(at, "exit")):
        VERBS[verb].run(store)
    os._exit(0)


def write_elsewhere(root: str, row: str) -> str:
    """One more write by a process that knows nothing of what happened; the id of its commit."""
    from omnigraph import graph as graphs

    with overdue():  # some call this in their own process
        store = open_store(root, durability="os")
        if not manifest_exists(store):
            make_graph(store, force=True)
        graphs.open(root, durability="os")
        commit = write(line_at(root), append({row: 0}))
    return commit.id if commit is not None else ""


@contextmanager
def overdue() -> Iterator[None]:
    """Every lease has run out, as if much time had passed."""
    lease, intents.LEASE = intents.LEASE, OVERDUE
    try:
        yield
    finally:
        intents.LEASE = lease
