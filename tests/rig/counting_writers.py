"""Writers that increment one cell, as functions for other processes."""

import multiprocessing
from typing import Any

import pyarrow as pa

from omnigraph.storage.manifest_cell import SwapConflict, create_cell, open_cell, swap
from omnigraph.storage.store import open_store
from tests.rig.timeouts import PATIENCE

CELL = "__manifest"


def number(n: int) -> pa.Table:
    """The rows of a cell that holds a number."""
    return pa.table({"n": pa.array([n], pa.int64())})


def count_up(url: str, times: int, start: Any, lost: Any) -> None:
    """Add one, `times` times, each time from the newest number; tell how often others won."""
    store = open_store(url)
    start.wait()
    cell, done, races = open_cell(store, CELL), 0, 0
    while done < times:
        try:
            (row,) = cell.read_rows(["n"])
            cell, done = swap(store, cell, number(row["n"] + 1)), done + 1
        except SwapConflict:
            cell, races = open_cell(store, CELL), races + 1
    lost.put(races)


def race(url: str, writers: int, times: int) -> tuple[int, int, int]:
    """The number in the end, its version, and how many swaps were lost, after all writers."""
    store = open_store(url)
    create_cell(store, CELL, number(0))
    spawn = multiprocessing.get_context("spawn")
    start, lost = spawn.Barrier(writers, timeout=PATIENCE), spawn.Queue()
    processes = [spawn.Process(target=count_up, args=(url, times, start, lost)) for _ in range(writers)]
    for one in processes:
        one.start()
    races = sum(lost.get(timeout=PATIENCE) for _ in processes)
    for one in processes:
        one.join()
    lost.close()
    lost.join_thread()
    end = open_cell(store, CELL)
    return end.read_rows(["n"])[0]["n"], end.version, races
