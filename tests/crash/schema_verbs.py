"""Schema applications of the crash matrix, and the graphs they start from."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.errors import RecoveryRequired
from omnigraph.evolve.apply import apply_plan
from omnigraph.evolve.proposal import propose_schema
from omnigraph.history.branches import open_branch
from omnigraph.history.schemas import read_schema
from omnigraph.publish.recover import recover
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage.effects import Fault
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Store
from tests.rig.writes import CITY, PERSON, SCHEMA, line_at, upsert, write

_NOTED = SCHEMA.replace("node Person { n: I64? }", "node Person { n: I64?  note: String? }")
_LEVELLED = SCHEMA.replace("node Person { n: I64? }", "node Person { n: I64?  level: I32 @default(3) }")
# A column without values, a new table, a table that goes: nothing has to be written again.
_QUICK = """
node Person { n: I64?  note: String? }
node City { n: I64? }
node Pet { n: I64? }
"""
# A column with values, and a table that gets another name: a long operation.
_FILLED = """
node Person { n: I64?  level: I32 @default(3) }
node Town @rename_from("City") { n: I64? }
edge LivesIn: Person -> Town { n: I64? }
"""


def apply_schema(source: str, *, hard: bool = False, branch: str = MAIN) -> Callable[[Store], object]:
    """Gives a branch another schema."""

    def run(store: Store) -> object:
        line = open_branch(store, branch)
        row = line.refresh().state.schema
        plan = propose_schema(row, read_schema(store, row), source, allow_data_loss=hard)
        return apply_plan(line, plan, CommitMetadata())

    return run


def _note(root: Path) -> None:
    apply_schema(_NOTED)(line_at(root).store)


def _reshape_both(root: Path) -> None:
    """Each branch has another schema, with a new column, and rows of its own."""
    main, side = line_at(root), line_at(root, "side")
    write(side, upsert({"a": 7, "t": 5}), (PERSON, CITY))
    write(main, upsert({"b": 8, "m": 6}), (PERSON, CITY))
    apply_schema(_LEVELLED, branch="side")(side.store)
    apply_schema(_NOTED)(main.store)


def _confirm(root: Path) -> None:
    store = line_at(root).store
    # The intent, a data file, two versions, the schema, the confirmation; then the verdict.
    with store.effects.failing(Fault(7, "before")), suppress(RecoveryRequired):
        apply_schema(_FILLED)(store)


def _dispute(root: Path) -> None:
    """The schemas contradict each other: a number of another type, a column that one branch drops and one fills.

    The other branch also adds a rule, a name, and a keyed edge type with an edge.
    """
    main: Any = omnigraph.open(root, durability="os")
    side = main.checkout("side")
    theirs = """
    node Person { n: I64?  level: F64?  @range(n, 0..100) }
    node City { size: I64? @rename_from("n") }
    edge LivesIn: Person -> City { n: I64? }
    edge Likes: Person -> City { kind: String  @key(src, kind) }
    """
    side.schema.apply(theirs)
    side.load([{"type": "Person", "data": {"id": "a", "n": 7, "level": 1.5}}], mode="merge")
    side.load([{"type": "City", "data": {"id": "b", "size": 9}}], mode="merge")
    side.load([{"edge": "Likes", "from": "a", "to": "b", "data": {"kind": "x"}}], mode="append")
    ours = SCHEMA.replace("Person { n: I64? }", "Person { n: I64?  level: I32? }")
    main.schema.apply(ours.replace("City { n: I64? }", "City {}"))
    main.load([{"type": "Person", "data": {"id": "b", "n": 8, "level": 2}}], mode="merge")


# What is run, where it starts, and whether nobody may write between the cut and the recovery.
SCHEMA_VERBS: dict[str, tuple[Callable[[Store], object], str, bool]] = {
    "schema-quick": (apply_schema(_QUICK), "base", False),
    "schema-filled": (apply_schema(_FILLED), "base", True),
    "schema-overtaken": (apply_schema(_FILLED), "base", False),
    "schema-hard": (apply_schema(SCHEMA, hard=True), "noted", True),
    "recover-schema": (recover, "reshaping", True),
}
SCHEMA_STARTS = {"noted": _note, "reshaping": _confirm, "reshaped": _reshape_both, "disputed": _dispute}
