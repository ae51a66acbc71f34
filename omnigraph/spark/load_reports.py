"""Driver side of a load: what its tasks reported, and the staged change of each table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omnigraph.ingest.load import LoadMode
from omnigraph.ingest.problem import LoadProblem
from omnigraph.publish.plan import WriteTxn
from omnigraph.rules.violation import Violation
from omnigraph.storage.fragments import (
    stage_appended_fragments,
    stage_changed_fragments,
    stage_overwriting_fragments,
)
from omnigraph.storage.table import StagedChange

from .staged_fragments import StagedFragment
from .task_reports import PER_RECORD_KINDS, unpickle_data

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from omnigraph.errors import ClientError


def stage_table(
    txn: WriteTxn,
    table_key: str,
    mode: LoadMode,
    fragments: Sequence[Any],
    removed_addresses: Sequence[Any],
) -> StagedChange:
    """Stage the fragments that tasks wrote to a table, and the rows that they replace."""
    table = txn.table(table_key)
    if mode == "overwrite":
        return stage_overwriting_fragments(table, fragments)
    if not removed_addresses:
        return stage_appended_fragments(table, fragments)
    return stage_changed_fragments(txn.store, table, fragments, np.concatenate(removed_addresses))


def collect_driver_rows(task_reports: "DataFrame") -> list[dict[str, Any]]:
    """Collect the reports that are not about single records, in order of their positions."""
    driver_rows: list[dict[str, Any]] = (
        task_reports.where(~task_reports.kind.isin(*PER_RECORD_KINDS)).toArrow().to_pylist()
    )
    return sorted(driver_rows, key=lambda report: report["spot"] or 0)


def read_staged_fragments(driver_rows: Sequence[Mapping[str, Any]]) -> list[StagedFragment]:
    """Return the fragments that tasks wrote."""
    return [unpickle_data(report["data"]) for report in driver_rows if report["kind"] == "fragment"]


def raise_failure(driver_rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise the first error that a task reported."""
    for report in driver_rows:
        if report["kind"] == "failure":
            error: ClientError = unpickle_data(report["data"])
            raise error


def problem_from_violation(violation: Violation) -> LoadProblem:
    """Return a violation as a problem of the load."""
    return LoadProblem(
        violation.input_line, violation.type_name, violation.entity_id, violation.to_error()
    )
