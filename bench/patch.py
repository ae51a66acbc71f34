"""Compare the cost of patching one column with the cost of merging whole rows, in bytes and seconds.

Prints one line for each way to change one property in some rows of a wide type. The argument is the number of rows
(200,000 by default).
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph
from omnigraph.ingest.load import LoadMode
from omnigraph.storage import patch_columns

TEXT_COLUMNS = 20
SCHEMA = (
    "node Item { key: String @key  rating: F64?  vector: Vector(32)?  "
    + "  ".join(f"text_{number}: String?" for number in range(TEXT_COLUMNS))
    + " }"
)


def make_items(row_count: int) -> pa.Table:
    """Return wide rows: twenty texts, a vector, a number and a key."""
    random = np.random.default_rng(7)
    texts = {
        f"text_{number}": pa.array([f"{value:024x}" for value in random.integers(0, 1 << 60, row_count)])
        for number in range(TEXT_COLUMNS)
    }
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.random(row_count * 32), pa.float32()), 32)
    keys = [f"item-{number:08}" for number in range(row_count)]
    return pa.table({"key": keys, "rating": random.random(row_count), "vector": vectors, **texts})


def directory_bytes(root: Path) -> int:
    """Return the size of all files below a directory."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def measure(title: str, loaded: Path, mode: LoadMode, rows: pa.Table) -> None:
    """Load rows into a copy of the graph, and print the number of bytes written and the time."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "graph"
        shutil.copytree(loaded, root)
        graph, before = omnigraph.open(str(root)), directory_bytes(root)
        start = time.perf_counter()
        graph.load({"Item": rows}, mode=mode)
        seconds = time.perf_counter() - start
        print(f"{title:<48}{(directory_bytes(root) - before) / 1e6:>10.2f} MB{seconds:>8.2f} s", flush=True)


def main(row_count: int) -> None:
    """Measure a merge of whole rows and several patches."""
    items = make_items(row_count)
    with tempfile.TemporaryDirectory() as folder:
        loaded = Path(folder) / "graph"
        graph = omnigraph.init(str(loaded), SCHEMA)
        graph.load({"Item": items}, mode="append")
        print(f"{row_count:,} rows, {directory_bytes(loaded) / 1e6:.1f} MB")
        ratings = pa.array(np.arange(row_count, dtype=np.float64))
        whole = items.set_column(1, "rating", ratings)
        patch = whole.select(["key", "rating"])
        measure("merge of whole rows", loaded, "merge", whole)
        measure("patch, one more file per fragment", loaded, "patch", patch)
        for share in (2, 10, 100):
            few = patch.take(pa.array(np.arange(0, row_count, share)))
            measure(f"patch of one row in {share}", loaded, "patch", few)
        patch_columns.MIN_ROWS = row_count + 1
        measure("patch of all rows, whole rows replaced", loaded, "patch", patch)
        measure(
            "patch of one row in 2, whole rows replaced",
            loaded,
            "patch",
            patch.take(pa.array(np.arange(0, row_count, 2))),
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
