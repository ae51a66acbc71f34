"""Measure how fast a large blob is written and read, and how much memory each step needs.

    python -m bench.blobs [GIGABYTES] [--folder DIR] [--update] [--merge] [--export] [--optimize]

Each step runs in its own child process, so that its peak memory can be measured. The blob is random, is never held in
memory, and is deleted at the end together with the graph. `--update` also changes another property of the node,
`--merge` merges a branch that has added the blob into a branch that has also changed, `--export` writes NDJSON, and
`--optimize` compacts the table.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20
_SCHEMA = "node Doc { slug: String @key  note: String?  body: Blob? }"


def main() -> None:
    """Run the steps, and print one line per step."""
    arguments = _parse_arguments()
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-bench-blobs-", dir=arguments.folder))
    try:
        size = int(arguments.gigabytes * (1 << 30))
        _write_random_file(folder / "source", size)
        steps: list[tuple[str, Callable[[Path], None]]] = [("put", _put), ("hash", _hash), ("save", _save)]
        steps += [("merge", _merge)] * arguments.merge + [("export", _export)] * arguments.export
        steps += [("optimize", _optimize)] * arguments.optimize + [("update", _update)] * arguments.update
        for name, step in steps:
            seconds, peak = _measure(step, folder)
            print(f"{name:<9} {size / seconds / 1e6:8.0f} MB/s  {seconds:7.1f} s  peak RSS {peak:6.0f} MB", flush=True)
    finally:
        shutil.rmtree(folder)


def _parse_arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gigabytes", nargs="?", type=float, default=1.0)
    parser.add_argument("--folder", help="where to create the graph; needs three times the size of the blob")
    parser.add_argument("--update", action="store_true", help="also change another property of the node")
    parser.add_argument("--merge", action="store_true", help="also merge a branch that has added the blob")
    parser.add_argument("--export", action="store_true", help="also export the graph as NDJSON")
    parser.add_argument("--optimize", action="store_true", help="also compact the table")
    return parser.parse_args()


def _write_random_file(path: Path, size: int) -> None:
    with path.open("wb") as file:
        for start in range(0, size, _BLOCK):
            file.write(os.urandom(min(_BLOCK, size - start)))


def _measure(step: Callable[[Path], None], folder: Path) -> tuple[float, float]:
    """Run a step in a new process; return its seconds and its peak memory in megabytes."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_step, args=(step, folder, sender))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{step.__name__} failed with exit code {process.exitcode}")
    seconds, peak = receiver.recv()
    return seconds, peak


def _run_step(step: Callable[[Path], None], folder: Path, sender: Any) -> None:
    started = time.perf_counter()
    step(folder)
    seconds = time.perf_counter() - started
    sender.send((seconds, _peak_megabytes()))


def _peak_megabytes() -> float:
    """Return the peak memory of this process. On Linux, `ru_maxrss` would include the parent process."""
    status = Path("/proc/self/status")
    if status.exists():
        peak_line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak_line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def _put(folder: Path) -> None:
    import omnigraph

    graph = omnigraph.init(folder / "graph", _SCHEMA)
    graph.insert("Doc", {"slug": "large", "body": folder / "source"}, {"slug": "small", "body": b"x"})


def _hash(folder: Path) -> None:
    import hashlib

    import omnigraph

    with (folder / "source").open("rb") as file:
        expected = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    graph = omnigraph.open(folder / "graph", read_only=True)
    if graph.blob("Doc", "large", "body").content_hash != expected:
        raise SystemExit("the stored blob differs from its source")


def _save(folder: Path) -> None:
    import omnigraph

    target = folder / "target"
    omnigraph.open(folder / "graph", read_only=True).blob("Doc", "large", "body").save(target)
    target.unlink()


def _update(folder: Path) -> None:
    import omnigraph

    omnigraph.open(folder / "graph").update("Doc", where="slug = 'large'", set={"note": "changed"})


def _merge(folder: Path) -> None:
    import omnigraph

    graph = omnigraph.init(folder / "merged", _SCHEMA)
    graph.insert("Doc", {"slug": "first"})
    review = graph.branches.create("review")
    review.insert("Doc", {"slug": "large", "body": folder / "source"})
    graph.insert("Doc", {"slug": "small", "body": b"x"})
    if graph.merge("review").outcome != "merged":
        raise SystemExit("expected a merge of two branches")
    shutil.rmtree(folder / "merged")


def _export(folder: Path) -> None:
    import omnigraph

    target = folder / "all.ndjson"
    omnigraph.open(folder / "graph", read_only=True).export(target)
    target.unlink()


def _optimize(folder: Path) -> None:
    import omnigraph

    graph = omnigraph.open(folder / "graph")
    graph.delete("Doc", where="slug = 'small'")  # a fragment is rewritten only if rows were deleted
    graph.maintenance.optimize()


if __name__ == "__main__":
    main()
