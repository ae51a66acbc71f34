"""Records of any type in any order become Arrow tables by type.

Owns the gathering: records wait in a list until there are enough of them to be turned into
columns, so that memory holds Arrow and not objects. Problems are told with the place of the record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import ClientError, InputError
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.rules.delta import Positions
from omnigraph.storage.arrow import table_key, table_schema
from omnigraph.storage.blobs import row_schema

from .columns import Fault, column
from .defaults import defaults_of
from .ids import agree, given_ids, key_ids, made_ids
from .limits import LoadLimits, within
from .problem import Problems

_ENOUGH = 20_000  # records of one type that are turned into columns together
Record = Mapping[str, Any]
_NOTHING: Mapping[int, Iterable[Any]] = MappingProxyType({})
Faults = dict[int, list[ClientError]]  # what is wrong with the record at a position


def adding(faults: Faults) -> Fault:
    """Tells one more fault of a record."""
    return lambda at, error: faults.setdefault(at, []).append(error)


def following(faults: Faults) -> Fault:
    """Tells a fault that, on a record with others, would only be their consequence."""
    return lambda at, error: faults.setdefault(at, [error])


@dataclass(slots=True)
class Shelf:
    """The records of one type."""

    ir: SchemaIR
    type: Node | Edge
    problems: Problems
    limits: LoadLimits
    waiting: list[Record] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    wrong: Faults = field(default_factory=dict)
    parts: list[pa.Table] = field(default_factory=list)
    line_parts: list[Positions] = field(default_factory=list)
    count: int = 0
    truncated: bool = False
    known: frozenset[str] = frozenset()
    schema: pa.Schema = None
    defaults: dict[str, Any] = field(default_factory=dict)
    made: bool = True  # whether every id so far was made here, so that nobody else can have it

    def __post_init__(self) -> None:
        self.known = frozenset({"id", *(p.name for p in self.type.properties)})
        self.schema = row_schema(table_schema(self.ir, self.type))
        self.defaults = defaults_of(self.type)

    def add(
        self,
        line: int,
        data: Record,
        ends: tuple[str, str] | None = None,
        wrong: Iterable[ClientError] = (),
    ) -> None:
        """Take one record, its properties and perhaps an id; `wrong` is known to be so already."""
        if wrong:
            self.wrong[len(self.waiting)] = list(wrong)
        self.count += 1
        if self.limits.rows is not None:
            within(f"entities for {table_key(self.type)}", self.count, self.limits.rows)
        self.waiting.append(data)
        self.lines.append(line)
        if ends is not None:
            self.ends.append(ends)
        if len(self.waiting) >= _ENOUGH:
            self.flush()

    def take_columns(self, columns: dict[str, pa.Array], faults: Faults, lines: Positions) -> None:
        """Take a whole table; `lines` says where each of its rows stood."""
        self.count += len(lines)
        within(f"entities for {table_key(self.type)}", self.count, self.limits.rows)
        self._keep(columns, lines, faults)

    def flush(self) -> None:
        """Turn what waits into columns; records with a problem are left out."""
        if not self.waiting:
            return
        waiting, ends, lines = self.waiting, self.ends, np.array(self.lines, np.int64)
        faults = self.wrong
        self.waiting, self.ends, self.lines, self.wrong = [], [], [], {}
        columns = self._columns(waiting, ends, faults)
        holds = {at: [*waiting[at].values(), *(ends[at] if ends else ())] for at in faults}
        self._keep(columns, lines, faults, holds)

    def _columns(
        self, waiting: list[Record], ends: list[tuple[str, str]], faults: Faults
    ) -> dict[str, pa.Array]:
        fault, name = adding(faults), self.type.name
        made = {
            prop.name: column(
                prop,
                [one.get(prop.name, self.defaults[prop.name]) for one in waiting],
                name,
                fault,
                self.limits,
            )
            for prop in self.type.properties
        }
        if isinstance(self.type, Edge):
            made["src"] = pa.array([one for one, _ in ends], pa.string())
            made["dst"] = pa.array([one for _, one in ends], pa.string())
        given = [one.get("id") for one in waiting]
        none = given.count(None) == len(given)
        ids = self.identify(pa.table(made), None if none else given, faults, len(given))
        return {**made, "id": ids}

    def identify(self, rows: pa.Table, given: Any, faults: Faults, count: int) -> pa.Array:
        """The ids of `count` rows: from the key, as given in a list or a column, or made."""
        if isinstance(self.type, Node) and self.type.key is not None:
            self.made = False
            ids = key_ids(self.ir, self.type, rows, following(faults))
            if given is not None:
                agree(ids, given, adding(faults))
            return ids
        self.made = self.made and given is None
        return made_ids(count) if given is None else given_ids(given, adding(faults))

    def _keep(
        self,
        columns: dict[str, pa.Array],
        lines: Positions,
        faults: Faults,
        holds: Mapping[int, Iterable[Any]] = _NOTHING,
    ) -> None:
        names = self.schema.names
        rows = pa.table([columns[name] for name in names], names=names)
        for at, errors in sorted(faults.items()):
            id = rows["id"][at].as_py()
            for error in errors:
                self.tell(error, int(lines[at]), id, holds.get(at, ()))
        if faults:
            good = np.ones(len(lines), bool)
            good[list(faults)] = False
            rows, lines = rows.filter(pa.array(good)), lines[good]
        self.parts.append(rows.cast(self.schema))
        self.line_parts.append(lines)

    def tell(
        self, error: ClientError, line: int, id: str | None, holds: Iterable[Any] = ()
    ) -> None:
        """Write a problem down with its place, and what the record holds."""
        placed = _placed(error, line, id, self.type)
        self.problems.add(placed, line, self.type.name, id, holds=holds)

    def drain(self) -> tuple[pa.Table, Positions]:
        """What was turned into columns so far, and where it stood; it is not kept."""
        rows, places = self.rows(), self.positions()
        self.parts, self.line_parts = [], []
        return rows, places

    def rows(self) -> pa.Table:
        """All records as one table."""
        self.flush()
        return pa.concat_tables(self.parts) if self.parts else self.schema.empty_table()

    def positions(self) -> Positions:
        """Where each record stood."""
        return np.concatenate(self.line_parts) if self.line_parts else np.zeros(0, np.int64)


class Intake:
    """The records of a load, by type."""

    def __init__(self, ir: SchemaIR, problems: Problems, limits: LoadLimits) -> None:
        self.ir = ir
        self.problems = problems
        self.limits = limits
        self.shelves: dict[str, Shelf] = {}

    def shelf(self, one: Node | Edge) -> Shelf:
        """The shelf of a type."""
        key = table_key(one)
        found = self.shelves.get(key)
        if found is None:
            found = self.shelves[key] = Shelf(self.ir, one, self.problems, self.limits)
        return found

    def flush(self) -> None:
        """Turn everything that waits into columns."""
        for one in self.shelves.values():
            one.flush()


def unknown_properties(
    one: Node | Edge, data: Iterable[str], known: frozenset[str]
) -> list[ClientError]:
    """The errors of members that are no properties of a type."""
    return [
        InputError(
            reason=f"'{name}' is no property of {table_key(one)}",
            property=name,
            hint=did_you_mean(name, known),
        )
        for name in data
        if name not in known
    ]


def _placed(error: ClientError, line: int, id: str | None, one: Node | Edge) -> ClientError:
    """The same error with line, type and id among its facts."""
    facts = {**error.details, "line": line, "type_name": one.name}
    if id is not None:
        facts["entity_id"] = id
    message = None if type(error).sentence.startswith("[line") else f"line {line}: {error.message}"
    return type(error)(message, hint=error.hint, **facts)
