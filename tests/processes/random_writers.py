"""Random writers that run until killed, and the replay that validates the result.

Every write says in its message what it does, so that the content of any commit follows from the
messages of the commits it stands on.
"""

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

from omnigraph.errors import Conflict, NotFound, RecoveryRequired
from omnigraph.history import branches
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.publish import branch_lifecycle, intent, long_operations, next_state, publish, recover
from omnigraph.publish import swap as swapping
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage.store import Store, open_store
from tests.rig.writes import PERSON, Change, append, delete, overwrite, rewrite, update, upsert, write, write_long

_KINDS = ("append", "append", "append", "upsert", "update", "delete", "overwrite", "rewrite")
_BRANCHES = 3
_LEASE = timedelta(seconds=0.3)  # so short that living owners are taken for dead now and then
Rows = dict[str, int]


def _replay_everything() -> None:
    """A write that lost is tried again as it is, whatever changed meanwhile."""
    for module in (next_state, long_operations):
        _put(module, "can_replay", lambda *_: True)
    _put(publish, "_plan_still_holds", lambda *_: True)


def _acknowledge_the_lost() -> None:
    """A swap that was lost is told as one that landed."""
    real: Any = swapping.verify_commit_landed

    def look(*args: Any) -> bool:
        real(*args)
        return True

    _put(swapping, "verify_commit_landed", look)


def _put(module: Any, name: str, instead: Any) -> None:
    """Replace a function for the rest of this process."""
    assert hasattr(module, name)
    setattr(module, name, instead)


# What is broken on purpose, to see that it is noticed.
DEFECTS: dict[str, Callable[[], None]] = {
    "": lambda: None,
    "replay": _replay_everything,
    "acknowledge": _acknowledge_the_lost,
}


def rove(root: str, seed: int, times: int, told: str, defect: str = "") -> None:
    """Do random things; what was acknowledged or refused is noted in a file, line by line."""
    DEFECTS[defect]()
    intent.LEASE_DURATION = _LEASE
    dice = Random(seed)
    store = open_store(root, durability="os")
    notes = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for n in range(times):
        with suppress(NotFound):
            what = dice.random()
            if what < 0.1:
                recover.recover(store)
            elif what < 0.3:
                _branch(store, dice, f"b{seed}-{n}")
            else:
                name = dice.choice(branches.list_branches(store))
                _write(branches.open_branch(store, name), dice, f"{seed}-{n}", notes)


def _branch(store: Store, dice: Random, name: str) -> None:
    names = branches.list_branches(store)
    if len(names) > _BRANCHES:
        branch_lifecycle.delete_branch(store, dice.choice([one for one in names if one != "main"]))
    else:
        source = branches.open_branch(store, dice.choice(names))
        with suppress(Conflict):
            branch_lifecycle.create_branch(store, name, source)


def _write(line: BranchState, dice: Random, who: str, notes: int) -> None:
    kind = dice.choice(_KINDS)
    known = [f"r{n}" for n in range(6)]
    rows = {one: dice.randrange(100) for one in dice.sample(known, dice.randint(1, 3))}
    if kind == "append":
        rows = {f"{who}-{n}": n for n in range(dice.randint(1, 2))}
    message = json.dumps({"who": who, "kind": kind, "rows": rows})
    how = write_long if dice.random() < 0.25 else write
    try:
        made = how(line, _change(kind, rows), [PERSON], CommitMetadata(message=message))
    except Conflict:
        _note(notes, who, "refused", line.name, None)
    except RecoveryRequired:
        _note(notes, who, "open", line.name, None)
    else:
        _note(notes, who, "written" if made else "nothing", line.name, made)


def _change(kind: str, rows: Rows) -> Change:
    if kind == "delete":
        return delete(rows)
    if kind == "rewrite":
        return rewrite()
    return {"append": append, "upsert": upsert, "update": update, "overwrite": overwrite}[kind](rows)


def _note(notes: int, who: str, outcome: str, branch: str, made: Commit | None) -> None:
    facts = [who, outcome, branch, made.id if made else None]
    os.write(notes, (json.dumps(facts) + "\n").encode())


def replay(chain: Iterable[Commit]) -> tuple[Rows, list[str]]:
    """The rows that commits make, oldest first, and who wrote them."""
    rows: Rows = {}
    writers: list[str] = []
    for one in chain:
        if one.message is None or one.operation == "init":
            continue
        facts = json.loads(one.message)
        writers.append(facts["who"])
        rows = _apply(rows, facts)
    return rows, writers


def _apply(rows: Rows, facts: dict[str, Any]) -> Rows:
    kind, given = facts["kind"], facts["rows"]
    if kind in ("append", "upsert"):
        return {**rows, **given}
    if kind == "update":
        return {name: given.get(name, n) for name, n in rows.items()}
    if kind == "delete":
        return {name: n for name, n in rows.items() if name not in given}
    return dict(given) if kind == "overwrite" else rows
