"""Every case under tests/cases/{query/rows,mutation,load} through the public API.

Whatever a case expects, two things always hold: a write that was refused, or that had nothing to
do, leaves head and rows as they were; a write that was done leaves the rows that the oracle has.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import OmnigraphError
from tests.model.engine_cases import Case, Part, all_cases
from tests.model.oracle import Oracle
from tests.model.product_view import Templates, answer_of, comparable, stored_world
from tests.model.test_oracle_cases import check_rows
from tests.model.write_oracle import Refused

CASES = all_cases()
MODES = ("csr", "indexed")  # neighbors by lists, and by probes


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return Templates(tmp_path_factory.mktemp("cases"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_engine_case(templates: Templates, case: Case) -> None:
    make = templates.copy if case.writes else templates.shared
    graph = omnigraph.open(make(case.schema, case.data), durability="os")
    _Run(graph, Oracle.of(case.schema, case.data)).steps(case)


class _Run:
    """The steps of one case, with the oracle beside them."""

    def __init__(self, graph: Graph, oracle: Oracle) -> None:
        self.graph = graph
        self.oracle = oracle
        self.start = graph.head.id

    def steps(self, case: Case) -> None:
        for action, wanted in case.steps:
            before = self._state(case)
            if wanted.word != "error":
                self._step(action, wanted)
                continue
            with pytest.raises(OmnigraphError) as caught:
                self._step(action, wanted)
            check_error(caught.value, wanted)
            assert self._state(case) == before, "a refused step changed something"

    def _state(self, case: Case) -> Any:
        """Head and rows, where a step might change them."""
        if not case.writes:
            return None
        return self.graph.refresh().head.id, comparable(stored_world(self.graph), set())

    def _step(self, action: Part, wanted: Part) -> None:
        if action.word == "query":
            for mode in MODES:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
                    check_rows(*answer_of(self.graph, action.source, action.given), wanted)
        elif action.word == "export":
            check_lines(self.graph, action.rest.split(), wanted)
        else:
            self._write(action, wanted)

    def _write(self, action: Part, wanted: Part) -> None:
        head = self.graph.refresh().head.id
        if action.word == "mutate":
            commit = {"head": head, "start": self.start}.get(action.condition or "")
            done: Any = self.graph.mutate(action.source, params=action.given, if_commit=commit)
        else:
            done = self.graph.load(action.text.encode(), mode=action.rest)  # type: ignore[arg-type]
        assert wanted.word in ("done", "nothing"), done
        counted = {name: n for name, n in {**done.nodes, **done.edges}.items() if n}
        if wanted.word == "nothing":
            assert (done.commit, counted) == (None, {})
            assert self.graph.refresh().head.id == head
            return
        assert counted == wanted.done
        assert done.commit is not None
        assert self.graph.refresh().head.id == done.commit.id
        self._agree(action)

    def _agree(self, action: Part) -> None:
        """The rows on the disk are those that the oracle has after the same write."""
        if "truncate" in action.text:
            self.oracle.world = stored_world(self.graph)
            return
        try:
            if action.word == "mutate":
                self.oracle.mutate(action.source, action.given)
            else:
                self.oracle.load(action.text, action.rest)
        except Refused as refused:
            pytest.fail(f"the oracle refuses: {refused}")
        world = self.oracle.world
        known = {own for rows in (*world.nodes.values(), *world.edges.values()) for own in rows}
        stored = stored_world(self.graph)
        if "now()" in action.text:
            return
        assert comparable(stored, known) == comparable(world, known)


def check_error(error: OmnigraphError, wanted: Part) -> None:
    """The class of an error, its facts, and phrases of its message."""
    assert type(error).__name__ == wanted.rest, (type(error).__name__, str(error))
    for line in wanted.text.splitlines():
        if line.startswith("~ "):
            assert line[2:] in str(error)
        elif line.strip():
            name, _, value = line.partition(": ")
            assert str(error.details.get(name)) == value, (error.details, str(error))


def check_lines(graph: Graph, types: list[str], wanted: Part) -> None:
    """The records of an export, in order."""
    found = export_text(graph, types)
    assert [json.loads(line) for line in found.splitlines()] == wanted.values


def export_text(graph: Graph, types: list[str]) -> str:
    """An export as one text."""
    place = Path(graph.uri.removeprefix("file://")).parent / "export.ndjson"
    graph.export(place, types=types or None)
    return place.read_text("utf-8")
