"""Merges, exports, compaction and other work on many blobs need memory for a few of them at most."""

import multiprocessing
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")

SCHEMA = "node Doc { slug: String @key  note: String?  body: Blob? }"


def merge(folder: Path) -> None:
    graph = omnigraph.open(folder / "graph")
    assert graph.merge("review", dry_run=True).outcome == "merged"
    assert graph.merge("review").outcome == "merged"


def replay(folder: Path) -> None:
    graph = omnigraph.open(folder / "graph")
    deleted = graph.delete("Doc", where="slug != 'first'")
    assert deleted.commit is not None
    graph.revisions.revert(deleted.commit.id)


def update(folder: Path) -> None:
    omnigraph.open(folder / "graph").update("Doc", where="slug != 'first'", set={"note": "changed"})


def export(folder: Path) -> None:
    graph = omnigraph.open(folder / "graph")
    graph.export(folder / "all.ndjson")
    graph.changes.baseline(folder / "baseline.ndjson")


def compact(folder: Path) -> None:
    omnigraph.open(folder / "graph").maintenance.optimize()


def copy(folder: Path) -> None:
    omnigraph.open(folder / "graph").maintenance.copy_to(folder / "copy")


def erase(folder: Path) -> None:
    graph = omnigraph.open(folder / "graph")
    graph.delete("Doc", where="slug = 'main0'")
    graph.maintenance.cleanup(keep=1, older_than=0, grace=0, erase=True, confirm=True)


def drop_property(folder: Path) -> None:
    graph = omnigraph.open(folder / "graph")
    graph.branches.delete("review", force=True)
    graph.schema.apply(SCHEMA.replace("note: String?", ""), allow_data_loss=True)


STEPS: list[Callable[[Path], None]] = [merge, replay, update, export, compact, copy, erase, drop_property]


def run_steps(folder: Path, sender: Any) -> None:
    omnigraph.open(folder / "graph").query("match { $d: Doc } return { count($d) as n }")
    for step in STEPS:
        before = memory_bytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        step(folder)
        sender.send((step.__name__, memory_bytes("VmHWM") - before))
    sender.send(None)


def memory_bytes(name: str) -> int:
    """The current (`VmRSS`) or peak (`VmHWM`) memory of this process."""
    (size,) = re.findall(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(size) * 1024


def prepare(folder: Path, blob_count: int, blob_bytes: int) -> None:
    """Both branches add half of the blobs, which differ in their first bytes."""
    graph = omnigraph.init(folder / "graph", SCHEMA, durability="os")
    graph.insert("Doc", {"slug": "first", "body": b"x"})
    review = graph.branches.create("review")
    filler = os.urandom(blob_bytes)
    for branch, name in ((graph, "main"), (review, "review")):
        slugs = [f"{name}{number}" for number in range(blob_count // 2)]
        for slug in slugs:
            (folder / slug).write_bytes(slug.encode() + filler)
        branch.insert("Doc", *({"slug": slug, "body": folder / slug} for slug in slugs))
        for slug in slugs:
            (folder / slug).unlink()


def peak_growth(folder: Path, blob_count: int, blob_bytes: int) -> dict[str, int]:
    """The peak memory of each step, in bytes, beyond the memory that the process used before the step."""
    prepare(folder, blob_count, blob_bytes)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_steps, args=(folder, sender))
    process.start()
    sender.close()
    growth: dict[str, int] = dict(iter(receiver.recv, None))
    process.join()
    return growth


def check_content(folder: Path, blob_count: int) -> None:
    graph = omnigraph.open(folder / "graph")
    for name in ("main", "review"):
        for number in range(blob_count // 2):
            if (name, number) != ("main", 0):  # erased
                assert graph.blob("Doc", f"{name}{number}", "body").read(0, 16).startswith(f"{name}{number}".encode())


def test_work_on_many_blobs_needs_memory_for_a_few(tmp_path: Path) -> None:
    growth = peak_growth(tmp_path, 32, 2 << 20)
    assert set(growth) == {step.__name__ for step in STEPS}
    assert max(growth.values()) < 40 << 20, growth
    check_content(tmp_path, 32)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("blob_count", "blob_bytes"), [(200, 3 << 20), (12, 50 << 20)])
def test_work_on_600_megabytes_of_blobs_needs_less_than_half(tmp_path: Path, blob_count: int, blob_bytes: int) -> None:
    growth = peak_growth(tmp_path, blob_count, blob_bytes)
    assert max(growth.values()) < 250 << 20, growth
    check_content(tmp_path, blob_count)
