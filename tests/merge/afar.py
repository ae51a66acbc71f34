"""The tasks of a merge on Spark, run in this process: all of it but Spark itself."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.pipeline import compare
from omnigraph.pipeline.compare import Part, Trio
from omnigraph.pipeline.merge import SparkMerge
from omnigraph.pipeline.packed import unpacked
from omnigraph.pipeline.place import place_of


class Here(SparkMerge):
    """Compares and writes every table as tasks do, one task after the other."""

    def __init__(self) -> None:
        super().__init__(None, asked=True)

    def _run(self, trio: Trio, parts: Sequence[Part]) -> Mapping[str, list[pa.Table]]:
        units = pa.RecordBatch.from_pydict({"id": list(range(len(parts)))})
        rows = list(compare.may_differ(trio.place, parts)(iter([units])))
        found: dict[str, list[pa.Table]] = {}
        if rows:
            grouped = pa.Table.from_batches(rows).group_by("id")
            matched = grouped.aggregate([(name, "max") for name in compare.COLUMNS])
            matched = matched.rename_columns(
                [name.removesuffix("_max") for name in matched.column_names]
            )
            for cell in compare.compared(trio)(iter(matched.combine_chunks().to_batches())):
                kind, data = (cell.column(at)[0].as_py() for at in (0, 1))
                found.setdefault(kind, []).append(unpacked(data))
        return found

    def write(self, store: Any, source: Any, target: Any, row_ids: Any, kept: Any) -> Any:
        pinned = {
            compare.SOURCE: (source.location, source.version),
            compare.TARGET: (target.location, target.version),
        }
        order = np.lexsort((row_ids, kept >= 0))
        units = pa.RecordBatch.from_pydict({"row": row_ids[order], "kept": kept[order]})
        cells = compare.written(place_of(store, pinned))(iter([units]))
        return [json.loads(one.column(1)[0].as_py()) for one in cells]


@contextmanager
def merged_by(engine: SparkMerge) -> Iterator[None]:
    """Let every merge of this process be done by an engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.api.merges.choose_merge_engine", lambda *_: engine)
        yield
