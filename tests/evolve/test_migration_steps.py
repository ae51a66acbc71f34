"""Every kind of step on empty tables, on rows and on a branch, against the model."""

from collections.abc import Callable
from typing import Literal

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import SchemaUnsupported, SchemaViolation
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.canonical_shape import shape_hash
from omnigraph.lang.schema.ir import hash_ir
from omnigraph.lang.schema.migrate import steps as kinds
from omnigraph.testing import graph as new_graph
from tests.evolve.cases import Case, cases, rows_of
from tests.evolve.migration_model import Rows, carried

CASES = cases()
Place = Literal["empty", "rows", "branch", "many"]
# What has no effect on data or on rules has no step of its own here.
NOT_APPLIED = {"step", "unsupported_change"}


def filled(case: Case, place: Place) -> Callable[[Graph], None]:
    """Puts the data of a case into a graph: in one load, or so that rows lie in many fragments."""

    def fill(graph: Graph) -> None:
        if place == "many":
            for line in case.lines("data"):
                graph.load(line.encode(), mode="append")
            graph.maintenance.ensure_indices()
        elif place != "empty":
            graph.load(case["data"].encode(), mode="append")

    return fill


@pytest.mark.parametrize("place", ["empty", "rows", "branch", pytest.param("many", marks=pytest.mark.full)])
@pytest.mark.parametrize("case", CASES, ids=lambda one: one.title)
def test_migrated_data_matches_the_model(case: Case, place: Place) -> None:
    with new_graph(case["before"]) as main:
        filled(case, place)(main)
        graph = main.branches.create("dev") if place == "branch" else main
        before, head, tables = rows_of(graph), graph.head.id, dict(graph.snapshot.tables)
        plan = graph.schema.plan(case["after"])
        expected = carried(before, plan.to_json()["steps"])
        if case["refused-plan"] or (case["refused"] and place != "empty"):
            _is_refused(graph, case, before, head)
            return
        done = graph.schema.apply(case["after"], message="why", actor="me")
        assert rows_of(graph) == expected
        _is_one_commit(graph, done.commit_id, head)
        assert rows_of(graph.at(head)) == before
        if place == "branch":
            assert rows_of(main) == before
            assert main.snapshot.tables == tables
        _goes_on(graph, case, expected)


def _is_refused(graph: Graph, case: Case, before: Rows, head: str) -> None:
    if case["refused-plan"]:
        with pytest.raises(SchemaUnsupported, match=case["refused-plan"].strip()):
            graph.schema.apply(case["after"])
    else:
        for dry_run in (True, False):
            with pytest.raises(SchemaViolation) as caught:
                graph.schema.apply(case["after"], dry_run=dry_run)
            for line in case.lines("refused"):
                assert line in str(caught.value)
            assert len(caught.value.violations) == len(case.lines("refused"))
    assert graph.refresh().head.id == head
    assert rows_of(graph) == before


def _is_one_commit(graph: Graph, commit_id: str | None, head: str) -> None:
    commit = graph.revisions.commit("HEAD")
    assert (commit.id, commit.parents, commit.operation) == (commit_id, (head,), "schema_apply")
    assert (commit.actor, commit.message) == ("me", "why")


def _goes_on(graph: Graph, case: Case, expected: Rows) -> None:
    """The schema is what was asked for, in a fresh handle too; a second time nothing changes."""
    schema = graph.schema
    assert shape_hash(schema.ir.catalog) == shape_hash(compile_schema(case["after"]))
    assert schema.source == case["after"]
    assert not graph.schema.apply(case["after"])
    if case["then"] and expected:
        graph.load(case["then"].encode(), mode="append")
        graph.maintenance.ensure_indices()
        found = rows_of(graph)
        for key, rows in expected.items():
            assert {name: found[key][name] for name in rows} == rows
        assert sum(map(len, found.values())) == sum(map(len, expected.values())) + len(case.lines("then"))
    assert hash_ir(graph.schema.ir) == graph.snapshot.schema_row.hash


def test_cases_cover_every_kind_of_step() -> None:
    planned = {step["kind"] for case in CASES for step in _planned(case)}
    known = {one.kind for one in vars(kinds).values() if isinstance(one, type) and hasattr(one, "kind")}
    made_by_merges = {"convert_property"}
    assert known - planned - made_by_merges == NOT_APPLIED - planned


def _planned(case: Case) -> list[dict[str, str]]:
    from omnigraph.lang.schema.migrate import plan_migration

    plan = plan_migration(compile_schema(case["before"]), compile_schema(case["after"]))
    return [step.to_json() for step in plan.steps]
