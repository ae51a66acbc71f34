"""Writers that do random things until they are killed, and the replay that judges what is left.

Every write says in its message what it does, so that the content of any commit follows from the
messages of the commits it stands on.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any

from omnigraph.errors import Conflict, NotFound
from omnigraph.history import branches
from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.plan import Signature
from omnigraph.storage.store import Store, open_store
from tests.rig.writes import (
    PERSON,
    Change,
    append,
    delete,
    overwrite,
    rewrite,
    update,
    upsert,
    write,
)

_KINDS = ("append", "append", "append", "upsert", "update", "delete", "overwrite", "rewrite")
_BRANCHES = 3
Rows = dict[str, int]


def rove(root: str, seed: int, times: int, told: str) -> None:
    """Do random things; what was acknowledged or refused is noted in a file, line by line."""
    dice = Random(seed)
    store = open_store(root, durability="os")
    notes = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for n in range(times):
        with suppress(NotFound):
            if dice.random() < 0.2:
                _branch(store, dice, f"b{seed}-{n}")
            else:
                name = dice.choice(branches.list_branches(store))
                _write(branches.open_line(store, name), dice, f"{seed}-{n}", notes)


def _branch(store: Store, dice: Random, name: str) -> None:
    names = branches.list_branches(store)
    if len(names) > _BRANCHES:
        branches.delete_branch(store, dice.choice([one for one in names if one != "main"]))
    else:
        source = branches.open_line(store, dice.choice(names))
        with suppress(Conflict):
            branches.create_branch(store, name, source)


def _write(line: Line, dice: Random, who: str, notes: int) -> None:
    kind = dice.choice(_KINDS)
    known = [f"r{n}" for n in range(6)]
    rows = {one: dice.randrange(100) for one in dice.sample(known, dice.randint(1, 3))}
    if kind == "append":
        rows = {f"{who}-{n}": n for n in range(dice.randint(1, 2))}
    message = json.dumps({"who": who, "kind": kind, "rows": rows})
    try:
        made = write(line, _change(kind, rows), [PERSON], Signature(message=message))
    except Conflict:
        _note(notes, who, "refused", line.name, None)
    else:
        _note(notes, who, "written" if made else "nothing", line.name, made)


def _change(kind: str, rows: Rows) -> Change:
    if kind == "delete":
        return delete(rows)
    if kind == "rewrite":
        return rewrite()
    return {"append": append, "upsert": upsert, "update": update, "overwrite": overwrite}[kind](
        rows
    )


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
