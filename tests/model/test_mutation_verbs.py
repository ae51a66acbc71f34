"""Random mutations with every verb, on nodes and edges: the graph and the receipt equal those of the oracle.

Programs are short sequences of mutations on one small graph. `DEFECTS` are planted one at a time; the programs
find each.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.expressions.evaluate import evaluate_value
from omnigraph.engine.writes import overlay, row_writes, statements
from omnigraph.engine.writes.assigned_rows import AssignedRow
from omnigraph.engine.writes.generated_ids import IdGenerator
from omnigraph.engine.writes.table_overlay import build_table_delta
from omnigraph.engine.writes.touched_rows import TouchedRows
from omnigraph.errors import OmnigraphError
from omnigraph.ingest.defaults import defaults_of
from omnigraph.values import clock_and_ids
from tests.model.oracle import NOW, Oracle, numbers
from tests.model.product_view import stored_world
from tests.model.random_writes import SCHEMA, Scribe
from tests.model.test_random_graph_histories import START, made_ids, same
from tests.model.write_oracle import Refused

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verbs") / "template"
    omnigraph.init(root, SCHEMA, durability="os").load(START.encode(), mode="append")
    return root


def run_program(template: Path, seed: int, length: int) -> Counter[str]:
    """Run random mutations on a copy of the graph; return what they led to."""
    root = template.parent / f"program-{seed}"
    shutil.copytree(template, root)
    outcomes: Counter[str] = Counter()
    try:
        graph, oracle, dice = omnigraph.open(root, durability="os"), Oracle.of(SCHEMA, START), Random(seed)
        for number in range(length):
            written = Scribe(dice, oracle.world).mutation()
            outcomes[_compare(graph, oracle, written.text, dict(written.given), number)] += 1
            graph = graph.refresh()
    finally:
        shutil.rmtree(root)
    return outcomes


def _compare(graph: Any, oracle: Oracle, text: str, given: dict[str, Any], number: int) -> str:
    """Run one mutation on both sides; a refusal must be the same on both."""
    fresh = numbers()
    with clock_and_ids.deterministic_ids(datetime.fromtimestamp(NOW / 1000, UTC), seed=number):
        try:
            receipt = graph.mutate(text, params=given)
            done: Any = {name: n for name, n in {**receipt.nodes, **receipt.edges}.items() if n}
            fresh = made_ids(text, receipt.ids) if receipt else fresh
        except OmnigraphError as error:
            done = type(error).__name__
    try:
        wanted: Any = oracle.mutate(text, given, fresh)
    except Refused as refused:
        wanted = refused.error
    except OmnigraphError as error:
        wanted = type(error).__name__
    assert done == wanted, text
    assert same(stored_world(graph.refresh()), oracle.world), text
    return wanted if isinstance(wanted, str) else "changed" if wanted else "nothing"


def test_random_mutations_equal_the_oracle(template: Path) -> None:
    outcomes = sum((run_program(template, seed, 7) for seed in range(3)), Counter())
    assert outcomes["changed"] > 5


@pytest.mark.full
def test_many_random_mutations_equal_the_oracle(template: Path) -> None:
    outcomes = sum((run_program(template, seed, 10) for seed in range(100, 125)), Counter())
    refusals = {"KeyConflict", "EntityNotFound", "StatementConflict", "ConstraintViolation", "UniqueViolation"}
    assert {"changed", "nothing", *refusals} <= outcomes.keys()


# Defects ------------------------------------------------------------------------------------------


def _upserts_clear(patch: Patch) -> None:
    real = row_writes._change_row

    def change_all(target: Any, row: AssignedRow) -> bool:
        others = {name: value for name, value in defaults_of(row.entity_type).items() if name not in row.key_columns}
        return real(target, replace(row, values=others | dict(row.values)))

    patch.setattr(row_writes, "_change_row", change_all)


def _inserts_replace(patch: Patch) -> None:
    patch.setattr(statements, "insert_row", _upsert_or_insert)


def _upsert_or_insert(target: Any, row: AssignedRow, generate: IdGenerator) -> str:
    if row.row_id is None:
        return row_writes.insert_row(target, row, generate)
    return row_writes.upsert_row(target, row)


def _patches_insert(patch: Patch) -> None:
    patch.setattr(statements, "patch_row", row_writes.upsert_row)


def _deleted_rows_unwatched(patch: Patch) -> None:
    patch.setattr(TouchedRows, "record", lambda *_: None)


def _cascades_unwatched(patch: Patch) -> None:
    real = TouchedRows.record

    def record(self: TouchedRows, number: int, affected: Any) -> None:
        if not (affected.is_deleted and affected.table_key.is_edge):
            real(self, number, affected)

    patch.setattr(TouchedRows, "record", record)


def _endpoints_unwatched(patch: Patch) -> None:
    patch.setattr(AssignedRow, "endpoints", property(lambda _: {}))


def _old_sources_forgotten(patch: Patch) -> None:
    def forget(changes: Any) -> Any:
        return replace(build_table_delta(changes), replaced_edges=None)

    patch.setattr(overlay, "build_table_delta", forget)


def _first_row_computed(patch: Patch) -> None:
    def first_value(source: Any, value: Any) -> Any:
        return evaluate_value(source, value).take([0] * source.count)

    patch.setattr(statements, "evaluate_value", first_value)


DEFECTS: dict[str, Callable[[Patch], None]] = {
    "an upsert clears what it omits": _upserts_clear,
    "an insert changes an existing row": _inserts_replace,
    "a patch inserts a missing row": _patches_insert,
    "a row is deleted and written": _deleted_rows_unwatched,
    "an edge is written and deleted with its node": _cascades_unwatched,
    "an edge is inserted at a deleted node": _endpoints_unwatched,
    "a moved edge is not counted at its old source": _old_sources_forgotten,
    "all rows take the value computed for the first": _first_row_computed,
}


@pytest.mark.full
@pytest.mark.parametrize("defect", DEFECTS)
def test_planted_defect_is_found(defect: str, template: Path, monkeypatch: Patch) -> None:
    DEFECTS[defect](monkeypatch)
    assert any(_differs(template, seed) for seed in range(100, 180))


def _differs(template: Path, seed: int) -> bool:
    try:
        run_program(template, seed, 8)
    except (AssertionError, KeyError):
        return True
    return False
