"""Hostile texts as keys, ids, values, list items and parameters.

All of them must come back as they went in, through every door; sizes beyond a limit and texts that
are none are refused by name, and nothing is written then.

Planted once and found: a quote that is doubled on its way to the storage.
"""

import gzip
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import InputError, OmnigraphError, ParameterError, PropertyValueError, ResourceLimitExceeded
from tests.rig.depth import repeats

SCHEMA = """
node N { k: String @key  s: String?  tags: [String]? }
edge E: N -> N { note: String? }
"""
HOSTILE = [
    "'",
    '"',
    "''",
    "`",
    "\\",
    "\\'",
    "\\u0041",
    "%",
    "_",
    "%_%",
    "*",
    "?",
    "$",
    "$x",
    "{}",
    "[1]",
    "null",
    "true",
    "NaN",
    "0",
    "-0",
    "1e3",
    " ",
    "\t",
    "\n",
    "\r\n",
    "a\nb",
    "\x00",
    "a\x00b",
    "\x1f",
    "\x7f",
    "\u0085",
    "\u2028",
    "\ufeff",
    "\u200f\u202eabc",
    "שלום",
    "مرحبا",
    "é",
    "e\u0301",
    "ß",
    "ı",
    "😀",
    "👩‍👩‍👧",
    "\U0010ffff",
    "' OR '1'='1",
    "'; DROP TABLE n; --",
    "x' UNION SELECT * FROM n --",
    "id = 'x'",
    "/* x */",
    "// x",
    "--",
    "../../etc/passwd",
    "node:N",
    "_rowid",
    "#1",
    "x" * 65536,
]
# Surrogates are no text; an empty key is refused by rule.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def check(graph: Graph, texts: list[str], other: Path) -> None:
    """Every door, with every text."""
    half = len(texts) // 2
    for text in texts[:half]:
        graph.mutate("query q($k: String) { insert N { k: $k, s: $k } }", params={"k": text})
    lines = [{"type": "N", "data": {"k": one, "s": one, "tags": [one]}} for one in texts[half:]]
    lines += [{"edge": "E", "from": one, "to": texts[0], "data": {"note": one}} for one in texts]
    graph.load("".join(f"{json.dumps(one)}\n" for one in lines).encode(), mode="append")
    assert sorted(_column(graph, "match { $n: N } return { $n.k }")) == sorted(texts)
    for text in texts if len(texts) < 10 else [*texts[:3], *texts[half : half + 3], texts[-1]]:
        _found(graph, text)
    listed = "query q($l: [String]) { match { $n: N  $n.s in $l } return { $n.id } }"
    assert sorted(_column(graph, listed, l=texts)) == sorted(texts)
    _exported(graph, other)
    _changed(graph, texts)


def _found(graph: Graph, text: str) -> None:
    """One text as a parameter of every test that has texts."""
    for test in ("$n.k = $t", "$n.s = $t", "$n.id = $t", "$n.s in [$x]".replace("[$x]", "$l")):
        query = f"query q($t: String, $l: [String]) {{ match {{ $n: N  {test} }} return {{ $n.s }} }}"
        assert _column(graph, query, t=text, l=[text]) == [text]
    for word in ("contains", "starts_with"):
        query = f"query q($t: String) {{ match {{ $n: N  $n.k {word} $t }} return {{ $n.k }} }}"
        assert text in _column(graph, query, t=text)
    written = json.dumps(text, ensure_ascii=False)
    if "\\u" not in written and "\\b" not in written and "\\f" not in written:
        literal = f"match {{ $n: N {{ k: {written} }} }} return {{ $n.k }}"
        assert _column(graph, literal) == [text]
    walk = "query q($t: String) { match { $n: N { k: $t }  $n $w:e $m } return { $w.note } }"
    assert _column(graph, walk, t=text) == [text]
    assert _column(graph, "query q($t: String) { match { $n: N } return { $t } limit 1 }", t=text) == [text]


def _exported(graph: Graph, other: Path) -> None:
    """An export loads into an empty graph, and its export is the same to the byte."""
    first, second = other / "first.ndjson", other / "second.ndjson"
    graph.export(first)
    with omnigraph.init(other / "copy", SCHEMA, durability="os") as copy:
        copy.load(first, mode="overwrite")
        copy.export(second)
    assert first.read_bytes() == second.read_bytes()


def _changed(graph: Graph, texts: list[str]) -> None:
    """Updates and deletes hit the one row they mean."""
    last = texts[-1]
    update = "query q($t: String, $v: String) { update N set { s: $v } where k = $t }"
    for text in texts[:3]:
        assert graph.mutate(update, params={"t": text, "v": last}).nodes == {"N": 1}
    query = "query q($t: String) { match { $n: N { s: $t } } return { $n.k } }"
    assert sorted(_column(graph, query, t=last)) == sorted({*texts[:3], last})
    for text in texts[:3]:
        done = graph.mutate("query q($t: String) { delete N where k = $t }", params={"t": text})
        assert done.nodes == {"N": 1}
    assert sorted(_column(graph, "match { $n: N } return { $n.k }")) == sorted(texts[3:])


def _column(graph: Graph, text: str, **params: Any) -> list[Any]:
    return graph.query(text, params=params).to_arrow().column(0).to_pylist()  # type: ignore[no-any-return]


def test_hostile_texts_round_trip(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    check(graph, HOSTILE, tmp_path)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_any_text_round_trips(tmp_path: Path) -> None:
    numbers = count()

    @settings(max_examples=repeats(20), suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(TEXTS, min_size=4, max_size=8, unique=True))
    def run(texts: list[str]) -> None:
        place = tmp_path / str(next(numbers))
        place.mkdir()
        check(omnigraph.init(place / "g", SCHEMA, durability="os"), texts, place)

    run()


# Too large, too many, no text ---------------------------------------------------------------------


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    made.mutate('insert N { k: "one" }')
    return made


def _refused(graph: Graph, wanted: type[OmnigraphError], do: Any) -> OmnigraphError:
    """The refusal; nothing was written, and the handle still works."""
    before = graph.refresh().head.id
    with pytest.raises(wanted) as caught:
        do()
    assert caught.value.effect == "none"
    assert graph.refresh().head.id == before
    assert _column(graph, "match { $n: N } return { $n.k }") == ["one"]
    return caught.value


def test_a_line_beyond_the_limit_is_refused(graph: Graph) -> None:
    line = f'{{"type":"N","data":{{"k":"two","s":"{"x" * (33 << 20)}"}}}}\n'
    error = _refused(graph, ResourceLimitExceeded, lambda: graph.load(line.encode(), mode="append"))
    assert error.details["limit"] == 32 << 20


def test_bad_line_among_many_is_located(graph: Graph) -> None:
    lines = [f'{{"type":"N","data":{{"k":"k{n}"}}}}' for n in range(20_000)]
    lines[2] = '{"type":"N","data":{"k":7}}'
    text = "\n".join(lines).encode()
    error = _refused(graph, PropertyValueError, lambda: graph.load(text, mode="append"))
    assert error.details["line"] == 3


@pytest.mark.full
def test_bad_line_among_a_million_is_located(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / "many.ndjson.gz"
    with gzip.open(file, "wt") as out:
        for n in range(1_000_000):
            out.write('{"type":"N"\n' if n == 2 else f'{{"type":"N","data":{{"k":"k{n}"}}}}\n')
    error = _refused(graph, InputError, lambda: graph.load(file, mode="append"))
    assert error.details["line"] == 3


def test_many_entities_of_one_type_are_one_load(graph: Graph) -> None:
    lines = "".join(f'{{"type":"N","data":{{"k":"k{n}"}}}}\n' for n in range(8193))
    done: Any = graph.load(lines.encode(), mode="append")
    assert done.nodes == {"N": 8193}
    assert len(graph.log()) == 3


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", 1.5, b"x", [], {}])
def test_invalid_unicode_is_rejected_as_a_parameter(graph: Graph, value: Any) -> None:
    text = "query q($k: String) { insert N { k: $k } }"
    _refused(graph, ParameterError, lambda: graph.mutate(text, params={"k": value}))


def test_invalid_unicode_is_rejected_in_a_record(graph: Graph) -> None:
    record = {"type": "N", "data": {"k": "a\ud800"}}
    _refused(graph, InputError, lambda: graph.load([record], mode="append"))
    _refused(graph, InputError, lambda: graph.insert("N", {"k": "a\ud800"}))


def test_nan_is_rejected(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "f", "node N { k: String @key  f: F64? }", durability="os")
    graph.mutate('insert N { k: "one" }')
    for value in (float("nan"), float("inf"), float("-inf")):
        _refused(
            graph,
            ParameterError,
            lambda value=value: graph.mutate('query q($f: F64) { insert N { k: "x", f: $f } }', params={"f": value}),
        )
        _refused(graph, InputError, lambda value=value: graph.insert("N", {"k": "x", "f": value}))


def test_empty_input_makes_no_commit(graph: Graph, tmp_path: Path) -> None:
    head = graph.refresh().head.id
    empty = tmp_path / "empty.ndjson"
    empty.touch()
    inputs: tuple[Any, ...] = (b"", b"\n\n", [], {}, empty, {"N": []})
    for data in inputs:
        done: Any = graph.load(data, mode="append")
        assert (done.commit, done.total) == (None, 0)
    assert graph.refresh().head.id == head


def test_schema_without_types_is_usable(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "none", "", durability="os")
    done: Any = graph.load(b"", mode="merge")
    assert done.commit is None
    target = tmp_path / "out.ndjson"
    graph.export(target)
    assert target.read_bytes() == b""
