"""Drawings of results and subgraphs: escaped, deterministic, bounded, and without overlapping labels."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from omnigraph import Result, Subgraph
from omnigraph.api.graph_drawing.node_positions import place_nodes
from omnigraph.api.results.subgraph import SubgraphEdge


def _people(names: Sequence[str], links: Sequence[tuple[str, str]]) -> Subgraph:
    edges = tuple(
        SubgraphEdge(str(index), "Knows", ("Person", source), ("Person", target), {})
        for index, (source, target) in enumerate(links)
    )
    return Subgraph({("Person", name): {} for name in names}, edges)


def _svg(card: str) -> ElementTree.Element:
    """Return the drawing in a card; parsing fails unless it is well-formed XML."""
    found = re.search(r"<svg.*</svg>", card, re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found.group())


def test_text_is_escaped_and_control_characters_are_removed() -> None:
    hostile = '</text><script>alert("x")</script>\x00\ud800'
    edge = SubgraphEdge("<e>", "<Knows>", ("<P>", hostile), ("<P>", hostile), {"note": "</title><b>"})
    card = Subgraph({("<P>", hostile): {"name": "<i>\x01</i>"}}, (edge,))._repr_html_()
    assert "<script" not in card
    assert "<b>" not in card
    assert "<i>" not in card
    assert "&lt;i&gt; &lt;/i&gt;" in card
    _svg(card).get("width")
    card.encode()


def test_equal_graphs_have_equal_drawings() -> None:
    names = [f"n{index}" for index in range(40)]
    links = [(names[index], names[index // 3]) for index in range(1, 40)]
    assert _people(names, links)._repr_html_() == _people(names, links)._repr_html_()


@pytest.mark.parametrize(("count", "note"), [(60, ""), (61, "1 node and 1 edge are not drawn."), (62, "2 nodes and 2")])
def test_large_graphs_are_drawn_in_part(count: int, note: str) -> None:
    names = [f"n{index}" for index in range(count)]
    card = _people(names, [("n0", name) for name in names[1:]])._repr_html_()
    assert card.count('r="11"') == 60
    assert note in card
    assert ("not drawn" in card) == bool(note)


def test_parallel_edges_and_loops_have_different_lines() -> None:
    links = [("a", "b"), ("a", "b"), ("b", "a"), ("a", "a"), ("a", "a")]
    card = _people(["a", "b"], links)._repr_html_()
    lines = re.findall(r'</title><path d="([^"]+)"', card)
    assert len(set(lines)) == len(links)


@pytest.mark.parametrize("shape", ["star", "chain", "tree", "isolated"])
def test_labels_do_not_overlap(shape: str) -> None:
    parents = {"star": [0] * 39, "chain": list(range(39)), "tree": [index // 2 for index in range(39)], "isolated": []}
    edges = [(parent, index) for index, parent in enumerate(parents[shape], start=1)]
    centers = place_nodes([(120.0, 48.0)] * 40, edges)
    for index, (x, y) in enumerate(centers):
        for other_x, other_y in centers[:index]:
            assert abs(x - other_x) > 115 or abs(y - other_y) > 45


def test_result_card_draws_nodes_and_edges() -> None:
    node = {"id": "ada", "type": "Person", "name": "Ada", "embedding": [0.5] * 3}
    city = {"id": "ada", "type": "City", "name": "Adatown"}
    edge = {"id": "e", "type": "Knows", "from": "ada", "to": "bob"}
    card = Result(pa.table({"p": [node], "c": [city], "e": [edge]}))._repr_html_()
    labels = [text.text for text in _svg(card).iter("{http://www.w3.org/2000/svg}text")]
    assert {"Ada", "Adatown", "bob", "not in the result (2)", "Knows (1)"} <= set(labels)
    assert "<table>" in card


def test_result_card_reads_a_bounded_number_of_rows() -> None:
    nodes = [{"id": str(index), "type": "Person"} for index in range(1000)]
    card = Result(pa.table({"p": [*nodes, None]}))._repr_html_()
    assert "Drawn from the first 300 of 1001 rows. 240 nodes are not drawn." in card


def test_plain_columns_have_no_drawing() -> None:
    for column in ([1, 2], [{"id": 1}], [None]):
        assert "<svg" not in Result(pa.table({"x": column}))._repr_html_()
    assert "<svg" not in Subgraph()._repr_html_()
