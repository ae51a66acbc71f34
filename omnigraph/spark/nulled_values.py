"""Count the stored values that a Spark `merge` load replaces with null because the input omits their property."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .task_reports import NulledValuesReport, RecordCountReport, TaskReport, select_reports

if TYPE_CHECKING:
    from omnigraph.values.table_key import TableKey


def sum_nulled_values(collected: Sequence[TaskReport]) -> dict[str, dict[str, int]]:
    """Return the number of values replaced with null, by type and property."""
    given_names: dict[TableKey, set[str]] = {}
    for count_report in select_reports(collected, RecordCountReport):
        given_names.setdefault(count_report.table_key, set()).update(count_report.given_names)
    nulled: dict[str, dict[str, int]] = {}
    for report in select_reports(collected, NulledValuesReport):
        counts = nulled.setdefault(report.table_key.type_name, {})
        for property_name in sorted(set(report.counts) - given_names[report.table_key]):
            counts[property_name] = counts.get(property_name, 0) + report.counts[property_name]
    return {type_name: counts for type_name, counts in sorted(nulled.items()) if counts}
