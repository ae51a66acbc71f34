"""Errors about ids and values with line breaks: each message and each hint stays on one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph import Graph, errors, testing

SCHEMA = "node P { k: String @key  n: I32?  u: String? @unique }  edge E: P -> P"


def load(text: str, type_name: str = "P") -> Callable[[Graph, Path], object]:
    def run(graph: Graph, folder: Path) -> object:
        path = folder / "rows.csv"
        path.write_text(text)
        return graph.load({type_name: path}, mode="append")

    return run


FAILURES: list[Callable[[Graph, Path], object]] = [
    load('k,n\n"b\nc",x\n'),
    load('k,n\n"b\nc",1\n"b\nc",2\n'),
    load('k,u\nb,"x\ny"\nc,"x\ny"\n'),
    load('from,to\n"a\nb","q\nz"\n', "E"),
    lambda graph, _: graph.insert("P", {"k": "a\nb"}),
    lambda graph, _: graph.connect_nodes("E", [("a\nb", "z\ry")]),
    lambda graph, _: graph.patch("P", {"k": "z\u2028y", "n": 1}),
]


@pytest.mark.parametrize("number", range(len(FAILURES)))
def test_a_line_break_in_data_never_breaks_a_message(tmp_path: Path, number: int) -> None:
    with testing.graph(SCHEMA) as graph:
        graph.insert("P", {"k": "a\nb"})
        with pytest.raises(errors.OmnigraphError) as caught:
            FAILURES[number](graph, tmp_path)
    error = caught.value
    assert len(error.message.splitlines()) == 1
    assert len(str(error.hint).splitlines()) == 1
    assert any(escape in error.message for escape in (r"\n", r"\r", r"\u2028"))


def test_details_keep_the_id_itself() -> None:
    with testing.graph(SCHEMA) as graph:
        graph.insert("P", {"k": "a\nb"})
        with pytest.raises(errors.KeyConflict) as caught:
            graph.insert("P", {"k": "a\nb"})
        assert caught.value.details["entity_id"] == "a\nb"
