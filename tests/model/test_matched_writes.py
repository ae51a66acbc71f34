"""Random updates and deletes fed by a match: the graph and the receipt equal those of the oracle.

Programs are short sequences of such statements on one small graph. `DEFECTS` are planted one at a time; the
programs find each.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.writes import matched_writes, statements
from omnigraph.engine.writes.overlay import Overlay
from omnigraph.engine.writes.overlay_snapshot import overlay_snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.values import clock_and_ids
from tests.model.oracle import NOW, Oracle
from tests.model.product_view import stored_world
from tests.model.random_writes import SCHEMA, Scribe
from tests.model.test_random_graph_histories import START, same
from tests.model.write_oracle import Refused


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("matched") / "template"
    omnigraph.init(root, SCHEMA, durability="os").load(START.encode(), mode="append")
    return root


def run_program(template: Path, seed: int, length: int) -> Counter[str]:
    """Run random statements on a copy of the graph; return what they led to."""
    root = template.parent / f"program-{seed}"
    shutil.copytree(template, root)
    outcomes: Counter[str] = Counter()
    try:
        graph, oracle, dice = omnigraph.open(root, durability="os"), Oracle.of(SCHEMA, START), Random(seed)
        for number in range(length):
            scribe = Scribe(dice, oracle.world)
            one = scribe.matched_delete if dice.random() < 0.25 else scribe.matched_update
            body = "  ".join(one() for _ in range(dice.choice([1, 1, 2])))
            head = ", ".join(f"${name}: {kind}" for name, (kind, _) in scribe.used.items())
            text, given = f"query q({head}) {{ {body} }}", {n: v for n, (_, v) in scribe.used.items()}
            outcomes[_compare(graph, oracle, text, given, number)] += 1
            graph = graph.refresh()
    finally:
        shutil.rmtree(root)
    return outcomes


def _compare(graph: Any, oracle: Oracle, text: str, given: dict[str, Any], number: int) -> str:
    """Run one mutation on both sides; a refusal must be the same on both."""
    try:
        wanted: Any = oracle.mutate(text, given)
    except Refused as refused:
        wanted = refused.error
    with clock_and_ids.deterministic_ids(datetime.fromtimestamp(NOW / 1000, UTC), seed=number):
        try:
            receipt = graph.mutate(text, params=given)
            done: Any = {name: n for name, n in {**receipt.nodes, **receipt.edges}.items() if n}
        except OmnigraphError as error:
            done = type(error).__name__
    assert done == wanted, text
    assert same(stored_world(graph.refresh()), oracle.world), text
    return wanted if isinstance(wanted, str) else "changed" if wanted else "nothing"


def test_random_matched_writes_equal_the_oracle(template: Path) -> None:
    outcomes = sum((run_program(template, seed, 6) for seed in range(6)), Counter())
    assert outcomes["changed"] > 5


@pytest.mark.full
def test_many_random_matched_writes_equal_the_oracle(template: Path) -> None:
    outcomes = sum((run_program(template, seed, 8) for seed in range(100, 130)), Counter())
    assert {"changed", "nothing", "AmbiguousAssignment", "ConstraintViolation"} <= outcomes.keys()


# Defects ------------------------------------------------------------------------------------------


def _ambiguity_unseen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(matched_writes, "_reject_ambiguous", lambda statement, matches: None)


def _earlier_statements_unseen(patch: pytest.MonkeyPatch) -> None:
    def base_snapshot(overlay: Any) -> Any:
        return overlay_snapshot(type(overlay)(overlay.txn, overlay.ir))

    patch.setattr(matched_writes, "overlay_snapshot", base_snapshot)


def _edges_stay(patch: pytest.MonkeyPatch) -> None:
    def delete_none(overlay: Any, edge_type: Any, node_type: str, deleted_ids: Any) -> Any:
        return deleted_ids.slice(0, 0)

    patch.setattr(Overlay, "delete_edges_of", delete_none)


def _missing_targets_kept(patch: pytest.MonkeyPatch) -> None:
    real = matched_writes.matched_ids
    patch.setattr(statements, "matched_ids", lambda *given: real(*given).slice(0, 1))


def _other_edges_kept(patch: pytest.MonkeyPatch) -> None:
    real = matched_writes.matched_values

    def first_edge(overlay: Any, statement: Any, *given: Any) -> Any:
        ids, columns = real(overlay, statement, *given)
        kept = 1 if statement.kind == "edge" else len(ids)
        return ids.slice(0, kept), {name: values.slice(0, kept) for name, values in columns.items()}

    patch.setattr(statements, "matched_values", first_edge)


DEFECTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "an ambiguous assignment is accepted": _ambiguity_unseen,
    "a match does not see earlier statements": _earlier_statements_unseen,
    "edges of deleted nodes stay": _edges_stay,
    "only the first match is deleted": _missing_targets_kept,
    "only the first matched edge is updated": _other_edges_kept,
}


@pytest.mark.full
@pytest.mark.parametrize("defect", DEFECTS)
def test_planted_defect_is_found(defect: str, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DEFECTS[defect](monkeypatch)
    assert any(_differs(template, seed) for seed in range(100, 150))


def _differs(template: Path, seed: int) -> bool:
    try:
        run_program(template, seed, 8)
    except AssertionError:
        return True
    return False
