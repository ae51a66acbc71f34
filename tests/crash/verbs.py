"""The verbs of the crash matrix: every verb that writes, and the graphs they start from.

A graph is made once and copied for every cut, since a quiet root can be copied.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from omnigraph.errors import RecoveryRequired, StorageError
from omnigraph.history.branches import open_branch
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import manifest_exists
from omnigraph.history.revisions import resolve_revision
from omnigraph.history.snapshot import load_snapshot
from omnigraph.maintenance.copy import copy_graph
from omnigraph.merging.merge import MergeRequest, merge
from omnigraph.merging.replay import ReplayKind, replay
from omnigraph.merging.reset import reset
from omnigraph.merging.strategy import Strategy
from omnigraph.publish import intent as intents
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.recover import recover
from omnigraph.publish.rename import rename_branch
from omnigraph.publish.tag_lifecycle import create_tag, delete_tag
from omnigraph.storage.effects import Fault
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Store, open_store
from omnigraph.values.table_key import TableKey
from tests.crash.maintenance_verbs import UPKEEP_STARTS, UPKEEP_VERBS
from tests.crash.schema_verbs import SCHEMA_STARTS, SCHEMA_VERBS
from tests.crash.verb import Verb
from tests.rig.writes import (
    CITY,
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


def _changes(name: str, change: Change) -> dict[str, Verb]:
    def on(keys: tuple[TableKey, ...]) -> Verb:
        return Verb(lambda store: write(open_branch(store, MAIN), change, keys))

    return {f"{name}-1": on((PERSON,)), f"{name}-3": on(TABLES)}


def _create_from_past(store: Store) -> None:
    line = open_branch(store, MAIN)
    state = line.last_known().state
    *_, oldest = HistoryLog(store, state).first_parents(state.head.commit_id)
    create_branch(store, "past", line, commit_id=oldest.id)


def _again(way: ReplayKind, point: str) -> Verb:
    """A commit made again, or taken back, on main."""

    def run(store: Store) -> None:
        line = open_branch(store, MAIN)
        shown = resolve_revision(store, line, load_snapshot(store, line), point)
        replay(way, line, shown, MergeRequest())

    return Verb(run)


def _reset_main(store: Store) -> None:
    """Main gets the state of the commit before its newest one."""
    line = open_branch(store, MAIN)
    past = resolve_revision(store, line, load_snapshot(store, line), "HEAD~1")
    reset(line, past, line, MergeRequest())


def _tag_past(store: Store) -> None:
    line = open_branch(store, MAIN)
    past = resolve_revision(store, line, load_snapshot(store, line), "HEAD~1")
    create_tag(store, "v1", line, commit_id=past.commit_id)


def copy_beside(store: Store) -> None:
    """Copy a whole graph; effects of both places are counted together, the source has none."""
    target = f"{store.root.uri}{_COPY}"
    copy_graph(store, open_store(target, effects=store.effects, durability="os"))


def merge_side(store: Store, strategy: Strategy = None) -> None:
    """Merge the branch of the base into main."""
    merge(open_branch(store, "side"), open_branch(store, MAIN), MergeRequest(strategy=strategy))


VERBS: dict[str, Verb] = {
    "init": Verb(make_graph, "empty"),
    **_changes("append", append({"new": 7})),
    **_changes("upsert", upsert({"a": 7, "new": 7})),
    **_changes("update", update({"a": 7})),
    **_changes("delete", delete(["a"])),
    **_changes("overwrite", overwrite({"only": 7})),
    **_changes("rewrite", rewrite()),
    "branch-create": Verb(lambda s: create_branch(s, "fresh", open_branch(s, MAIN))),
    "branch-create-past": Verb(_create_from_past),
    "branch-delete": Verb(lambda s: delete_branch(s, "side")),
    "branch-rename": Verb(lambda s: rename_branch(s, "side", "other")),
    "tag-create": Verb(lambda s: create_tag(s, "v1", open_branch(s, MAIN))),
    "tag-create-past": Verb(_tag_past),
    "tag-delete": Verb(lambda s: delete_tag(s, "old"), "tagged"),
    "revert": _again("revert", "HEAD"),
    "cherry-pick": _again("cherry_pick", "side"),
    "branch-reset": Verb(_reset_main, alone=True),
    "copy": Verb(copy_beside, beside=_COPY),
    "long-append-3": Verb(lambda s: write_long(open_branch(s, MAIN), append({"new": 7}), TABLES)),
    "long-rewrite-3": Verb(lambda s: write_long(open_branch(s, MAIN), rewrite(), TABLES)),
    "merge-forward": Verb(merge_side, alone=True),
    "merge": Verb(merge_side, "apart", alone=True),
    "merge-decided": Verb(lambda s: merge_side(s, "theirs"), "clashing", alone=True),
    "merge-overtaken": Verb(merge_side, "apart"),
    "merge-schemas": Verb(merge_side, "reshaped", alone=True),
    "merge-disputed": Verb(lambda s: merge_side(s, "theirs"), "disputed", alone=True),
    "recover-confirmed": Verb(recover, "confirmed"),
    "recover-refused": Verb(recover, "contested"),
    "recover-armed": Verb(recover, "armed"),
    "recover-creation": Verb(recover, "creating"),
    "recover-rename": Verb(recover, "renaming"),
    **{name: Verb(run, at, alone=a) for name, (run, at, a) in SCHEMA_VERBS.items()},
    **UPKEEP_VERBS,
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


def _go_apart(root: Path) -> None:
    """Both branches change rows of two types, and each a row of its own type."""
    main, side = line_at(root), line_at(root, "side")
    write(side, upsert({"a": 7, "t": 5}), (PERSON, CITY))
    write(main, upsert({"b": 8, "m": 6}), (PERSON, CITY))
    write(main, delete(["c"]))


def _clash(root: Path) -> None:
    """Both branches give another value to the same rows."""
    _go_apart(root)
    write(line_at(root), upsert({"a": 9}), (PERSON, CITY))


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
    head = line.last_known().state.head.commit_id
    intent = intents.Intent(
        "01J00000000000000000000000",
        "branch_create",
        MAIN,
        MAIN,
        head,
        0,
        created_ulid="01J00000000000000000000001",
        facts={"name": "fresh"},
    )
    intents.arm(line.store, intent)
    intents.decide(line.store, intent, "publish")


def _begin_rename(root: Path) -> None:
    store = line_at(root).store
    # The intent, the verdict, the new name; the fourth effect closes the old one.
    with store.effects.failing(Fault(4, "before")), suppress(StorageError):
        rename_branch(store, "side", "other")


def _tag(root: Path) -> None:
    line = line_at(root)
    create_tag(line.store, "old", line)


_cut_off = {
    **SCHEMA_STARTS,
    **UPKEEP_STARTS,
    "apart": _go_apart,
    "clashing": _clash,
    "renaming": _begin_rename,
    "tagged": _tag,
    "confirmed": _confirm,
    "contested": _contest,
    "armed": _arm,
    "creating": _begin_creation,
}


def end_after(verb: str, root: str, at: int) -> None:
    """Run a verb in a process of its own, which ends right after its `at`-th effect."""
    intents.LEASE_DURATION = OVERDUE
    store = open_store(root, durability="os")
    with store.effects.failing(Fault(at, "exit")):
        VERBS[verb].run(store)
    os._exit(0)


def write_elsewhere(root: str, row: str) -> str:
    """One more write by a process that knows nothing of what happened; the id of its commit."""
    from omnigraph.api import opening as graphs

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
    lease, intents.LEASE_DURATION = intents.LEASE_DURATION, OVERDUE
    try:
        yield
    finally:
        intents.LEASE_DURATION = lease
