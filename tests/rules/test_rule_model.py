"""The rule evaluator against a model on dictionaries, for random changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omnigraph.lang.schema import compile_schema
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import Delta, DeltaMode, TableDelta, build_table_delta
from omnigraph.values.table_key import TableKey

CATALOG = compile_schema(
    """
    node A { k: String  u: I32? @unique  f: F64?  g: String?  @unique(f, g) }
    node B { x: I32? }
    edge E: A -> B @card(1..2) { w: I32? @unique }
    edge F: B -> B { @unique(src, dst) }
    edge G: B -> B { n: I32  w: I32? @unique  @key(src, dst, n) }
    """,
    "model.pg",
)
T = pa.string()
COLUMNS = {
    "node:A": {"id": T, "k": T, "u": pa.int32(), "f": pa.float64(), "g": T},
    "node:B": {"id": T, "x": pa.int32()},
    "edge:E": {"id": T, "src": T, "dst": T, "w": pa.int32()},
    "edge:F": {"id": T, "src": T, "dst": T},
    "edge:G": {"id": T, "src": T, "dst": T, "n": pa.int32(), "w": pa.int32()},
}
UNIQUE: dict[str, list[tuple[str, ...]]] = {
    "node:A": [("u",), ("f", "g")],
    "node:B": [],
    "edge:E": [("w",)],
    "edge:F": [("src", "dst")],
    "edge:G": [("dst", "n", "src"), ("w",)],
}
ENDS = {"edge:E": ("node:A", "node:B"), "edge:F": ("node:B", "node:B"), "edge:G": ("node:B", "node:B")}
Row = dict[str, Any]
Image = dict[str, dict[str, Row]]

ids = st.sampled_from(["p", "q", "r"])
small = st.none() | st.integers(0, 2)
ROWS: dict[str, st.SearchStrategy[Row]] = {
    "node:A": st.fixed_dictionaries(
        {"id": ids, "k": st.just("k"), "u": small, "f": st.sampled_from([None, 0.0, -0.0, 1.5]),
         "g": st.sampled_from([None, "s", "t"])}
    ),
    "node:B": st.fixed_dictionaries({"id": ids, "x": small}),
    "edge:E": st.fixed_dictionaries(
        {"id": st.sampled_from(["e", "f", "g", "h"]), "src": ids, "dst": ids, "w": small}
    ),
    "edge:F": st.fixed_dictionaries({"id": st.sampled_from(["e", "f"]), "src": ids, "dst": ids}),
    "edge:G": st.fixed_dictionaries({"src": ids, "dst": ids, "n": st.integers(0, 1), "w": small}).map(
        lambda row: {"id": f"{row['src']}{row['dst']}{row['n']}", **row}
    ),
}  # fmt: skip


@dataclass
class Change:
    """What an operation does to one table, in plain Python."""

    rows: list[Row] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    mode: DeltaMode = "upsert"


@st.composite
def changes(draw: st.DrawFn) -> dict[str, Change]:
    found = {}
    for key in draw(st.lists(st.sampled_from(sorted(COLUMNS)), unique=True, min_size=1)):
        mode: DeltaMode = draw(st.sampled_from(["upsert", "upsert", "insert", "replace"]))
        rows = draw(st.lists(ROWS[key], max_size=4))
        gone = draw(st.sets(ids | st.sampled_from(["e", "f", "g", "pq0"]), max_size=2))
        taken = {one["id"] for one in rows}
        found[key] = Change(rows, set() if mode == "replace" else gone - taken, mode)
    return found


class Memory:
    """A lookup on dictionaries."""

    def __init__(self, image: Image) -> None:
        self.image = image

    def find(
        self,
        table_key: str,
        values_by_column: Mapping[str, pa.Array],
        columns: Sequence[str],
        *,
        with_row_ids: bool = False,
    ) -> pa.Table:
        asked = {name: set(values.to_pylist()) for name, values in values_by_column.items()}
        kept = [
            (at, row)
            for at, row in enumerate(self.image[table_key].values())
            if all(row[name] in values for name, values in asked.items())
        ]
        made = table(table_key, [row for _, row in kept]).select(list(columns))
        for name in ("_rowid", "_rowaddr") if with_row_ids else ():
            made = made.append_column(name, pa.array([at for at, _ in kept], pa.uint64()))
        return made

    def scan(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        return table(table_key, list(self.image[table_key].values())).select(list(columns))


def table(key: str, rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema(list(COLUMNS[key].items())))


def applied(image: Image, change: Mapping[str, Change]) -> Image:
    after: Image = {}
    for key, rows in image.items():
        one = change.get(key, Change())
        stay = {} if one.mode == "replace" else {k: r for k, r in rows.items() if k not in one.removed}
        after[key] = stay | {row["id"]: row for row in one.rows}
    return after


def tuples(key: str, columns: Sequence[str], rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    found = [tuple(row[name] for name in columns) for row in rows]
    return [one for one in found if None not in one]  # 0.0 == -0.0, as in Python


def broken(before: Image, change: Mapping[str, Change], after: Image) -> set[str]:
    """The rules that the final image breaks, told from the whole image and not from the change."""
    found: set[str] = set()
    for key, one in change.items():
        given = [row["id"] for row in one.rows]
        if one.mode in ("insert", "replace") and len(set(given)) < len(given):
            found.add("key")
        if one.mode == "insert" and any(each in before[key] for each in given):
            found.add("key")
        for columns in UNIQUE[key]:
            held = tuples(key, columns, list(after[key].values()))
            if len(set(held)) < len(held):
                found.add("@unique")
    for key, (source, target) in ENDS.items():
        for row in after[key].values():
            if row["src"] not in after[source] or row["dst"] not in after[target]:
                found.add("endpoint")
    return found | _counted(before, change, after)


def _counted(before: Image, change: Mapping[str, Change], after: Image) -> set[str]:
    """Count the edges in the final image, for the sources of written, moved and removed edges."""
    if "edge:E" not in change:
        return set()
    edge_change = change["edge:E"]
    stored, final = before["edge:E"], after["edge:E"]
    if edge_change.mode == "replace":
        sources = {row["src"] for row in [*stored.values(), *final.values()]}
    else:
        written = {row["id"] for row in edge_change.rows}
        # An insert moves no edge; under the id of a stored edge it is refused by the rule for keys.
        moved = written if edge_change.mode == "upsert" else set()
        sources = {final[edge_id]["src"] for edge_id in written}
        sources |= {stored[edge_id]["src"] for edge_id in moved | edge_change.removed if edge_id in stored}
    counts = [
        sum(row["src"] == source for row in final.values()) for source in sources - _absent(before, change, after)
    ]
    return {"@card"} if any(not 1 <= count <= 2 for count in counts) else set()


def _absent(before: Image, change: Mapping[str, Change], after: Image) -> set[str]:
    """Return the ids that edges cannot start at because the operation removes their nodes."""
    if change.get("node:A", Change()).mode == "replace":
        return {"p", "q", "r"} - set(after["node:A"])
    return set(before["node:A"]) - set(after["node:A"])


def delta(before: Image, change: Mapping[str, Change]) -> Delta:
    memory = Memory(before)
    tables: dict[TableKey, TableDelta] = {}
    for key, one in change.items():
        made = build_table_delta(TableKey(key), table(key, one.rows), one.mode)
        names = ["id", "src", "dst"] if key in ENDS else ["id"]
        gone = pa.array(sorted(one.removed), pa.string())
        removed = memory.find(key, {"id": gone}, names, with_row_ids=True)
        tables[TableKey(key)] = replace(made, removed_rows=removed)
    return Delta(tables)


@st.composite
def images(draw: st.DrawFn) -> Image:
    """A state that breaks no rule."""
    empty: Image = {key: {} for key in COLUMNS}
    rows = {key: draw(st.lists(ROWS[key], max_size=4)) for key in COLUMNS}
    kept: Image = applied(empty, {key: Change(each) for key, each in rows.items()})
    for key, groups in UNIQUE.items():
        for columns in groups:
            seen: set[tuple[Any, ...]] = set()
            for row in list(kept[key].values()):
                held = tuples(key, columns, [row])
                if held and held[0] in seen:
                    del kept[key][row["id"]]
                seen |= set(held)
    for key, (source, target) in ENDS.items():
        for row in list(kept[key].values()):
            if row["src"] not in kept[source] or row["dst"] not in kept[target]:
                del kept[key][row["id"]]
    for each in {row["src"] for row in kept["edge:E"].values()}:
        mine = [row["id"] for row in kept["edge:E"].values() if row["src"] == each]
        for edge in mine[2:]:
            del kept["edge:E"][edge]
    return kept


@settings(max_examples=max(150, settings().max_examples))
@given(images(), changes())
def test_evaluator_reports_the_violations_of_the_model(before: Image, change: dict[str, Change]) -> None:
    after = applied(before, change)
    expected = broken(before, change, after)
    resolved, found = check_delta(CATALOG, delta(before, change), Memory(before), limit=None)
    assert {one.rule for one in found} == expected
    first = check_delta(CATALOG, delta(before, change), Memory(before))[1]
    assert len(first) == (1 if expected else 0)
    assume(not expected)
    for key, one in resolved.tables.items():
        places = list(before[key])
        stored = [places[n] if n >= 0 else None for n in one.row_ids.tolist()]
        if not one.replaces_table:
            assert stored == [e if e in before[key] else None for e in one.ids.to_pylist()]
