"""A small social graph, and helpers to change and read it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.writes.mutate import WriteOutcome, run_mutation
from omnigraph.history.branch_state import BranchState
from omnigraph.history.snapshot import load_snapshot
from omnigraph.ingest.load import LoadOutcome, load
from omnigraph.lang.query import compile_query
from omnigraph.storage.find_rows import read_rows
from omnigraph.values.table_key import TableKey

SCHEMA = """
node User {
    login: String @key
    mail: String? @unique
    age: I32?
    role: enum(admin, user)?
    bio: String?
    score: F64?
    pic: Blob?
    joined: DateTime?
    @range(age, 0..150)
    @check(login, "^[a-z]+$")
}
node Event { title: String  at: DateTime  v: Vector(2)? }
node Slot { room: String  day: Date  @key(room, day) }
edge Follows: User -> User { since: Date?  @unique(src, dst) }
edge Owns: User -> Event @card(0..2)
edge Hosts: User -> Slot @card(1..)
"""
DATA = b"""
{"type": "User", "data": {"login": "ann", "mail": "a@x", "age": 30, "bio": "hi"}}
{"type": "User", "data": {"login": "bob"}}
{"edge": "Follows", "from": "ann", "to": "bob"}
"""


class World:
    """A graph and what tests do with it."""

    def __init__(self, root: Path, schema: str = SCHEMA, data: bytes = DATA) -> None:
        self.graph = omnigraph.init(root, schema, durability="os")
        self.line: BranchState = self.graph._handle.branch_state
        if data:
            self.load(data)

    def do(self, statements: str, given: dict[str, Any] | None = None, **how: Any) -> WriteOutcome:
        """Run statements; `$` parameters are declared in front of them by ` | `."""
        declared, _, body = statements.rpartition(" | ")
        text = f"query q({declared}) {{ {body} }}"
        query = compile_query(text, self.graph.schema.ir.catalog)
        return run_mutation(self.line, query, given or {}, **how)

    def load(self, data: Any, mode: Any = "append", **how: Any) -> LoadOutcome:
        """Load something."""
        return load(self.line, data, mode, **how)

    def rows(self, key: str) -> list[dict[str, Any]]:
        """All rows of a table, by id."""
        shown = load_snapshot(self.line.store, self.line)
        table = shown.table(TableKey(key))
        found = read_rows(table, table.schema.names).to_pylist()
        return sorted(found, key=lambda one: str(one["id"]))

    def ids(self, key: str) -> list[str]:
        """All ids of a table."""
        return [one["id"] for one in self.rows(key)]

    def user(self, login: str) -> dict[str, Any]:
        """One user."""
        return next(one for one in self.rows(TableKey("node:User")) if one["id"] == login)

    @property
    def head(self) -> str:
        """The newest commit."""
        return self.line.refresh().state.head.commit_id


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "g")


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], World]:
    return lambda schema: World(tmp_path / "g", schema, b"")
