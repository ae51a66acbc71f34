"""Diagrams of schemas: what they contain, and that nothing overlaps."""

import random
import re
from xml.etree import ElementTree

import pytest

from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.declared_order import read_declared_order
from omnigraph.lang.schema.diagram import draw_mermaid, draw_svg
from omnigraph.lang.schema.diagram.layout import Drawing, lay_out
from omnigraph.lang.schema.diagram.lines import DiagramLine

Frame = tuple[float, float, float, float]


def drawing_of(text: str) -> Drawing:
    return lay_out(compile_schema(text), read_declared_order(text))


def svg_of(text: str) -> str:
    return draw_svg(compile_schema(text), read_declared_order(text))


def mermaid_of(text: str) -> str:
    return draw_mermaid(compile_schema(text), read_declared_order(text))


def random_schema(seed: int) -> str:
    """A schema of 1 to 60 types with edges, loops, parallel edges and cycles."""
    dice = random.Random(seed)
    count = (1, 2, 5, 12, 30, 60)[seed % 6]
    nodes = [
        f"node T{number} {{ {' '.join(f'p{index}: String' for index in range(dice.randrange(20)))} }}"
        for number in range(count)
    ]
    edges = [
        f"edge E{number}: T{dice.randrange(count)} -> T{dice.randrange(count)}"
        + (" { since: Date?  note: String }" if dice.random() < 0.3 else "")
        for number in range(dice.randrange(2 * count))
    ]
    return "\n".join(nodes + edges)


def frames(drawing: Drawing) -> list[tuple[str, Frame]]:
    boxes = [
        (placed.box.title, (placed.left, placed.top, placed.left + placed.box.width, placed.top + placed.box.height))
        for placed in drawing.boxes
    ]
    labels = [
        (
            placed.label.title,
            (placed.left, placed.top, placed.left + placed.label.width, placed.top + placed.label.height),
        )
        for placed in drawing.labels
    ]
    return boxes + labels


def overlap(one: Frame, other: Frame) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def cuts(line: DiagramLine, frame: Frame) -> bool:
    """Whether a straight part of a line runs through the inside of a frame; curves lie between the columns."""
    left, top, right, bottom = frame
    for (start_x, y), (end_x, end_y) in zip(line.points[::2], line.points[1::2], strict=True):
        assert y == end_y
        low, high = min(start_x, end_x), max(start_x, end_x)
        if top + 0.1 < y < bottom - 0.1 and low < right - 0.1 and high > left + 0.1:
            return True
    return False


@pytest.mark.parametrize("seed", range(12))
def test_nothing_overlaps(seed: int) -> None:
    text = random_schema(seed)
    drawing, catalog = drawing_of(text), compile_schema(text)
    placed = frames(drawing)
    pairs = [(one, other) for index, one in enumerate(placed) for other in placed[index + 1 :]]
    assert [(one[0], other[0]) for one, other in pairs if overlap(one[1], other[1])] == []
    assert [name for name, frame in placed for line in drawing.lines if cuts(line, frame)] == []
    assert all(left >= 0 and top >= 0 and right <= drawing.width and bottom <= drawing.height
               for _, (left, top, right, bottom) in placed)  # fmt: skip
    assert {box.box.title for box in drawing.boxes} == {node.name for node in catalog.nodes}
    loops = {loop.edge.name for box in drawing.boxes for loop in box.box.loops}
    assert loops | {label.label.edge.name for label in drawing.labels} == {edge.name for edge in catalog.edges}


@pytest.mark.parametrize("seed", [3, 5])
def test_a_drawing_is_deterministic_and_well_formed(seed: int) -> None:
    text = random_schema(seed)
    assert svg_of(text) == svg_of(text)
    assert len(svg_of(text)) < 200_000
    ElementTree.fromstring(svg_of(text))


def test_each_arrow_ends_at_its_target() -> None:
    text = "node A {} node B {} node C {} edge AB: A -> B edge BC: B -> C edge CA: C -> A"
    drawing = drawing_of(text)
    boxes = {placed.box.title: placed for placed in drawing.boxes}
    tips = [line.points[-1] if line.arrow == "end" else line.points[0] for line in drawing.lines if line.arrow]
    targets = []
    for x, y in tips:
        at = [n for n, p in boxes.items() if abs(x - p.left) < 0.1 or abs(x - p.left - p.box.width) < 0.1]
        targets += [n for n in at if boxes[n].top <= y <= boxes[n].top + boxes[n].box.box_height]
    assert sorted(targets) == ["A", "B", "C"]


def test_all_text_is_escaped() -> None:
    text = 'node P @description("<script>&") { a: String @description("<b>") } edge E: P -> P @description("]]><i>")'
    svg = svg_of(text)
    assert not re.search("<script|<b>|<i>", svg)
    assert "&lt;script&gt;&amp;" in svg
    ElementTree.fromstring(svg)


def test_long_lists_and_names_are_shortened() -> None:
    properties = " ".join(f"property_number_{index}: String" for index in range(40))
    svg = svg_of(f"node {'Long' * 20} {{ {properties} }}")
    assert "… 27 more" in svg
    assert "LongLongLongLongLongLongLongL…" in svg


def test_an_empty_schema_has_an_empty_drawing() -> None:
    ElementTree.fromstring(draw_svg(Catalog(), read_declared_order("")))
    assert draw_mermaid(Catalog(), read_declared_order("")) == "classDiagram\n    direction LR"


def test_mermaid_text() -> None:
    text = """
    interface Named { label: String @key }
    node Song implements Named { length: I32?  kind: enum(live, studio)?  vec: Vector(8)  tags: [String]? }
    node Empty {}
    edge On: Song -> Empty @card(1..2) { at: Date?  kind: enum(a, b) }
    edge After: Song -> Song @card(1..)
    """
    assert mermaid_of(text).splitlines() == [
        "classDiagram",
        "    direction LR",
        "    class Named {",
        "        <<interface>>",
        "        label: String @key",
        "    }",
        "    class Song {",
        "        label: String @key",
        "        length: I32?",
        "        kind: enum[live | studio]?",
        "        vec: Vector[8]",
        "        tags: [String]?",
        "    }",
        "    Named <|.. Song",
        "    class Empty",
        '    Song --> "1..2" Empty : On [at Date?, kind enum[a | b]]',
        '    Song --> "1..*" Song : After',
    ]
