"""Rows that violate a schema rule, written past the rules, are found and named."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from omnigraph.api.graph import Graph
from omnigraph.history.manifest import read_manifest, swap_state
from omnigraph.history.state import GraphState
from omnigraph.maintenance import check as checks
from omnigraph.maintenance.check import check_graph
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.store import open_store
from omnigraph.values.table_key import TableKey
from tests.maintenance.conftest import again, smuggle

PERSON, KNOWS = TableKey("node:Person"), TableKey("edge:Knows")

BROKEN: list[tuple[str, str, list[dict[str, Any]], str, str]] = [
    ("value", PERSON, [{"id": "x", "name": "x", "age": 151}], "x", "151 is not in 0..150"),
    ("key", PERSON, [{"id": "ada", "name": "ada"}], "ada", "2 rows have this id"),
    ("key", PERSON, [{"id": "x", "name": "y"}], "x", "the key requires the id 'y'"),
    ("unique", PERSON, [{"id": n, "name": n, "badge": "7"} for n in ("x", "y")], "y", "also belongs to 'x'"),
    ("endpoint", KNOWS, [{"id": "k", "src": "ada", "dst": "no"}], "k", "dst 'no' not found"),
    ("cardinality", KNOWS, [{"id": f"k{n}", "src": "cid", "dst": "bob"} for n in range(3)], "cid", "3 edges"),
]


@pytest.mark.parametrize(("kind", "key", "rows", "entity", "why"), BROKEN)
def test_every_violated_rule_is_reported(
    graph: Graph, kind: str, key: str, rows: list[dict[str, Any]], entity: str, why: str
) -> None:
    smuggle(graph, key, rows)
    found = again(graph).maintenance.check()
    assert not found
    assert not found.damage
    told = [one for one in found.findings if one.kind == kind]
    assert [(one.branch, one.type_key, one.entity_id) for one in told] == [("main", key, entity)]
    assert why in told[0].reason
    assert found.readable["main"] == again(graph).head.id, "a broken rule can be read"
    assert again(graph).maintenance.check(quick=True), "a quick look reads no rows"


def test_row_counts_and_field_ids_are_compared_with_the_manifest(graph: Graph) -> None:
    def prepare(txn: WriteTxn) -> PublishPlan:
        entry = txn.base.state.tables[PERSON]
        wrong = replace(entry, row_count=entry.row_count + 5, max_field_id=1, version=entry.version + 1)
        return PublishPlan("forged", adopted_tables={PERSON: wrong})

    publish(graph._handle.branch_state, prepare)
    found = again(graph).maintenance.check()
    assert {one.kind for one in found.findings} == {"field"}

    def counted(txn: WriteTxn) -> PublishPlan:
        entry = txn.base.state.tables[PERSON]
        wrong = replace(entry, max_field_id=99, version=entry.version + 1)
        return PublishPlan("forged", adopted_tables={PERSON: wrong})

    publish(graph._handle.branch_state, counted)
    (told,) = again(graph).maintenance.check().findings
    assert told.kind == "count"
    assert "but the table has 3" in told.reason


FORGED: list[tuple[Callable[[GraphState], GraphState], str]] = [
    (lambda s: replace(s, tail=(*s.tail, s.tail[-1])), "is in the log twice"),
    (lambda s: replace(s, tail=(*s.tail[:2], *s.tail[3:])), "which is missing"),
    (lambda s: replace(s, head=replace(s.head, commit_id="0" * 26)), "is not in the log"),
    (
        lambda s: replace(s, tables={**s.tables, PERSON: replace(s.tables[PERSON], version=0)}),
        "",  # numbers are for people
    ),
    (
        lambda s: replace(s, tables={**s.tables, PERSON: replace(s.tables[PERSON], lance_version=1, row_count=0)}),
        "the branch state and the log disagree on node:Person",
    ),
]


@pytest.mark.parametrize(("forge", "why"), FORGED)
def test_manifest_that_contradicts_its_log_is_reported(
    graph: Graph, forge: Callable[[GraphState], GraphState], why: str
) -> None:
    opened = read_manifest(graph._handle.store)
    swap_state(graph._handle.store, opened, forge(opened.state))
    found = check_graph(open_store(graph.uri), quick=True)
    told = [(one.kind, one.branch) for one in found.findings]
    assert told == ([("log", "main")] if why else [])
    assert all(why in one.reason for one in found.findings)


def test_many_findings_are_counted(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_FINDINGS", 3)
    smuggle(graph, PERSON, [{"id": f"x{n}", "name": f"x{n}", "age": -1} for n in range(10)])
    found = again(graph).maintenance.check()
    assert (len(found.findings), found.more) == (3, 7)
    told = found.to_json()
    assert told["ok"] is False
    assert told["more"] == 7


def test_tables_shared_by_branches_are_read_once(graph: Graph) -> None:
    smuggle(graph, PERSON, [{"id": "x", "name": "x", "age": 151}])
    rows = again(graph).maintenance.check().read["rows"]
    graph.branches.create("twin")
    found = again(graph).maintenance.check()
    assert len(found.findings) == 1
    assert found.read["rows"] == rows
