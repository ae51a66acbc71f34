"""S3 requests of the storage calls, counted exactly.

The expected text is in tests/cases/requests/blocks.txt: a change of a number there is a change of
the price that every user pays.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.storage import manifest_cell, scan, stage_rows, table
from omnigraph.storage.store import Store, open_store
from tests.rig.plugin import S3
from tests.rig.proxy import Proxy, requests_of
from tests.rig.request_log import Traffic
from tests.rig.timeouts import PATIENCE

GOLDEN = Path(__file__).parent.parent / "cases" / "requests" / "blocks.txt"
SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64())])
ORDER = ("HEAD", "LIST", "GET", "PUT", "POST", "DELETE")
SHELF, STATE = "nodes/shelf", "__manifest"


def rows(*names: str, n: int = 0) -> pa.Table:
    return pa.table({"id": list(names), "n": [n] * len(names)}, schema=SCHEMA)


class Bill:
    """Lines of what was asked of the server, block by block."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.lines: list[str] = []

    @contextmanager
    def item(self, title: str) -> Iterator[Traffic]:
        with requests_of(self.proxy) as made:
            yield made
        assert made.attempts == made.counts, made.lines
        parts = [f"{made.counts[name]} {name}" for name in ORDER if made.counts[name]]
        asked = ", ".join(parts) or "nothing"
        waits = f", {made.hops} one after another" if made.hops > 1 else ""
        self.lines.append(f"{title}: {asked}{waits}")


def objects_on(bill: Bill, store: Store) -> None:
    with bill.item("create a control object"):
        store.objects.create_json("_audit/a.json", {})
    with bill.item("find its name taken"):
        store.objects.create_json("_audit/a.json", {})
    with bill.item("read a control object"):
        store.objects.read_json("_audit/a.json")
    with bill.item("find it absent"):
        store.objects.read_json("_audit/b.json")
    with bill.item("list control objects"):
        store.objects.list("_audit")
    with bill.item("write a lease"):
        store.objects.write_lease("a.lease", {})
    with bill.item("remove a control object"):
        store.objects.remove("_audit/a.json")


def cells_on(bill: Bill, store: Store) -> None:
    with bill.item("create a cell"):
        first = manifest_cell.create_cell(store, STATE, rows("a"))
    with bill.item("swap a cell"):
        second = manifest_cell.swap(store, first, rows("b"))
    with bill.item("ask for the newest version of a cell"):
        assert manifest_cell.newest_version(second) == 2
    with bill.item("lose a swap"), pytest.raises(manifest_cell.SwapConflict):
        manifest_cell.swap(store, first, rows("c"))
    with bill.item("read a cell, cold"):
        found = manifest_cell.open_cell(store, STATE).read_rows(["id", "n"])
    assert found == [{"id": "b", "n": 0}]


def tables_on(bill: Bill, store: Store, url: str) -> None:
    with bill.item("create a table"):
        shelf = table.create_table(store, SHELF, SCHEMA)
    with bill.item("stage an append"):
        staged = stage_rows.stage_append(store, shelf, rows("a", "b", "c"))
    with bill.item("commit it, detached"):
        shelf = table.commit(store, shelf, staged)
    with bill.item("find rows by id, one fragment, cold"):
        found = scan.find_rows(shelf, "id", ["b"], ["id", "n"])
    with bill.item("find them again"):
        scan.find_rows(shelf, "id", ["b"], ["id", "n"])
    with bill.item("stage an update of one row"):
        gone, kept = found["_rowaddr"].to_pylist(), found["_rowid"].to_pylist()
        changed = stage_rows.stage_change(store, shelf, removed_addresses=gone, replacements=(kept, rows("b", n=1)))
    with bill.item("commit it, detached"):
        shelf = table.commit(store, shelf, changed)
    with bill.item("open a pinned version that is held"):
        table.open_table(store, SHELF, shelf.version)
    other = open_store(url)
    with bill.item("open a pinned version, cold"):
        table.open_table(other, SHELF, shelf.version)


def publish_once(store: Store, shelf: table.Table, state: manifest_cell.ManifestCell, name: str) -> table.Table:
    staged = stage_rows.stage_append(store, shelf, rows(name))
    shelf = table.commit(store, shelf, staged)
    swapped = manifest_cell.swap(store, state, rows(name))
    assert manifest_cell.newest_version(swapped) == swapped.version
    return shelf


def test_requests_of_storage_calls_match_the_golden_file(s3: S3) -> None:
    store, bill = open_store(s3.url), Bill(s3.proxy)
    objects_on(bill, store)
    cells_on(bill, store)
    tables_on(bill, store, s3.url)
    state = manifest_cell.open_cell(store, STATE)
    shelf = table.create_table(store, "nodes/other", SCHEMA)
    with bill.item("append one row and publish it, warm"):
        publish_once(store, shelf, state, "x")
    comments = [line for line in GOLDEN.read_text().splitlines() if line.startswith("#")]
    assert "\n".join([*comments, *bill.lines]) + "\n" == GOLDEN.read_text()


def test_write_requests_do_not_grow_with_history(s3: S3) -> None:
    store = open_store(s3.url)
    shelf = table.create_table(store, SHELF, SCHEMA)
    state = manifest_cell.create_cell(store, STATE, rows("first"))
    costs = []
    for n in range(20):
        with requests_of(s3.proxy) as made:
            shelf = table.commit(store, shelf, stage_rows.stage_append(store, shelf, rows(f"r{n}")))
            state = manifest_cell.swap(store, state, rows(f"r{n}"))
            assert manifest_cell.newest_version(state) == n + 2
        costs.append((made.counts, made.hops))
    assert costs == [({"PUT": 6, "LIST": 1}, 7)] * 20


# Swaps whose answers are lost.


def lose_answer(proxy: Proxy) -> None:
    proxy.drop("PUT", "*_versions/*")


def fail_after(proxy: Proxy) -> None:
    proxy.answer(500, "PUT", "*_versions/*", forward=True)


@pytest.mark.parametrize("fault", [lose_answer, fail_after])
def test_a_repeated_swap_recognises_itself(s3: S3, fault: Callable[[Proxy], None]) -> None:
    store = open_store(s3.url)
    first = manifest_cell.create_cell(store, STATE, rows("first"))
    fault(s3.proxy)
    with requests_of(s3.proxy) as made:
        second = manifest_cell.swap(store, first, rows("second"))
    assert made.attempts["PUT"] == made.counts["PUT"] + 1, made.lines
    assert (second.version, manifest_cell.newest_version(second)) == (2, 2)
    assert manifest_cell.open_cell(store, STATE).read_rows(["id"]) == [{"id": "second"}]


def test_late_repeated_swap_is_a_conflict(s3: S3) -> None:
    store = open_store(s3.url)
    first = manifest_cell.create_cell(store, STATE, rows("first"))
    rival = manifest_cell.open_cell(store, STATE)
    s3.proxy.answer(500, "PUT", "*_versions/*", forward=False)
    held = s3.proxy.hold("PUT", "*_versions/*")
    outcome: list[type] = []

    def late() -> None:
        try:
            manifest_cell.swap(store, first, rows("late"))
        except manifest_cell.SwapConflict as lost:
            outcome.append(type(lost))

    thread = threading.Thread(target=late)
    thread.start()
    assert held.hit.wait(PATIENCE)
    manifest_cell.swap(store, rival, rows("early"))
    held.release()
    thread.join()
    assert outcome == [manifest_cell.SwapConflict]
    assert manifest_cell.open_cell(store, STATE).read_rows(["id"]) == [{"id": "early"}]


def impatient(store: Store) -> Store:
    """The same store, but Lance's client tries once: it adds attempts of its own anyway."""
    return replace(store, root=replace(store.root, options={**store.root.options, "client_max_retries": "0"}))


@pytest.mark.parametrize(("forward", "left"), [(True, "second"), (False, "first")])
def test_swap_without_a_response_has_unknown_outcome(s3: S3, forward: bool, left: str) -> None:
    store = impatient(open_store(s3.url))
    first = manifest_cell.create_cell(store, STATE, rows("first"))
    s3.proxy.cut(1, "PUT", "*_versions/*", forward=forward)
    with pytest.raises(manifest_cell.SwapOutcomeUnknown):
        manifest_cell.swap(store, first, rows("second"))
    s3.proxy.heal()
    assert manifest_cell.open_cell(store, STATE).read_rows(["id"]) == [{"id": left}]
