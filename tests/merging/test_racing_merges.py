"""Merges from several processes into one branch, beside a writer: each lands once."""

from multiprocessing import get_context

import pytest

from tests.merging.conftest import Both, person, stored
from tests.merging.merge_race_tasks import merge_until_done, write

BRANCHES, WRITES = 3, 10


@pytest.mark.full
def test_racing_merges_and_writes_all_land_once(both: Both) -> None:
    both.put("main", {"node:Person": {f"b{n}": person(f"b{n}", 0) for n in range(BRANCHES)}})
    for n in range(BRANCHES):
        both.fork(f"x{n}")
        both.put(f"x{n}", {"node:Person": {f"x{n}": person(f"x{n}"), f"b{n}": person(f"b{n}", 1)}})
    context = get_context("spawn")
    told, uri = context.Queue(), both.graph.uri
    # Each branch is merged by two: only one of them may land.
    names = [f"x{n}" for n in range(BRANCHES)] * 2
    tasks = [context.Process(target=merge_until_done, args=(uri, name, told)) for name in names]
    tasks.append(context.Process(target=write, args=(uri, WRITES, told)))
    for one in tasks:
        one.start()
    outcomes = [told.get(timeout=300) for _ in tasks]
    for one in tasks:
        one.join()
    landed = sorted(name for name, what in outcomes if what in ("merged", "fast_forward"))
    assert landed == [f"x{n}" for n in range(BRANCHES)]
    rows = stored(both.on("main"))["node:Person"]
    assert len(rows) == 2 * BRANCHES + WRITES
    assert [rows[f"b{n}"]["p"] for n in range(BRANCHES)] == [1] * BRANCHES
    assert [one.operation for one in both.on("main").log()].count("merge") == BRANCHES
