"""A Spark merge whose tasks run in this process, without Spark."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.spark import merge_tasks
from omnigraph.spark.arrow_bytes import unpack_table
from omnigraph.spark.merge import SparkMerge
from omnigraph.spark.merge_tasks import DifferingFragments, ThreeWayTable
from omnigraph.spark.pinned_graph import pin_graph


class Here(SparkMerge):
    """Compares and writes every table as tasks do, one task after the other."""

    def __init__(self) -> None:
        super().__init__(None, forced=True)

    def _compare_on_spark(
        self, trio: ThreeWayTable, parts: Sequence[DifferingFragments]
    ) -> Mapping[str, list[pa.Table]]:
        units = pa.RecordBatch.from_pydict({"id": list(range(len(parts)))})
        rows = list(merge_tasks.make_candidate_task(trio.pinned_graph, parts)(iter([units])))
        found: dict[str, list[pa.Table]] = {}
        if rows:
            grouped = pa.Table.from_batches(rows).group_by("id")
            matched = grouped.aggregate([(name, "max") for name in merge_tasks.ROW_ID_COLUMNS])
            matched = matched.rename_columns([name.removesuffix("_max") for name in matched.column_names])
            for cell in merge_tasks.make_compare_task(trio)(iter(matched.combine_chunks().to_batches())):
                kind, data = (cell.column(at)[0].as_py() for at in (0, 1))
                found.setdefault(kind, []).append(unpack_table(data))
        return found

    def write(self, store: Any, source: Any, target: Any, row_ids: Any, kept: Any) -> Any:
        pinned = {
            merge_tasks.SOURCE: (source.location, source.version),
            merge_tasks.TARGET: (target.location, target.version),
        }
        order = np.lexsort((row_ids, kept >= 0))
        units = pa.RecordBatch.from_pydict({"row": row_ids[order], "kept": kept[order]})
        cells = merge_tasks.make_write_task(pin_graph(store, pinned))(iter([units]))
        return [json.loads(one.column(1)[0].as_py()) for one in cells]


@contextmanager
def merged_by(engine: SparkMerge) -> Iterator[None]:
    """Let every merge of this process be done by an engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.api.merges.choose_merge_engine", lambda *_: engine)
        yield
