"""Loads that are too large for one request: sent in parts, and visible on the target at once or not at all."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import CsvOptions, Graph, LoadReport
from omnigraph.errors import (
    InputError,
    KeyConflict,
    OmnigraphError,
    PreconditionFailed,
    ResourceLimitExceeded,
    UniqueViolation,
)
from tests.rig.http_proxy import Canned, HttpProxy, proxying
from tests.rig.http_server import HttpServer, serving
from tests.server.conftest import SCHEMA, make_graph

LIMIT = 2000
KEYLESS = SCHEMA + "node Note { text: String }\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server that accepts only small loads."""
    folder = tmp_path_factory.mktemp("server")
    with serving(
        folder, make_graph(folder / "graph", KEYLESS), "--unauthenticated", "--max-load-bytes", str(LIMIT)
    ) as up:
        yield up


@pytest.fixture
def proxy(server: HttpServer) -> Iterator[HttpProxy]:
    """A proxy in front of the server."""
    with proxying(server.port) as running:
        yield running


def edges_before_nodes(count: int = 30) -> list[dict[str, Any]]:
    """Records of more than one request, of which every edge comes before its endpoints."""
    edges = [
        {"edge": "Knows", "from": f"p{n}", "to": f"p{(n + 1) % count}", "data": {"since": n}} for n in range(count)
    ]
    return edges + [{"type": "Person", "data": {"name": f"p{n}", "bio": "x" * 50}} for n in range(count)]


def branches_of_loads(graph: Graph) -> list[str]:
    return [name for name in graph.branches if name.startswith("load-")]


def test_edges_may_come_before_their_nodes(graph: Graph) -> None:
    before, sent = graph.head, []
    receipt = graph.load(
        edges_before_nodes(), mode="append", message="thirty", progress=lambda done, total: sent.append((done, total))
    )
    assert not isinstance(receipt, LoadReport)
    assert (dict(receipt.nodes), dict(receipt.edges)) == ({"Person": 30}, {"Knows": 30})
    assert receipt.commit_id == graph.head.id
    assert {commit.message for commit in graph.log() if commit.published > before.published} == {"thirty"}
    assert (graph.nodes("Person").count(), graph.edges("Knows").count()) == (32, 31)
    assert sent == sorted(sent)
    assert sent[-1][0] == sent[-1][1] > LIMIT
    assert branches_of_loads(graph) == []


def test_deletes_remove_edges_before_nodes(graph: Graph) -> None:
    graph.load(edges_before_nodes(), mode="append")
    edges = [{"edge": "Knows", "from": f"p{n}", "to": f"p{(n + 1) % 30}"} for n in range(30)]
    nodes = [{"type": "Person", "data": {"name": f"p{n}"}} for n in [*range(30), 99]]
    receipt = graph.load(nodes + edges, mode="delete")
    assert not isinstance(receipt, LoadReport)
    assert (dict(receipt.nodes), dict(receipt.edges), dict(receipt.missing)) == (
        {"Person": 30},
        {"Knows": 30},
        {"Person": 1},
    )
    assert graph.nodes("Person").count() == 2


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_repeated_load_with_the_same_key_has_no_effect(graph: Graph, concurrent: bool) -> None:
    notes = [{"type": "Note", "data": {"text": f"{n} " + "x" * 60}} for n in range(60)]
    if concurrent:  # a commit on the target makes the merge more than a fast-forward

        def insert_once(done: int, total: int) -> None:
            if graph.node("Person", "cyd") is None:
                graph.insert("Person", {"name": "cyd"})
    else:
        insert_once = None  # type: ignore[assignment]
    first = graph.load(notes, mode="append", idempotency_key="notes", progress=insert_once)
    again = graph.load(notes, mode="append", idempotency_key="notes")
    assert not isinstance(first, LoadReport)
    assert not isinstance(again, LoadReport)
    assert (again.commit_id, again.replayed, dict(again.nodes)) == (first.commit_id, True, {"Note": 60})
    assert (first.replayed, graph.nodes("Note").count()) == (False, 60)
    with pytest.raises(InputError, match="already used for a different request"):
        graph.load(notes[1:], mode="append", idempotency_key="notes")
    graph.load(notes, mode="append", idempotency_key="other")
    assert graph.nodes("Note").count() == 120
    assert branches_of_loads(graph) == []


def test_a_load_that_was_interrupted_between_parts_is_continued(graph: Graph, proxy: HttpProxy) -> None:
    notes = [{"type": "Note", "data": {"text": f"{n} " + "x" * 60}} for n in range(60)]

    class Killed(BaseException):
        pass

    def kill(done: int, total: int) -> None:
        if done > total / 2:
            proxy.upstream_port = 1  # nothing listens there, so the branch cannot be deleted either
            raise Killed

    proxied = omnigraph.open(proxy.url, branch=graph.branch_name, retries=0)
    with pytest.raises(Killed):
        proxied.load(notes, mode="append", idempotency_key="notes", progress=kill)
    assert len(branches_of_loads(graph)) == 1
    receipt = graph.load(notes, mode="append", idempotency_key="notes")
    assert receipt
    assert (graph.nodes("Note").count(), branches_of_loads(graph)) == (60, [])


def test_a_new_target_appears_with_all_data(graph: Graph) -> None:
    name = f"{graph.branch_name}-new"
    receipt = graph.load(edges_before_nodes(), mode="append", branch=name, from_=graph.branch_name, idempotency_key="k")
    assert not isinstance(receipt, LoadReport)
    assert (receipt.branch, receipt.branch_created) == (name, True)
    assert graph.checkout(name).nodes("Person").count() == 32
    assert graph.branches[name].parent == graph.branch_name
    again = graph.load(edges_before_nodes(), mode="append", branch=name, from_=graph.branch_name, idempotency_key="k")
    assert not isinstance(again, LoadReport)
    assert (again.replayed, again.commit_id) == (True, receipt.commit_id)
    assert branches_of_loads(graph) == []


def test_a_failed_load_leaves_nothing_behind(graph: Graph) -> None:
    head, name = graph.head.id, f"{graph.branch_name}-never"
    records = edges_before_nodes()
    records.append({"type": "Person", "data": {"name": "ada"}})
    several_options: tuple[Any, ...] = ({}, {"branch": name, "from_": graph.branch_name}, {"idempotency_key": "k"})
    for options in several_options:
        with pytest.raises(KeyConflict) as raised:
            graph.load(records, mode="append", **options)
        assert raised.value.effect == "none"
        assert graph.head.id == head
        assert branches_of_loads(graph) == []
    assert name not in graph.branches
    with pytest.raises(PreconditionFailed):
        graph.load(edges_before_nodes(), mode="append", if_commit="01J00000000000000000000000")
    assert graph.head.id == head
    assert branches_of_loads(graph) == []


def test_line_numbers_are_those_of_the_whole_input(graph: Graph) -> None:
    records = edges_before_nodes()
    records.append({"type": "Person", "data": {"name": "bad", "age": "old"}})
    with pytest.raises(InputError, match="line 61") as raised:
        graph.load(records, mode="append")
    assert raised.value.details["line"] == 61
    report = graph.load(records, mode="append", on_error="report")
    assert isinstance(report, LoadReport)
    assert [problem.line for problem in report.problems] == [61]
    assert branches_of_loads(graph) == []


def test_what_cannot_be_split_names_the_limit(graph: Graph) -> None:
    several_options: tuple[Any, ...] = ({"mode": "overwrite"}, {"mode": "append", "dry_run": True})
    for options in several_options:
        with pytest.raises(InputError, match=r"2,000 bytes") as raised:
            graph.load(edges_before_nodes(), **options)
        assert "--max-load-bytes" in str(raised.value.hint)
    with pytest.raises(ResourceLimitExceeded):
        graph.load([{"type": "Person", "data": {"name": "long", "bio": "x" * LIMIT}}], mode="append")
    assert branches_of_loads(graph) == []


def test_a_lost_answer_to_the_merge_is_found_by_the_key(graph: Graph, proxy: HttpProxy) -> None:
    proxied = omnigraph.open(proxy.url, branch=graph.branch_name, retries=0)

    notes = [{"type": "Note", "data": {"text": f"{n} " + "x" * 60}} for n in range(40)]
    sent = sum(len(json.dumps(note)) + 1 for note in notes)

    def lose_the_merge(done: int, total: int) -> None:
        if done == sent:
            proxy.answers.append(Canned(502, b"", {}))

    with pytest.raises(OmnigraphError, match="502"):
        proxied.load(notes, mode="append", idempotency_key="k", progress=lose_the_merge)
    assert proxied.load(notes, mode="append", idempotency_key="k")
    assert graph.nodes("Note").count() == 40


def test_a_client_can_read_the_limits(server: HttpServer) -> None:
    limits = server.get("/graphs/default/limits").json()
    assert (limits["load_bytes"], limits["result_rows"]) == (LIMIT, 0)


@pytest.fixture
def files(tmp_path: Path) -> list[Any]:
    """Files of all formats, of which each is larger than a request."""
    people = "".join(f'p{n};"line {n}\nand ""{"y" * 60}"""\n\n' for n in range(30))
    (tmp_path / "people.csv").write_text("who;bio\n" + people)
    (tmp_path / "knows.ndjson").write_text(
        "".join(f'{{"from": "q{n}", "to": "p{n % 30}", "since": {n}}}\n' for n in range(60))
    )
    more = pa.table({"name": [f"q{n}" for n in range(60)], "bio": [f"{n} {'z' * 60}" for n in range(60)]})
    pq.write_table(more, tmp_path / "more.parquet", compression="none")
    (tmp_path / "rest.ndjson").write_text('{"type": "Note", "data": {"text": "n"}}\n')
    return [
        {"Knows": tmp_path / "knows.ndjson"},
        {"Person": [tmp_path / "people.csv", tmp_path / "more.parquet"]},
        tmp_path / "rest.ndjson",
    ]


def test_large_files_of_all_formats_become_visible_at_once(graph: Graph, files: list[Any]) -> None:
    options: dict[str, Any] = {"mode": "append", "mapping": {"Person": {"who": "name"}}, "idempotency_key": "files"}
    commits = len(graph.log())
    receipt = graph.load(files, **options)
    assert not isinstance(receipt, LoadReport)
    assert (receipt.nodes, receipt.edges) == ({"Person": 90, "Note": 1}, {"Knows": 60})
    assert graph["Person", "p29"].bio == 'line 29\nand "' + "y" * 60 + '"'
    assert graph.head.id == receipt.commit_id
    assert len(graph.log()) > commits
    again = graph.load(files, **options)
    assert not isinstance(again, LoadReport)
    assert (again.replayed, again.nodes, again.edges) == (True, receipt.nodes, receipt.edges)


def test_a_bad_line_of_a_large_csv_file_is_named(graph: Graph, files: list[Any]) -> None:
    people = Path(files[1]["Person"][0])
    people.write_text(people.read_text() + "p30;x\np30;y\n")
    options: dict[str, Any] = {"mode": "append", "mapping": {"Person": {"who": "name"}}}
    lines = people.read_text().count("\n")
    report = graph.load(files, on_error="report", csv=CsvOptions(delimiter=";"), **options)
    assert isinstance(report, LoadReport)
    assert [(problem.file, problem.id) for problem in report] == [(str(people), "p30")]
    assert report.problems[0].line == lines
    with pytest.raises(
        UniqueViolation, match=rf"people\.csv: line {lines}: .* line {lines - 1} and again on line {lines}"
    ):
        graph.load(files, **options)
    assert graph.nodes("Person").count() == 2
    assert branches_of_loads(graph) == []


def test_small_loads_are_one_request_that_is_repeated(graph: Graph, proxy: HttpProxy) -> None:
    proxied = omnigraph.open(proxy.url, branch=graph.branch_name)

    def read_note() -> Iterator[dict[str, Any]]:
        proxy.answers.append(Canned(502, b"", {"Retry-After": "0"}))  # the answer to the request with the note
        yield {"type": "Note", "data": {"text": "a"}}

    receipt = proxied.load(read_note(), mode="append")
    assert not isinstance(receipt, LoadReport)
    assert (receipt.commit_id, receipt.replayed) == (graph.head.id, False)
    assert proxy.paths("POST") == ["ndjson"] * 2
