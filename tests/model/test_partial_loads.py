"""Random loads by patch and delete leave what dictionaries have, on both storage paths of a patch."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph, LoadReport, Receipt
from omnigraph.ingest import delete_rows, patch_rows
from omnigraph.storage import patch_columns

SCHEMA = """
node Person { name: String @key  age: I32?  score: F64?  tags: [String]?  vec: Vector(2)?  rank: I32? @unique }
node Note { text: String?  count: I64? }
edge Knows: Person -> Person { since: I32?  note: String? }
edge Wrote: Person -> Note { year: I32? }
"""
PROPERTIES: dict[str, dict[str, Callable[[Random], Any]]] = {
    "Person": {
        "age": lambda random: random.randrange(3),
        "score": lambda random: random.choice([0.0, -0.0, 1.5]),
        "tags": lambda random: random.sample(["a", "b", "null"], random.randrange(3)),
        "vec": lambda random: [float(random.randrange(2)), 1.0],
        "rank": lambda random: random.randrange(40),
    },
    "Note": {"text": lambda random: random.choice(["", "x", "null"]), "count": lambda random: random.randrange(2)},
    "Knows": {"since": lambda random: random.randrange(3), "note": lambda random: random.choice(["", "y"])},
    "Wrote": {"year": lambda random: random.randrange(3)},
}
ENDS = {"Knows": ("Person", "Person"), "Wrote": ("Person", "Note")}
Entities = dict[str, dict[str, dict[str, Any]]]  # properties by type and id; edges have src and dst


class Dictionaries:
    """The expected graph, and random loads for it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.entities: Entities = {type_name: {} for type_name in PROPERTIES}
        for number in range(30):
            self.entities["Person"][f"p{number}"] = {"name": f"p{number}", **self.values("Person", 0.7), "rank": None}
            self.entities["Note"][f"n{number}"] = self.values("Note", 0.7)
        for number in range(60):
            for edge_name, (source, target) in ENDS.items():
                ends = {"src": self.choose(source), "dst": self.choose(target)}
                self.entities[edge_name][f"{edge_name}{number}"] = {**ends, **self.values(edge_name, 0.7)}

    def choose(self, type_name: str) -> str:
        return self.random.choice(sorted(self.entities[type_name]))

    def values(self, type_name: str, share: float) -> dict[str, Any]:
        """Return some properties; absent ones are not in the dictionary."""
        return {
            name: None if self.random.random() < 0.2 else make(self.random)
            for name, make in PROPERTIES[type_name].items()
            if self.random.random() < share
        }

    def names_of(self, type_name: str, entity_id: str) -> dict[str, Any]:
        """Return the members that name an entity: its key, its id, or both."""
        if type_name != "Person" or self.random.random() < 0.3:
            return {"id": entity_id}
        return {"name": entity_id} if self.random.random() < 0.8 else {"name": entity_id, "id": entity_id}

    def patch(self) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
        """Return records that change the dictionaries, and whether they must be rejected."""
        records, changed = [], json.loads(json.dumps(self.entities))
        is_invalid = False
        for type_name in self.random.sample(sorted(PROPERTIES), 2):
            known_ids = sorted(self.entities[type_name])
            for entity_id in self.random.sample(known_ids, min(len(known_ids), self.random.randrange(1, 25))):
                values = self.values(type_name, 0.4)
                records.append((type_name, {**self.names_of(type_name, entity_id), **values}))
                changed[type_name][entity_id] |= values
        if self.random.random() < 0.1:
            is_invalid = True
            records.append(("Note", {"id": "nobody", "text": "x"}))
        ranks = [person["rank"] for person in changed["Person"].values() if person.get("rank") is not None]
        is_invalid |= len(ranks) != len(set(ranks))
        if not is_invalid:
            self.entities = changed
        return records, is_invalid

    def delete(self) -> tuple[list[tuple[str, dict[str, Any]]], dict[str, int], bool]:
        """Return records that name entities, the numbers of missing ones, and whether they must be rejected."""
        records, missing = [], dict[str, int]()
        chosen: dict[str, set[str]] = {type_name: set() for type_name in PROPERTIES}
        is_invalid = False
        for type_name in PROPERTIES:
            known_ids = sorted(self.entities[type_name])
            for entity_id in self.random.sample(known_ids, min(len(known_ids), self.random.randrange(3))):
                entity = self.entities[type_name][entity_id]
                if type_name in ENDS and self.random.random() < 0.5:
                    ends = {"src": entity["src"], "dst": entity["dst"]}
                    same = [i for i, e in self.entities[type_name].items() if ends.items() <= e.items()]
                    is_invalid |= len(same) > 1
                    records.append((type_name, ends))
                else:
                    records.append((type_name, self.names_of(type_name, entity_id)))
                chosen[type_name].add(entity_id)
            if self.random.random() < 0.3:
                records.append((type_name, {"id": "nobody"}))
                missing[type_name] = 1
        if not is_invalid:
            self.remove(chosen)
        return records, missing, is_invalid

    def remove(self, chosen: dict[str, set[str]]) -> None:
        for type_name, ids in chosen.items():
            for entity_id in ids:
                del self.entities[type_name][entity_id]
        for edge_name, (source, target) in ENDS.items():
            nodes = self.entities[source], self.entities[target]
            edges = self.entities[edge_name]
            self.entities[edge_name] = {
                i: edge for i, edge in edges.items() if edge["src"] in nodes[0] and edge["dst"] in nodes[1]
            }


def as_input(random: Random, records: list[tuple[str, dict[str, Any]]]) -> Any:
    """Return records as NDJSON with envelopes or as records by type."""
    if random.random() < 0.3:
        by_type: dict[str, list[dict[str, Any]]] = {}
        for type_name, record in records:
            by_type.setdefault(type_name, []).append(record)
        return by_type
    lines = []
    for type_name, record in records:
        data = dict(record)
        ends = {member: data.pop(column) for member, column in (("from", "src"), ("to", "dst")) if column in data}
        lines.append(json.dumps({"edge" if type_name in ENDS else "type": type_name, **ends, "data": data}))
    return "\n".join(lines).encode()


def contents(graph: Graph) -> Entities:
    entities: Entities = {type_name: {} for type_name in PROPERTIES}
    for line in graph.refresh().export():
        record = json.loads(line)
        ends = {"src": record["from"], "dst": record["to"]} if "edge" in record else {}
        data = {name: value for name, value in record["data"].items() if value is not None}
        entity_id = data.pop("id")
        entities[record.get("edge") or record["type"]][entity_id] = {**ends, **data}
    return entities


def as_text(entities: Entities) -> str:
    """Return entities without nulls as text, which tells 0.0 from -0.0."""
    values = {
        type_name: {i: {name: v for name, v in one.items() if v is not None} for i, one in rows.items()}
        for type_name, rows in entities.items()
    }
    return json.dumps(values, sort_keys=True)


def run_loads(root: Path, seed: int, steps: int, patch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    expected = Dictionaries(random)
    graph = omnigraph.init(root, SCHEMA, durability="os")
    initial = {
        type_name: [{"id": i, **one} for i, one in rows.items()] for type_name, rows in expected.entities.items()
    }
    graph.load(initial, mode="append")
    for _ in range(steps):
        patch.setattr(patch_columns, "MIN_ROWS", random.choice([1, 1_000]))
        before = as_text(expected.entities)
        if random.random() < 0.75:
            records, is_invalid = expected.patch()
            missing = None
        else:
            records, missing, is_invalid = expected.delete()
        mode: Any = "patch" if missing is None else "delete"
        done = graph.load(as_input(random, records), mode=mode, on_error="report")
        assert isinstance(done, LoadReport) == is_invalid, (records, done)
        after = as_text(expected.entities)
        assert as_text(contents(graph)) == after, records
        if isinstance(done, Receipt):
            assert bool(done) == (after != before)
            assert missing is None or done.missing == missing


def test_a_few_random_partial_loads_leave_what_dictionaries_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_loads(tmp_path / "g", 3, 6, monkeypatch)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_random_partial_loads_leave_what_dictionaries_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    run_loads(tmp_path / "g", seed, 40, monkeypatch)


def absent_is_null(patch: pytest.MonkeyPatch) -> None:
    """A property that a record omits becomes null."""
    patch.setattr(patch_rows, "_choose_values", lambda _mask, given, _stored: given)


def kept_edges(patch: pytest.MonkeyPatch) -> None:
    """The edges of deleted nodes stay."""
    patch.setattr(delete_rows, "_find_edges_of_deleted", lambda *_: ())


def unchecked_unique_values(patch: pytest.MonkeyPatch) -> None:
    """Patched rows are not compared with stored unique values."""
    patch.setattr(patch_rows, "unique_violations", lambda *_: ())


def shifted_columns(patch: pytest.MonkeyPatch) -> None:
    """New columns are written to the rows in reverse order."""

    def fragment_values(table: Any, columns: pa.Table, row_ids: Any) -> pa.Table:
        return columns.append_column("_rowid", pa.array(np.flip(row_ids).astype(np.uint64)))

    patch.setattr(patch_columns, "_fragment_values", fragment_values)


@pytest.mark.full
@pytest.mark.parametrize("plant", [absent_is_null, kept_edges, unchecked_unique_values, shifted_columns])
def test_planted_defects_of_partial_loads_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, omnigraph.errors.OmnigraphError)):
        run_loads(tmp_path / "g", 1, 40, monkeypatch)
