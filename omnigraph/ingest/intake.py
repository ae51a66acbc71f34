"""Collection of records of any type, in any order, into Arrow tables by type.

Owns the buffering: records are gathered until there are enough to convert them into columns, so
that memory holds Arrow data and not Python objects. Problems are reported with the record's line.
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

_ENOUGH = 20_000  # records of one type that are converted into columns together
Record = Mapping[str, Any]
_NOTHING: Mapping[int, Iterable[Any]] = MappingProxyType({})
Faults = dict[int, list[ClientError]]  # the errors of the record at a position


def adding(faults: Faults) -> Fault:
    """Return a callback that adds a fault to a record."""
    return lambda at, error: faults.setdefault(at, []).append(error)


def following(faults: Faults) -> Fault:
    """Return a callback that ignores a fault if an earlier one of the record may have caused it."""
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
    made: bool = True  # every id so far was generated here, so none can exist already

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
        """Add one record with its properties and optional id; `known_faults` were found earlier."""
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
        """Add a whole table; `line_numbers` gives the input position of each of its rows."""
        self.count += len(lines)
        within(f"entities for {table_key(self.type)}", self.count, self.limits.rows)
        self._keep(columns, lines, faults)

    def flush(self) -> None:
        """Convert the pending records into columns; records with a problem are left out."""
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
        """Return the ids of `row_count` rows: from the key, as given, or generated."""
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
        """Record a problem with its location and the values of its record."""
        placed = _placed(error, line, id, self.type)
        self.problems.add(placed, line, self.type.name, id, holds=holds)

    def drain(self) -> tuple[pa.Table, Positions]:
        """Remove and return the rows converted so far, with their input positions."""
        rows, places = self.rows(), self.positions()
        self.parts, self.line_parts = [], []
        return rows, places

    def rows(self) -> pa.Table:
        """Return all records as one table."""
        self.flush()
        return pa.concat_tables(self.parts) if self.parts else self.schema.empty_table()

    def positions(self) -> Positions:
        """Return the input position of each record."""
        return np.concatenate(self.line_parts) if self.line_parts else np.zeros(0, np.int64)


class Intake:
    """The records of a load, by type."""

    def __init__(self, ir: SchemaIR, problems: Problems, limits: LoadLimits) -> None:
        self.ir = ir
        self.problems = problems
        self.limits = limits
        self.shelves: dict[str, Shelf] = {}

    def shelf(self, one: Node | Edge) -> Shelf:
        """Return the buffer of a type, creating it on first use."""
        key = table_key(one)
        found = self.shelves.get(key)
        if found is None:
            found = self.shelves[key] = Shelf(self.ir, one, self.problems, self.limits)
        return found

    def flush(self) -> None:
        """Convert all pending records into columns."""
        for one in self.shelves.values():
            one.flush()


def unknown_properties(
    one: Node | Edge, data: Iterable[str], known: frozenset[str]
) -> list[ClientError]:
    """Return an error for each member that is not a property of the type."""
    return [
        InputError(
            reason=f"{table_key(one)} has no property '{name}'",
            property=name,
            hint=did_you_mean(name, known),
        )
        for name in data
        if name not in known
    ]


def _placed(error: ClientError, line: int, id: str | None, one: Node | Edge) -> ClientError:
    """Return the same error with line, type and id among its details."""
    facts = {**error.details, "line": line, "type_name": one.name}
    if id is not None:
        facts["entity_id"] = id
    message = None if type(error).sentence.startswith("[line") else f"line {line}: {error.message}"
    return type(error)(message, hint=error.hint, **facts)
