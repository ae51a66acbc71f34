"""Collect records of any type, in any order, into Arrow tables by type.

Records are buffered and converted to columns in batches, so most of the data is in memory as Arrow arrays instead of
Python objects. Problems are reported with the record's line number.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from omnigraph.errors import ClientError, InputError
from omnigraph.lang.schema.catalog import EdgeType, NodeType, PropertyDefinition
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.rules.delta import Positions
from omnigraph.storage.arrow import table_key, table_schema
from omnigraph.storage.blobs import row_schema

from .assign_ids import check_ids_match_keys, generate_ids, given_or_new_ids, key_ids
from .columns import FaultCallback, build_column
from .defaults import defaults_of
from .load_limits import LoadLimits, check_limit
from .problem import ProblemCollector
from .streamed_blobs import StreamedBlobs, has_blobs, new_streamed_blobs

if TYPE_CHECKING:
    from omnigraph.values.table_key import TableKey

_FLUSH_RECORDS = 20_000  # number of records to convert to columns at a time, per type
RecordData = Mapping[str, Any]
EndpointIds = tuple[str | None, str | None]  # (source, target); an endpoint is None if a partial record omits it
_NO_VALUES: Mapping[int, Iterable[Any]] = MappingProxyType({})
RecordFaults = dict[int, list[ClientError]]  # the errors in each record, by record position


def fault_recorder(faults: RecordFaults) -> FaultCallback:
    """Return a callback that adds a fault to a record."""
    return lambda at, error: faults.setdefault(at, []).append(error)


def first_fault_recorder(faults: RecordFaults) -> FaultCallback:
    """Return a callback that ignores a fault if an earlier fault in the same record may have caused it."""
    return lambda at, error: faults.setdefault(at, [error])


@dataclass(slots=True)
class TypeBuffer:
    """One type's records as whole rows; a missing property gets its default value.

    `given_names` are the properties that at least one record contains. Subclasses accept partial records.
    """

    fills_absent: ClassVar[bool] = True
    requires_endpoints: ClassVar[bool] = True

    ir: SchemaIR
    entity_type: NodeType | EdgeType
    problems: ProblemCollector
    limits: LoadLimits
    pending_records: list[RecordData] = field(default_factory=list)
    pending_endpoints: list[EndpointIds] = field(default_factory=list)
    pending_lines: list[int] = field(default_factory=list)
    pending_faults: RecordFaults = field(default_factory=dict)
    built_tables: list[pa.Table] = field(default_factory=list)
    built_positions: list[Positions] = field(default_factory=list)
    record_count: int = 0
    truncated: bool = False
    member_names: frozenset[str] = frozenset()
    schema: pa.Schema = None
    defaults: dict[str, Any] = field(default_factory=dict)
    all_ids_generated: bool = True  # whether all ids so far are new because this load generated them
    given_names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.member_names = frozenset({"id", *(prop.name for prop in self.entity_type.properties)})
        self.schema = row_schema(table_schema(self.ir, self.entity_type))
        self.defaults = defaults_of(self.entity_type)

    @property
    def read_properties(self) -> tuple[PropertyDefinition, ...]:
        """The properties whose values are read from the input."""
        return self.entity_type.properties

    @property
    def absent_properties(self) -> frozenset[str]:
        """The properties that do not occur in any record."""
        return frozenset(prop.name for prop in self.entity_type.properties) - self.given_names

    def add(
        self,
        line_number: int,
        properties: RecordData,
        endpoint_ids: EndpointIds | None = None,
        known_faults: Iterable[ClientError] = (),
    ) -> None:
        """Add one record with its properties and optional id; `known_faults` are the faults found during parsing."""
        if known_faults:
            self.pending_faults[len(self.pending_records)] = list(known_faults)
        self.record_count += 1
        if self.limits.rows is not None:
            check_limit(f"entities for {table_key(self.entity_type)}", self.record_count, self.limits.rows)
        self.pending_records.append(properties)
        self.pending_lines.append(line_number)
        if endpoint_ids is not None:
            self.pending_endpoints.append(endpoint_ids)
        if len(self.pending_records) >= _FLUSH_RECORDS:
            self.flush()

    def append_columns(self, columns: dict[str, pa.Array], faults: RecordFaults, line_numbers: Positions) -> None:
        """Add a whole table; `line_numbers` are the input positions of its rows."""
        self.record_count += len(line_numbers)
        check_limit(f"entities for {table_key(self.entity_type)}", self.record_count, self.limits.rows)
        self._store_columns(columns, line_numbers, faults)

    def flush(self) -> None:
        """Convert the pending records to columns, leaving out records with a problem."""
        if not self.pending_records:
            return
        records = self.pending_records
        endpoints = self.pending_endpoints
        line_numbers = np.array(self.pending_lines, np.int64)
        faults = self.pending_faults
        self.pending_records = []
        self.pending_endpoints = []
        self.pending_lines = []
        self.pending_faults = {}
        if self.absent_properties:
            self.given_names.update(*records)
        columns = self._build_columns(records, endpoints, faults)
        record_values = {
            position: [*records[position].values(), *(endpoints[position] if endpoints else ())] for position in faults
        }
        self._store_columns(columns, line_numbers, faults, record_values)

    def _build_columns(
        self, records: list[RecordData], endpoints: list[EndpointIds], faults: RecordFaults
    ) -> dict[str, pa.Array]:
        report_fault, type_name = fault_recorder(faults), self.entity_type.name
        built_columns = {
            prop.name: build_column(
                prop,
                [record.get(prop.name, self.defaults[prop.name]) for record in records],
                type_name,
                report_fault,
                self.limits,
            )
            for prop in self.entity_type.properties
        }
        if isinstance(self.entity_type, EdgeType):
            built_columns["src"] = pa.array([record for record, _ in endpoints], pa.string())
            built_columns["dst"] = pa.array([record for _, record in endpoints], pa.string())
        supplied_ids = [record.get("id") for record in records]
        no_ids = supplied_ids.count(None) == len(supplied_ids)
        id_column = self.resolve_ids(
            pa.table(built_columns), None if no_ids else supplied_ids, faults, len(supplied_ids)
        )
        return {**built_columns, "id": id_column}

    def resolve_ids(self, column_rows: pa.Table, supplied_ids: Any, faults: RecordFaults, row_count: int) -> pa.Array:
        """Return ids for `row_count` rows; an id is derived from the key, read from the input, or generated.

        `column_rows` contains the properties and, for edges, the endpoints.
        """
        if self.entity_type.key is not None:
            self.all_ids_generated = False
            entity_ids = key_ids(self.ir, self.entity_type, column_rows, first_fault_recorder(faults))
            if supplied_ids is not None:
                check_ids_match_keys(entity_ids, supplied_ids, fault_recorder(faults))
            return entity_ids
        self.all_ids_generated = self.all_ids_generated and supplied_ids is None
        return (
            generate_ids(row_count) if supplied_ids is None else given_or_new_ids(supplied_ids, fault_recorder(faults))
        )

    def _store_columns(
        self,
        columns: dict[str, pa.Array],
        line_numbers: Positions,
        faults: RecordFaults,
        record_values: Mapping[int, Iterable[Any]] = _NO_VALUES,
    ) -> None:
        rows = self._assemble_rows(columns)
        positions = sorted(faults)
        entity_ids = rows["id"].take(pa.array(positions, pa.int64())).to_pylist()
        for position, entity_id in zip(positions, entity_ids, strict=True):
            for error in faults[position]:
                self.report_problem(error, int(line_numbers[position]), entity_id, record_values.get(position, ()))
        if faults:
            is_valid = np.ones(len(line_numbers), bool)
            is_valid[list(faults)] = False
            rows, line_numbers = rows.filter(pa.array(is_valid)), line_numbers[is_valid]
        self.built_tables.append(rows.cast(self._schema_of(rows)))
        self.built_positions.append(line_numbers)

    def _assemble_rows(self, columns: dict[str, pa.Array]) -> pa.Table:
        column_names = self.schema.names
        return pa.table([columns[column_name] for column_name in column_names], names=column_names)

    def _schema_of(self, _rows: pa.Table) -> pa.Schema:
        return self.schema

    def report_problem(
        self, error: ClientError, line_number: int, entity_id: str | None, record_values: Iterable[Any] = ()
    ) -> None:
        """Record a problem with its location and its record's values."""
        located_error = _with_location(error, line_number, entity_id, self.entity_type)
        self.problems.add(located_error, line_number, self.entity_type.name, entity_id, record_values=record_values)

    def drain(self) -> tuple[pa.Table, Positions]:
        """Remove and return the rows converted so far, with their input positions."""
        rows, positions = self.all_rows(), self.line_positions()
        self.built_tables, self.built_positions = [], []
        return rows, positions

    def all_rows(self) -> pa.Table:
        """Return all records as one table."""
        self.flush()
        return pa.concat_tables(self.built_tables) if self.built_tables else self.schema.empty_table()

    def line_positions(self) -> Positions:
        """Return the input position of each record."""
        return np.concatenate(self.built_positions) if self.built_positions else np.zeros(0, np.int64)


class Intake:
    """A load's records by type; the buffer class determines what a record must contain."""

    def __init__(
        self,
        ir: SchemaIR,
        problems: ProblemCollector,
        limits: LoadLimits,
        buffer_class: type[TypeBuffer] = TypeBuffer,
    ) -> None:
        self.ir = ir
        self.problems = problems
        self.limits = limits
        self.buffer_class = buffer_class
        self.buffers: dict[TableKey, TypeBuffer] = {}
        self._streamed_blobs: StreamedBlobs | None = None

    def stream_blobs(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield JSON text with markers instead of large blobs, which are kept in files until the load writes them."""
        if self._streamed_blobs is None and has_blobs(self.ir.catalog):
            self._streamed_blobs = new_streamed_blobs(self.limits)
        return pieces if self._streamed_blobs is None else self._streamed_blobs.replace_in(pieces)

    def restore_blobs(self, parsed_line: Any, *, has_envelope: bool) -> Any:
        """Return a parsed line with blobs instead of their markers."""
        if self._streamed_blobs is None:
            return parsed_line
        return self._streamed_blobs.restore(parsed_line, has_envelope=has_envelope)

    def buffer_for(self, entity_type: NodeType | EdgeType) -> TypeBuffer:
        """Return a type's buffer, creating it on first use."""
        buffer_key = table_key(entity_type)
        buffer = self.buffers.get(buffer_key)
        if buffer is None:
            buffer = self.buffers[buffer_key] = self.new_buffer(entity_type)
        return buffer

    def new_buffer(self, entity_type: NodeType | EdgeType) -> TypeBuffer:
        """Return an empty buffer that is not part of the load yet."""
        return self.buffer_class(self.ir, entity_type, self.problems, self.limits)

    def flush(self) -> None:
        """Convert all pending records to columns."""
        for buffer in self.buffers.values():
            buffer.flush()


def unknown_property_errors(
    entity_type: NodeType | EdgeType, member_names: Iterable[str], known_names: frozenset[str]
) -> list[ClientError]:
    """Return an error for each member that is not a property of the type."""
    return [
        InputError(
            reason=f"{table_key(entity_type)} has no property '{member_name}'",
            property=member_name,
            hint=did_you_mean(member_name, known_names),
        )
        for member_name in member_names
        if member_name not in known_names
    ]


def _with_location(
    error: ClientError, line_number: int, entity_id: str | None, entity_type: NodeType | EdgeType
) -> ClientError:
    """Return the same error with line, type and id added to its details."""
    details = {**error.details, "line": line_number, "type_name": entity_type.name}
    if entity_id is not None:
        details["entity_id"] = entity_id
    message = None if type(error).sentence.startswith("[line") else f"line {line_number}: {error.message}"
    return type(error)(message, hint=error.hint, **details)
