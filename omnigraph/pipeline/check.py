"""Check the rules that need all records of a load, as Spark joins over the reports of its tasks.

Covers duplicates, uniqueness, endpoints and cardinality, with the semantics defined in `rules`.
Spark finds the records that break a rule; the driver turns them into violations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.rules.cardinality import miscounted
from omnigraph.rules.endpoints import End, dangling, ends_of
from omnigraph.rules.violation import Violation

from .ends import Ends, Nodes, lost_ends, sides_of
from .keys import KEYS, TUPLES, key_columns, keyed, tuple_columns, tupled
from .notes import unpacked
from .place import type_of
from .scan import scan
from .stage import Job
from .staged import Fragment, over_staged, rows_of
from .tuples import groups, shown_tuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_FEW = 4  # with this many times more stored nodes than loaded edges, look ids up instead of reading


@dataclass(frozen=True)
class Case:
    """Everything the rules read: the task reports, their driver rows, and the base snapshot."""

    spark: "SparkSession"
    load: str  # id of the load
    job: Job
    snapshot: Snapshot
    notes: "DataFrame"
    few: Sequence[dict[str, Any]]
    types: frozenset[str]  # table keys that the input names
    staged: Mapping[str, Sequence[Fragment]]  # written fragments by table key
    noted: frozenset[str]  # table keys with records that exist only in task reports
    unwritten: frozenset[str]  # table keys with records that are in no fragment

    @property
    def whole(self) -> bool:
        """Whether the load replaces all rows of the types in the input."""
        return self.job.mode == "overwrite"

    def type(self, number: int) -> Node | Edge:
        """Return a type by its number in the task reports."""
        return type_of(self.job.ir, self.job.keys[number])

    def keys(self, *keys: str) -> "DataFrame":
        """Ids, endpoints and positions of the records of some types, with the columns `KEY_DDL`.

        Generated ids are null: no other record can refer to them.
        """
        parts = []
        if self.noted & set(keys):
            bulk, numbers = self.notes, [self.job.keys.index(key) for key in keys]
            names = [one.partition(" ")[0] for one in KEYS.split(", ")]
            chosen = (bulk.kind == "key") & bulk.type.isin(numbers)
            parts.append(bulk.where(chosen).select(*names))
        parts.append(self._staged(keys, key_columns, keyed(self.job.keys), KEYS))
        return reduce(lambda a, b: a.unionAll(b), parts)

    def tuples(self) -> "DataFrame":
        """The `@unique` tuples of all records, with the columns `TUPLE_DDL`."""
        names = [one.partition(" ")[0] for one in TUPLES.split(", ")]
        noted = self.notes.where(self.notes.kind == "unique").select(*names)
        keys = [key for key in self.types if groups(type_of(self.job.ir, key))]
        made = tupled(self.job.ir, self.job.keys)
        return noted.unionAll(self._staged(keys, tuple_columns(self.job.ir), made, TUPLES))

    def _staged(self, keys: Sequence[str], columns: Any, make: Any, ddl: str) -> "DataFrame":
        fragments = [one for key in keys for one in self.staged.get(key, ()) if columns(one)]
        work = rows_of(self.job.place, columns, make)
        return over_staged(self.spark, fragments, work, ddl)

    def stored(self, key: str, columns: Sequence[str]) -> "DataFrame":
        """Read the stored rows of a type."""
        return scan(self.spark, self.snapshot, key, columns)

    def filled(self, key: str) -> bool:
        """Whether a type has stored rows."""
        return key in self.job.filled


def set_violations(case: Case) -> tuple[list[Violation], frozenset[int]]:
    """Return the violations that need all records, and the positions of replaced records."""
    found: list[Violation] = []
    lost, looked = _lost(case)
    repeated = _repeated_ids(case, case.types - looked)
    found += _of_repeated(case, repeated)
    gone = frozenset(spot for spots in repeated.values() for spot in spots[:-1])
    found += _repeated_tuples(case)
    found += [unpacked(one["data"]) for one in case.few if _counts(one, "taken", gone)]
    found += _held(case, gone)
    found += [one for one in lost if one.line not in gone]
    found += _dangling(case, gone)
    found += _orphaned(case)
    found += _cardinality(case, gone)
    return found, gone


def _counts(one: dict[str, Any], kind: str, gone: frozenset[int]) -> bool:
    return one["kind"] == kind and one["spot"] not in gone


Repeated = dict[tuple[int, str], list[int]]


def _repeated_ids(case: Case, keys: frozenset[str]) -> Repeated:
    """Ids that several records have, with their positions in order."""
    if not keys:
        return {}
    rows = case.keys(*sorted(keys)).where("id is not null").select("type", "id", "spot")
    return {(number, name): spots for (number, name), spots in _several(rows, ["type", "id"])}


def _several(rows: "DataFrame", by: list[str]) -> list[tuple[tuple[Any, ...], list[int]]]:
    """Groups of more than one row, with their positions.

    Only hashes are exchanged and counted; rows with equal hashes are then compared by value.
    """
    from pyspark.sql import functions as f

    hashed = rows.withColumn("h", f.xxhash64(*by))
    many = hashed.groupBy("h").count().where("count > 1").select("h").toArrow()
    if not many.num_rows:
        return []
    again = f.broadcast(rows.sparkSession.createDataFrame(many))
    found = hashed.join(again, "h", "left_semi").select(*by, "spot").toArrow()
    listed = sorted(zip(*(found[name].to_pylist() for name in [*by, "spot"]), strict=True))
    grouped = [(at, [one[-1] for one in some]) for at, some in groupby(listed, lambda r: r[:-1])]
    return [(at, spots) for at, spots in grouped if len(spots) > 1]


def _of_repeated(case: Case, repeated: Repeated) -> Iterator[Violation]:
    for (number, entity), spots in repeated.items():
        one, key = case.type(number), case.job.keys[number]
        if isinstance(one, Node) and one.key is not None:
            named = one.key[0] if len(one.key) == 1 else one.key
            for spot in spots[1:]:
                yield Violation(
                    "@unique", key, entity, named, line=spot, value=entity, other_id=entity,
                    other_line=spots[0],
                )  # fmt: skip
        elif case.job.mode != "merge":
            for before, spot in pairwise(spots):
                yield Violation("key", key, entity, line=spot, other_line=before)


def _repeated_tuples(case: Case) -> Iterator[Violation]:
    if not any(groups(type_of(case.job.ir, key)) for key in case.types):
        return
    rows = case.tuples()
    by = ["type", "grp", "value"]
    ids = _ids_at(rows, found := _several(rows, by))
    for (number, group, value), spots in found:
        one = case.type(number)
        columns = groups(one)[group]
        for spot in spots[1:]:
            yield Violation(
                "@unique", case.job.keys[number], ids[spot], _named(columns), line=spot,
                value=shown_tuple(value, columns), other_id=ids[spots[0]], other_line=spots[0],
            )  # fmt: skip


def _ids_at(rows: "DataFrame", found: list[tuple[tuple[Any, ...], list[int]]]) -> dict[int, str]:
    """Return the ids of the records at the positions of duplicate groups."""
    spots = [spot for _, some in found for spot in some]
    if not spots:
        return {}
    table = rows.where(rows.spot.isin(spots)).select("spot", "id").toArrow()
    return dict(zip(table["spot"].to_pylist(), table["id"].to_pylist(), strict=True))


def _named(columns: tuple[str, ...]) -> str | tuple[str, ...]:
    return columns[0] if len(columns) == 1 else columns


def _held(case: Case, gone: frozenset[int]) -> list[Violation]:
    """Unique values held by a stored entity that the load does not replace."""
    asked = [one for one in case.few if _counts(one, "held", gone)]
    if not asked:
        return []
    names = sorted({one["src"] for one in asked})
    rows = case.keys(*sorted({case.job.keys[one["type"]] for one in asked}))
    found = rows.where(rows.id.isin(names)).select("type", "id").toArrow()
    freed = set(zip(found["type"].to_pylist(), found["id"].to_pylist(), strict=True))
    return [unpacked(one["data"]) for one in asked if (one["type"], one["src"]) not in freed]


def _latest(rows: "DataFrame", gone: frozenset[int]) -> "DataFrame":
    return rows.where(~rows.spot.isin(sorted(gone))) if gone else rows


def _lost(case: Case) -> tuple[list[Violation], frozenset[str]]:
    """Look up edges without a node in an index of ids; also return types without repeated ids."""
    edges = {
        f"edge:{e.name}": e for e in case.job.ir.catalog.edges if f"edge:{e.name}" in case.types
    }
    sides = {
        key: [(side, to) for side, to in sides_of(one) if to not in case.unwritten]
        for key, one in edges.items()
    }
    nodes = {to: _nodes(case, to) for some in sides.values() for _, to in some}
    staged = [one for key in edges for one in case.staged.get(key, ())]
    noted = sorted(case.noted & set(edges))
    if not nodes or not (staged or noted):
        return [], frozenset()
    ends = Ends(case.load, case.job.place, nodes, sides)
    told = case.keys(*noted) if noted else None
    rows, repeated = lost_ends(case.spark, ends, case.job.keys, staged, told)
    found = [_violation(case, edges[one["edge"]], one) for one in rows]
    return found, frozenset(case.types & set(nodes)) - repeated - case.noted


def _violation(case: Case, edge: Edge, row: dict[str, Any]) -> Violation:
    end = next(one for one in ends_of(edge) if one[1] == row["side"])
    return dangling(case.job.ir.catalog, end, row, row["spot"])


def _nodes(case: Case, key: str) -> Nodes:
    """Where to find the ids that a node type has after the load."""
    staged = case.staged.get(key, ())
    replaced = case.whole and key in case.types
    stored = 0 if replaced else case.snapshot.tables[key].rows
    edges = sum(one.rows for some in case.staged.values() for one in some if "edge:" in one.key)
    asked = stored > edges * _FEW
    return Nodes(key, staged, 0 if asked else stored, asked)


def _dangling(case: Case, gone: frozenset[int]) -> Iterator[Violation]:
    """Edges without a node, for node types that have records in no fragment."""
    edges = [one for one in case.job.ir.catalog.edges if f"edge:{one.name}" in case.types]
    ends = [end for one in edges for end in ends_of(one)]
    for key in sorted({to for _, _, to in ends} & case.unwritten):
        pointing = [end for end in ends if end[2] == key]
        missing = _missing(case, key, pointing, gone)
        if missing:
            for edge, column, _ in pointing:
                yield from _pointing(case, edge, column, key, missing, gone)


def _missing(case: Case, key: str, ends: list[End], gone: frozenset[int]) -> list[str]:
    """Ids that written edges use and that no node has after the load."""
    used = [
        _latest(case.keys(f"edge:{edge.name}"), gone).selectExpr(f"{column} as id")
        for edge, column, _ in ends
    ]
    known = []
    if key in case.types:
        known.append(case.keys(key).where("id is not null").select("id"))
    if case.filled(key) and not (case.whole and key in case.types):
        known.append(case.stored(key, ["id"]))
    asked = reduce(lambda a, b: a.unionAll(b), used).distinct()
    if known:
        asked = asked.join(reduce(lambda a, b: a.unionAll(b), known), "id", "left_anti")
    found: list[str] = asked.toArrow()["id"].to_pylist()
    return found


def _pointing(
    case: Case, edge: Edge, column: str, key: str, missing: list[str], gone: frozenset[int]
) -> Iterator[Violation]:
    rows = _latest(case.keys(f"edge:{edge.name}"), gone)
    found = rows.where(rows[column].isin(missing)).select("id", "src", "dst", "spot").toArrow()
    for one in found.to_pylist():
        yield dangling(case.job.ir.catalog, (edge, column, key), one, one["spot"])


def _orphaned(case: Case) -> Iterator[Violation]:
    """Stored edges that remain although an overwrite removes their node."""
    if not case.whole:
        return
    for edge in case.job.ir.catalog.edges:
        name = f"edge:{edge.name}"
        for _, column, key in ends_of(edge):
            if name in case.types or key not in case.types:
                continue
            if case.filled(name) and case.filled(key):
                yield from _losing(case, name, column, key)


def _losing(case: Case, name: str, column: str, key: str) -> Iterator[Violation]:
    kept = case.keys(key).where("id is not null").selectExpr(f"id as {column}")
    found = case.stored(name, ["id", column]).join(kept, column, "left_anti").toArrow()
    for one in found.to_pylist():
        reason = f"{column} '{one[column]}' not found in {key.partition(':')[2]}"
        yield Violation("endpoint", name, one["id"], column, reason, value=one[column])


def _cardinality(case: Case, gone: frozenset[int]) -> Iterator[Violation]:
    bounded = {
        key: edge
        for edge in case.job.ir.catalog.edges
        if (key := f"edge:{edge.name}") in case.types and (edge.low > 0 or edge.high is not None)
    }
    fresh = {key: edge for key, edge in bounded.items() if not case.filled(key) and not case.whole}
    if fresh:
        yield from _counted_fresh(case, fresh, gone)
    for key, edge in bounded.items():
        if key not in fresh:
            yield from _counted(case, edge, gone)


def _counted_fresh(
    case: Case, edges: Mapping[str, Edge], gone: frozenset[int]
) -> Iterator[Violation]:
    """Cardinality violations of types without stored edges: only loaded edges count."""
    from pyspark.sql import functions as f

    by_number = {case.job.keys.index(key): edge for key, edge in edges.items()}
    rows = _latest(case.keys(*edges), gone).groupBy("type", "src")
    total = rows.agg(f.count("*").alias("n"), f.min("spot").alias("spot"))
    broken = " or ".join(
        f"(type = {number} and ({_outside(edge)}))" for number, edge in by_number.items()
    )
    for one in total.where(broken).toArrow().to_pylist():
        yield miscounted(by_number[one["type"]], one["src"], one["n"], one["spot"])


def _outside(edge: Edge) -> str:
    high = "" if edge.high is None else f" or n > {int(edge.high)}"
    return f"n < {int(edge.low)}{high}"


def _counted(case: Case, edge: Edge, gone: frozenset[int]) -> Iterator[Violation]:
    """Sources with too few or too many edges after the load, stored edges included."""
    from pyspark.sql import functions as f

    key = f"edge:{edge.name}"
    rows = _latest(case.keys(key), gone)
    counts = rows.select("src", "spot", f.lit(1).alias("n"))
    touched = [rows.select("src")]
    none = f.lit(None).cast("bigint")
    if case.filled(key):
        stored = case.stored(key, ["id", "src"])
        if case.whole:
            touched.append(stored.select("src"))
        else:
            ids = rows.where("id is not null").select("id")
            kept = stored.join(ids, "id", "left_anti")
            counts = counts.unionAll(kept.select("src", none.alias("spot"), f.lit(1).alias("n")))
            bulk = case.notes
            old = (bulk.kind == "old") & (bulk.type == case.job.keys.index(key))
            touched.append(bulk.where(old).select("src"))
    sources = reduce(lambda a, b: a.unionAll(b), touched).distinct()
    node = f"node:{edge.source}"
    if case.whole and node in case.types:
        sources = sources.join(case.keys(node).selectExpr("id as src"), "src", "left_semi")
    summed = sources.join(counts, "src", "left").groupBy("src")
    total = summed.agg(f.coalesce(f.sum("n"), f.lit(0)).alias("n"), f.min("spot").alias("spot"))
    for one in total.where(_outside(edge)).toArrow().to_pylist():
        yield miscounted(edge, one["src"], one["n"], one["spot"])
