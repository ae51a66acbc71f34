"""Translates results of the product into the terms of the merge model, and back.

Turns rows, diffs and conflicts of the product into those of the model, and compares conflicts.
"""

import json
from typing import Any

from omnigraph.api.graph import Graph as Handle
from omnigraph.values.table_key import TableKey
from tests.model.random_programs import KEYED, PERSON, options_of, strategy_of
from tests.model.row_shapes import Entity, Graph, Row
from tests.model.versioned_graph import Conflict, Discarded, bits


def asked(how: str) -> dict[str, Any]:
    """The options of a merge of the product, by its word."""
    known = options_of(how)
    side = how.removeprefix("entity ")
    strategy = None if side == "none" else side if side in ("ours", "theirs") else strategy_of(how)
    return {"strategy": strategy, "collapse_edges": known.pop("collapse"), **known}


def decided(session: Any) -> Any:
    """A merge in which every conflict was decided for what is merged, one by one."""
    for _ in range(16):
        for one in session.open:
            session.resolve(one, "theirs")
    return session.commit()


def stored(graph: Handle, key: TableKey) -> dict[Entity, Row]:
    """The rows of a table, by entity."""
    rows = graph.snapshot.table(key).dataset.to_table().to_pylist()
    found: dict[Entity, Row] = {(key, row.pop("id")): row for row in rows}
    assert len(found) == len(rows), f"an id twice in {key}"
    return found


def exact(graph: Graph) -> dict[Entity, Any]:
    """A graph that equals another one only if their bytes do."""
    return {one: bits(row) for one, row in graph.items()}


def changes_of(found: Any) -> dict[Entity, tuple[Row | None, Row | None]]:
    """A diff of the product as the model tells it."""
    made: dict[Entity, tuple[Row | None, Row | None]] = {}
    for one in found:
        before, after = (
            None if row is None else {**(ends or {}), **row}
            for row, ends in ((one.before, one.endpoints_before), (one.after, one.endpoints_after))
        )
        made[f"{one.kind}:{one.type}", one.id] = (before, after)
        op = "insert" if before is None else "delete" if after is None else "update"
        assert one.op == op
    return made


def same_conflicts(found: Any, wanted: tuple[Conflict, ...]) -> None:
    """The product names the conflicts of the model, with their values."""
    unique = [one for one in wanted if one.kind == "unique_violation"]
    others = sorted((one.entity, one.kind) for one in wanted if one.kind != "unique_violation")
    named = [((f"{one.entity_kind}:{one.type_name}", one.entity_id), one.kind) for one in found]
    assert sorted(one for one in named if one[1] != "unique_violation") == others
    holders = {entity for entity, kind in named if kind == "unique_violation"}
    assert holders <= {entity for one in unique for entity in one.involved}
    assert all(one.involved & holders for one in unique), "two holders of a value, unnoticed"
    rows = {one.entity: one for one in wanted if one.of_rows}
    for entity, one in zip((entity for entity, _ in named), found, strict=True):
        if entity in rows and one.kind == rows[entity].kind:
            told = (one.base, one.ours, one.theirs)
            known = rows[entity]
            assert [bits(row) for row in told] == [bits(row) for row in (known.base, known.ours, known.theirs)]
            assert set(one.changed) == set(known.changed)
    places = [(one.entity_kind != "node", one.type_name, one.entity_id, one.kind) for one in found]
    assert places == sorted(places)


def same_discards(found: Any, wanted: tuple[Discarded, ...]) -> None:
    """The product names every edit that is discarded, once."""
    named = [
        (
            (f"{one.entity_kind}:{one.type_name}", one.entity_id),
            one.side,
            one.property_name or one.part,
            bits(one.value if one.part == "entity" else {"": one.value}),
        )
        for one in found
    ]
    known = [(*one[:3], bits(one.value if one.what == "entity" else {"": one.value})) for one in wanted]
    assert sorted(named, key=lambda one: one[:3]) == sorted(known, key=lambda one: one[:3])


def records(graph: Graph) -> bytes:
    """Entities as a load takes them."""
    return "\n".join(_record(one, row) for one, row in graph.items()).encode()


def _record(one: Entity, row: Row) -> str:
    kind, _, name = one[0].partition(":")
    data = {k: v for k, v in row.items() if k not in ("src", "dst")}
    data |= {} if one[0] in KEYED else {"id": one[1]}
    if kind == "node":
        return json.dumps({"type": name, "data": data})
    return json.dumps({"edge": name, "from": row["src"], "to": row["dst"], "data": data})


def patches(rows: Graph) -> bytes:
    """Values of entities as a patch takes them."""
    return "\n".join(
        json.dumps(
            {"type" if one[0].startswith("node") else "edge": one[0].partition(":")[2], "data": {"id": one[1], **row}}
        )
        for one, row in rows.items()
    ).encode()


def remove(graph: Handle, entity: Entity) -> Any:
    """Delete one entity."""
    name = entity[0].partition(":")[2]
    column = "name" if entity[0] == PERSON else "id"
    return graph.delete(name, where=f"{column} = $own", own=entity[1])
