"""A feed consumer that may crash anywhere and keeps only what it has persisted.

Owns what such a reader does: it applies whole commits by their ids, and keeps a cursor, perhaps an
older one than it could. It knows nothing of the graph but what the feed tells.
"""

import json
from random import Random
from typing import Any

from omnigraph import Graph

Row = dict[str, Any]


class Consumer:
    """A copy of a branch, made of what its feed tells. Rows, commits and the cursor are durable."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.rows: dict[tuple[str, str, str], Row] = {}
        self.seen: list[str] = []
        self.cursor: str | None = None
        self.repeated = 0

    def take_baseline(self, graph: Graph) -> bool:
        """Read everything; cut off on the way there is no cursor, and nothing is kept."""
        made = graph.changes.baseline()
        rows = {}
        for record in made:
            if self.dice.random() < 0.02:
                assert made.cursor is None
                return False
            rows[_key(record)] = _row(record)
        self.rows, self.cursor, self.seen = rows, made.cursor, [made.commit_id]
        return True

    def begin(self, graph: Graph) -> None:
        """Note where it begins before anything is read: a cursor knows its branch."""
        if self.cursor is None:
            self.cursor = graph.changes.feed("beginning").cursor

    def read_blocks(self, graph: Graph) -> None:
        """Read by `changes`, and stop somewhere; the cursor is not always kept in time."""
        self.begin(graph)
        for block in graph.changes.feed(cursor=self.cursor):
            if self.dice.random() < 0.2:
                return
            document = block.to_json()
            self.apply(block.commit.id, document["changes"], document.get("schema_change"))
            if self.dice.random() < 0.2:
                return
            self.cursor = block.cursor

    def read_pages(self, graph: Graph) -> None:
        """Read by pages of a few changes; what was read of a commit half told is forgotten."""
        limit = self.dice.choice((1, 2, 3, 1000))
        self.begin(graph)
        page = graph.changes.poll(cursor=self.cursor, limit=limit)
        parts: dict[str, list[Any]] = {}
        schemas: dict[str, Any] = {}
        while True:
            for part in page.blocks:
                parts.setdefault(part.commit.id, []).extend(part.documents)
                if part.schema_change is not None:
                    assert part.commit.id not in schemas
                    schemas[part.commit.id] = part.schema_change.to_json()
            if self.dice.random() < 0.2:
                return
            if page.cursor is not None:
                for commit_id, documents in parts.items():
                    self.apply(commit_id, documents, schemas.get(commit_id))
                if self.dice.random() < 0.2:
                    return
                self.cursor, parts = page.cursor, {}
                if page.caught_up:
                    return
            where: Any = {"cursor": page.cursor, "page_token": page.next_page_token}
            page = graph.changes.poll(**where, limit=limit)

    def apply(self, commit_id: str, documents: list[Any], schema_change: Any = None) -> None:
        """A whole commit, once: what comes again must be what came before."""
        if commit_id in self.seen:
            self.repeated += 1
            return
        self.seen.append(commit_id)
        for step in schema_change["steps"] if schema_change is not None else ():
            self.migrate(step)
        for one in documents:
            key = one["kind"], one["type"]["name"], one["id"]
            assert self.rows.get(key) == _image(one.get("before")), "not what was there before"
            after = _image(one.get("after"))
            if after is None:
                del self.rows[key]
            else:
                self.rows[key] = after

    def migrate(self, step: Any) -> None:
        """A step of a schema change: properties get other names, or go."""
        for (kind, type_name, _), row in self.rows.items():
            if (kind, type_name) == (step["type_kind"], step.get("type_name")):
                if step["kind"] == "rename_property" and step["from"] in row:
                    row[step["to"]] = row.pop(step["from"])
                elif step["kind"] == "drop_property":
                    row.pop(step["property_name"], None)


def exported(graph: Graph) -> dict[tuple[str, str, str], Row]:
    """What a graph holds, as a consumer would have it."""
    records = [json.loads(line) for line in graph.export(iso_dates=True)]
    return {_key(one): _row(one) for one in records}


def _image(told: Any) -> Row | None:
    return told and _known({**told["properties"], **told.get("endpoints", {})})


def _known(row: Row) -> Row:
    """A row without nulls: a property that was added later is null in rows that were copied before."""
    return {name: value for name, value in row.items() if value is not None}


def _key(record: Row) -> tuple[str, str, str]:
    kind = "node" if "type" in record else "edge"
    return kind, record["type"] if kind == "node" else record["edge"], record["data"]["id"]


def _row(record: Row) -> Row:
    data = {name: value for name, value in record["data"].items() if name != "id"}
    return _known(data | {name: record[name] for name in ("from", "to") if name in record})
