"""Reports that load tasks send to the driver: a class for each kind of report, and their Arrow form.

`report_rows` defines the reports about single records. The reports in this module are few, and the driver collects all
of them. The strings that identify each kind in Arrow batches are private to this module.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.errors import ClientError, InternalError
from omnigraph.ingest.problem import LoadProblem
from omnigraph.rules.delta import Addresses
from omnigraph.rules.violation import Violation
from omnigraph.values.table_key import TableKey

from .report_encoding import (
    decode_json,
    encode_json,
    error_from_members,
    error_members,
    problem_from_members,
    problem_members,
    violation_from_members,
    violation_members,
)
from .report_rows import REPORT_SCHEMA, ROW_KINDS, spark_ddl, widen_batch
from .staged_fragments import StagedFragment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REPORT_DDL = spark_ddl(REPORT_SCHEMA)
Members = Mapping[str, Any]
SomeReport = TypeVar("SomeReport", bound="TaskReport")


class TaskReport:
    """A report from one task; each subclass is one kind of report, with the fields that the driver needs."""

    __slots__ = ()
    kind: ClassVar[str]

    @property
    def input_position(self) -> int:
        """The position by which the driver sorts reports, or 0 for reports that are not about a record."""
        return 0

    @property
    def payload(self) -> bytes | None:
        """The report's binary data, if any, which is not part of the JSON."""
        return None

    def to_members(self) -> Members:
        """Return all fields except the payload as values that `encode_json` accepts."""
        raise NotImplementedError

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        raise NotImplementedError

    def to_batch(self) -> pa.RecordBatch:
        """Return the report as one row in the DataFrame that contains all reports."""
        columns = {"members": encode_json(self.to_members()), "payload": self.payload, "spot": self.input_position}
        return widen_batch(self.kind, 1, columns)


@dataclass(frozen=True, slots=True)
class FailureReport(TaskReport):
    """An input piece that could not be read; the load fails with the first such error in input order."""

    kind: ClassVar[str] = "failure"
    position: int
    error: ClientError

    @property
    def input_position(self) -> int:
        """The position of the piece's first record."""
        return self.position

    def to_members(self) -> Members:
        """Return the fields."""
        return {"position": self.position, "error": error_members(self.error)}

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(members["position"], error_from_members(members["error"]))


@dataclass(frozen=True, slots=True)
class LineCountReport(TaskReport):
    """The number of lines or rows in a piece."""

    kind: ClassVar[str] = "lines"
    piece_number: int
    line_count: int

    def to_members(self) -> Members:
        """Return the fields."""
        return {"piece_number": self.piece_number, "line_count": self.line_count}

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(**members)


@dataclass(frozen=True, slots=True)
class RecordCountReport(TaskReport):
    """The number of records of one type in a piece, their properties, and whether the piece truncates the type."""

    kind: ClassVar[str] = "count"
    table_key: TableKey
    record_count: int
    truncated: bool
    given_names: tuple[str, ...] = ()

    def to_members(self) -> Members:
        """Return the fields."""
        return {
            "table_key": self.table_key,
            "record_count": self.record_count,
            "truncated": self.truncated,
            "given_names": list(self.given_names),
        }

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(**{**members, "given_names": tuple(members["given_names"])})


@dataclass(frozen=True, slots=True)
class ProblemCountReport(TaskReport):
    """The number of reports about rejected records in a piece."""

    kind: ClassVar[str] = "problem_count"
    problem_count: int

    def to_members(self) -> Members:
        """Return the fields."""
        return {"problem_count": self.problem_count}

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(**members)


@dataclass(frozen=True, slots=True)
class NulledValuesReport(TaskReport):
    """The number of stored values that a merge replaces with null, by property."""

    kind: ClassVar[str] = "nulled"
    table_key: TableKey
    counts: Mapping[str, int]

    def to_members(self) -> Members:
        """Return the fields."""
        return {"table_key": self.table_key, "counts": dict(self.counts)}

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(**members)


@dataclass(frozen=True, slots=True)
class RejectReport(TaskReport):
    """A record that could not be read."""

    kind: ClassVar[str] = "reject"
    problem: LoadProblem

    @property
    def input_position(self) -> int:
        """The position of the record."""
        return self.problem.line or 0

    def to_members(self) -> Members:
        """Return the fields."""
        return problem_members(self.problem)

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(problem_from_members(members))


@dataclass(frozen=True, slots=True)
class ViolationReport(TaskReport):
    """A record that breaks a rule; the subclass determines how the driver handles the violation."""

    violation: Violation

    @property
    def input_position(self) -> int:
        """The position of the record."""
        return self.violation.input_line or 0

    def to_members(self) -> Members:
        """Return the fields."""
        return violation_members(self.violation)

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(violation_from_members(members))


@dataclass(frozen=True, slots=True)
class RowViolationReport(ViolationReport):
    """A record that breaks a row rule, which is always a problem."""

    kind: ClassVar[str] = "row_violation"


@dataclass(frozen=True, slots=True)
class ExistingIdReport(ViolationReport):
    """A record whose id already exists, which is a problem unless a later record replaces it."""

    kind: ClassVar[str] = "existing_id"


@dataclass(frozen=True, slots=True)
class HeldValueReport(ViolationReport):
    """A record that repeats a stored entity's unique value, which is a problem unless the load replaces that entity."""

    kind: ClassVar[str] = "held_value"


@dataclass(frozen=True, slots=True)
class StagedFragmentReport(TaskReport):
    """A fragment that a task wrote."""

    kind: ClassVar[str] = "fragment"
    fragment: StagedFragment

    @property
    def payload(self) -> bytes:
        """The packed positions of the fragment's rows."""
        return self.fragment.packed_positions

    def to_members(self) -> Members:
        """Return the fields."""
        fragment = self.fragment
        return {
            "table_key": fragment.table_key,
            "metadata": fragment.metadata,
            "row_count": fragment.row_count,
            "ids_generated": fragment.ids_generated,
        }

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(StagedFragment(**members, packed_positions=payload or b""))


@dataclass(frozen=True, slots=True, eq=False)
class RemovedRowsReport(TaskReport):
    """The addresses of stored rows that a fragment from the same task replaces."""

    kind: ClassVar[str] = "removed_rows"
    table_key: TableKey
    addresses: Addresses

    @property
    def payload(self) -> bytes:
        """The addresses as little-endian integers."""
        return self.addresses.astype("<u8").tobytes()

    def to_members(self) -> Members:
        """Return the fields."""
        return {"table_key": self.table_key}

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(members["table_key"], np.frombuffer(payload or b"", "<u8").astype(np.uint64))


@dataclass(frozen=True, slots=True)
class ReportedTypeReport(TaskReport):
    """A type with records that exist only in reports, because they are unchanged or were not written."""

    kind: ClassVar[str] = "reported_type"
    table_key: TableKey
    has_unwritten: bool

    def to_members(self) -> Members:
        """Return the fields."""
        return {"table_key": self.table_key, "has_unwritten": self.has_unwritten}

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(**members)


@dataclass(frozen=True, slots=True)
class PatchedRowsReport(TaskReport):
    """The size of the patched rows in one fragment, and the properties that their records contain."""

    kind: ClassVar[str] = "patch_size"
    table_key: TableKey
    fragment_id: int
    row_count: int
    column_bytes: int
    column_names: tuple[str, ...]

    def to_members(self) -> Members:
        """Return the fields."""
        return {
            "table_key": self.table_key,
            "fragment_id": self.fragment_id,
            "row_count": self.row_count,
            "column_bytes": self.column_bytes,
            "column_names": list(self.column_names),
        }

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(**{**members, "column_names": tuple(members["column_names"])})


@dataclass(frozen=True, slots=True)
class PatchedColumnsReport(TaskReport):
    """A stored fragment for which a task wrote new columns."""

    kind: ClassVar[str] = "patched_columns"
    table_key: TableKey
    written_fragment: Mapping[str, Any]

    def to_members(self) -> Members:
        """Return the fields."""
        return {"table_key": self.table_key, "written_fragment": self.written_fragment}

    @classmethod
    def from_members(cls, members: Members, payload: bytes | None) -> Self:
        """Restore a report."""
        return cls(**members)


REPORT_TYPES: Mapping[str, type[TaskReport]] = {
    report_type.kind: report_type
    for report_type in (
        FailureReport,
        LineCountReport,
        RecordCountReport,
        ProblemCountReport,
        NulledValuesReport,
        RejectReport,
        RowViolationReport,
        ExistingIdReport,
        HeldValueReport,
        StagedFragmentReport,
        RemovedRowsReport,
        ReportedTypeReport,
        PatchedRowsReport,
        PatchedColumnsReport,
    )
}


REJECT_KINDS = (RejectReport.kind, RowViolationReport.kind, ExistingIdReport.kind)


def read_reports(table: pa.Table) -> list[TaskReport]:
    """Restore reports from their rows, in input order; raise an error for an unknown kind."""
    rows = table.select(["kind", "members", "payload"]).to_pylist()
    reports = [_read_report(row["kind"], row["members"], row["payload"]) for row in rows]
    return sorted(reports, key=lambda report: report.input_position)


def _read_report(kind: str, members_text: str, payload: bytes | None) -> TaskReport:
    report_type = REPORT_TYPES.get(kind)
    if report_type is None:
        reason = f"a task sent a report of unknown kind {kind!r}"
        raise InternalError(reason=reason, hint="run the same version on the driver and the workers")
    members = decode_json(members_text)
    return report_type.from_members(members, payload)


def collect_reports(task_reports: "DataFrame") -> list[TaskReport]:
    """Collect all reports in input order, except reports about single records and about rejected records."""
    row_kinds = [*(row_kind.kind for row_kind in ROW_KINDS), *REJECT_KINDS]
    return read_reports(task_reports.where(~task_reports.kind.isin(*row_kinds)).toArrow())


def select_reports(reports: Iterable[TaskReport], report_type: type[SomeReport]) -> list[SomeReport]:
    """Select the reports of one type."""
    return [report for report in reports if isinstance(report, report_type)]
