"""Search returns the same rows at any coverage of the full-text index."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance.query import MatchQuery

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.engine.operators import scan
from omnigraph.engine.search import fulltext_scan
from omnigraph.engine.search.stem import stem, stem_prefixes
from omnigraph.engine.search.text import analyze_texts, match_texts
from omnigraph.errors import IndexUnreadable
from omnigraph.storage import tail_compaction
from omnigraph.storage.column_index import index_coverage
from omnigraph.storage.text import fulltext
from omnigraph.storage.text.fulltext import text_index_key
from omnigraph.testing import graph as new_graph
from omnigraph.values.table_key import TableKey
from tests.rig.plugin import S3

SCHEMA = """
node D {
  k: String @key
  n: I64?
  body: String?
  @index(body, kind=fulltext)
}
node Both { k: String @key  title: String?  @index(title)  @index(title, kind=fulltext) }
"""
# Texts that a tokenizer may get wrong: marks, ligatures, other scripts, stop words, odd letters.
TEXTS = [
    "The Crème-Brûlées of searching!",
    "creme brule\u0301e, searched",
    "Müller & Söhne; MÜLLER",
    "Straße STRASSE stra\u00dfe",
    "ŁÓDŹ Ørsted Þórr Æsir œuvre",
    "Привет мир, ёлка и ЙОД",
    "приветы мира",
    "한국어 검색 텍스트",
    "日本語の検索 テキスト",
    "हिन्दी खोज",
    "שלום עולם מלא",
    "Οδυσσεύς ΟΔΥΣΣΕΎΣ",
    "İstanbul ISTANBUL ıstanbul istanbul",
    "ﬁnding ﬃ x² ½ Ⅷ №5 footm™ ™",
    "™",
    "to be or not to be",
    *("dying", "a lying one", "skies", "die", "TYING"),
    "under_score e-mail a.b.c C++ C# f(x) 3.14 1,000",
    "zero\u200bwidth soft\u00adhyphen word\u2060joiner",
    "new\u2028line para\u2029graph tab\there\x00nul",
    "emoji \U0001f600 glue\U0001f600glue",
    "relational relations relate happily happy happiness",
    "",
    "...",
    "x" * 300,
]
QUERIES = [
    *("search", "creme", "Brûlées", "brulee", "muller", "Söhne", "strasse", "straße", "lodz"),
    *("orsted", "thorr", "aesir", "oeuvre", "привет", "елка", "ёлка", "йод", "мира", "검색"),
    *("検索", "日本語の検索", "खोज", "हिन", "שלום", "οδυσσευς", "Οδυσσεύς", "istanbul", "ıstanbul"),
    *("finding", "ffi", "x2", "5", "no5", "viii", "tm", "footm", "die", "lie", "tie", "sky"),
    *("under", "score", "mail", "c", "f", "1", "14", "width", "zero", "hyphen", "joiner", "line"),
    *("para", "nul", "glue", "glueglue", "relate", "happy", "to be", "the", "", "...", "x" * 300),
    *("searching relations", "new line", "die dies", "not there at all", "of searching"),
]


@pytest.fixture(autouse=True)
def seldom_simple(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many already, and no question is too broad."""
    monkeypatch.setattr(fulltext_scan, "MIN_INDEXED_ROWS", 1)
    monkeypatch.setattr(fulltext_scan, "_MIN_ROWS_PER_CANDIDATE", 0.001)
    monkeypatch.setattr(fulltext_scan, "_MAX_WITH_PUSHDOWN", 1 << 30)


@pytest.fixture
def proposals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The words that an index was asked for."""
    asked: list[tuple[str, ...]] = []
    real = fulltext.candidate_rows

    def counted(*given: Any) -> Any:
        asked.append(tuple(given[-1]))
        return real(*given)

    monkeypatch.setattr(fulltext, "candidate_rows", counted)
    return asked


def rows_of(some: list[str], start: int = 0) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"k": f"k{n:03}", "n": n % 3, "body": one} for n, one in enumerate(some, start)]
    return [*rows, {"k": f"none{start}", "n": 0}]


def ask(graph: Graph, condition: str, query: str, name: str = "D", field: str = "body") -> list[str]:
    call = condition.replace("$d.body", f"$d.{field}")
    text = f"query q($q: String) {{ match {{ $d: {name}  {call} }} return {{ $d.k as k }} }}"
    return sorted(one["k"] for one in graph.query(text, q=query))


FUNCTIONS: list[Any] = ["search", "match_text", "fuzzy"]
SEARCH, PHRASE, FUZZY = "search($d.body, $q)", "match_text($d.body, $q)", "fuzzy($d.body, $q, 1)"


def looks(graph: Graph, queries: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Every question, by the index as far as there is one."""
    yield from (("search", one, ask(graph, SEARCH, one)) for one in queries)
    yield from (("match_text", one, ask(graph, PHRASE, one)) for one in queries[::4])
    yield from (("fuzzy", one, ask(graph, FUZZY, one)) for one in queries[::4])


def expected(rows: list[dict[str, Any]], queries: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """The same from the texts alone."""
    column = pa.array([one.get("body") for one in rows], pa.string())
    for function in FUNCTIONS:
        for query in queries if function == "search" else queries[::4]:
            found = match_texts(function, column, query, 1).to_pylist()
            hits = sorted(one["k"] for one, hit in zip(rows, found, strict=True) if hit)
            yield function, query, hits


@pytest.mark.parametrize(
    ("share", "queries"),
    [
        (50, QUERIES[::2]),
        (100, QUERIES[1::2]),
        *(pytest.param(one, QUERIES, marks=pytest.mark.full) for one in (0, 50, 100)),
    ],
)
def test_search_results_do_not_depend_on_index_coverage(
    share: int, queries: list[str], proposals: list[tuple[str, ...]]
) -> None:
    rows = rows_of(TEXTS)
    first = rows[: len(rows) * share // 100]
    with new_graph(SCHEMA) as graph:
        if first:
            graph.load({"D": first}, mode="append")
            assert graph.maintenance.ensure_indices()
            assert not graph.maintenance.ensure_indices()
        if len(first) < len(rows):
            graph.load({"D": rows[len(first) :]}, mode="append")
        assert list(looks(graph, queries)) == list(expected(rows, queries))
        assert bool(proposals) == bool(share)


def test_rows_written_after_the_index_are_found(proposals: list[tuple[str, ...]]) -> None:
    rows = rows_of([*TEXTS, *(f"word{n} common" for n in range(40))])
    some = ["word1", "common", "changed", "search", "brulee", "added", "crème"]
    with new_graph(SCHEMA, {"D": rows}) as graph:
        graph.maintenance.ensure_indices()
        graph.delete("D", where="n = 1")
        graph.update("D", where="n = 2", set={"body": "changed crème"})
        graph.insert("D", {"k": "new", "body": "added searching"})
        left = [one for one in rows if one["n"] != 1]
        left = [one | {"body": "changed crème"} if one["n"] == 2 else one for one in left]
        left.append({"k": "new", "body": "added searching"})
        assert list(looks(graph, some)) == list(expected(left, some))
        assert proposals
        before = ranked(graph, "common changed")
        graph.maintenance.optimize()
        assert list(looks(graph, some)) == list(expected(left, some))
        assert ranked(graph, "common changed") == before
        assert not graph.maintenance.optimize()
        table = graph.snapshot.table(TableKey("node:D"))
        numbers = {one.fragment_id for one in table.dataset.get_fragments()}
        assert index_coverage(table)[text_index_key("body")] == numbers
        assert not graph.maintenance.check().findings


def test_maintenance_does_not_change_search_results(
    proposals: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_compaction, "MIN_FRAGMENTS", 2)
    monkeypatch.setattr(tail_compaction, "MIN_INDEXED_ROWS", 2)
    rows = rows_of(TEXTS)
    some = ["search", "brulee", "привет", "die", "istanbul", "tm"]
    wider = SCHEMA.replace("n: I64?", "n: I64?  more: I64 @default(3)")
    with new_graph(SCHEMA, {"D": rows}) as graph:
        graph.maintenance.ensure_indices()
        for n in range(6):  # small writes that fold what is behind them
            graph.insert("D", {"k": f"new{n}", "body": f"searched {n}"})
            rows.append({"k": f"new{n}", "body": f"searched {n}"})
            assert list(looks(graph, some[:1])) == list(expected(rows, some[:1]))
        verbs: list[Callable[[], object]] = [
            lambda: graph.schema.apply(wider),
            graph.maintenance.ensure_indices,
            lambda: graph.maintenance.cleanup(keep=1, grace=0, confirm=True),
            graph.maintenance.optimize,
            lambda: graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True),
        ]
        for verb in verbs:
            verb()
            graph.refresh()
            proposals.clear()
            assert list(looks(graph, some)) == list(expected(rows, some))
            assert proposals
        assert not graph.maintenance.check().findings


def ranked(graph: Graph, query: str) -> list[tuple[str, float]]:
    text = """query q($q: String) { match { $d: D  search($d.body, $q) }
        return { $d.k as k, bm25($d.body, $q) as score } order { bm25($d.body, $q), $d.k } }"""
    return [(one["k"], one["score"]) for one in graph.query(text, q=query)]


def test_explain_names_the_index() -> None:
    query = 'match { $d: D  search($d.body, "searching") } return { $d.k }'
    with new_graph(SCHEMA, {"D": rows_of(TEXTS)}) as graph:
        assert "(index" not in str(graph.explain(query))
        graph.maintenance.ensure_indices()
        assert "(index body_fulltext)" in str(graph.explain(query))
        nothing = query.replace("searching", "the")
        assert "(index" not in str(graph.explain(nothing)), "a query without a token asks nobody"
        assert graph.maintenance.pending_indices() == []
        unseen = query.replace("searching", "tm")
        assert "(index" not in str(graph.explain(unseen)), "it would not find the text that is ™"


def test_small_tables_and_broad_queries_skip_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    query = 'match { $d: D  $d.n != 1  search($d.body, "common") } return { $d.k }'
    rows = rows_of([f"common word{n}" if n % 2 else "rare" for n in range(60)])
    with new_graph(SCHEMA, {"D": rows}) as graph:
        graph.maintenance.ensure_indices()
        assert "(index" in str(graph.explain(query))
        with monkeypatch.context() as patch:
            patch.setattr(fulltext_scan, "_MIN_ROWS_PER_CANDIDATE", 8)
            assert "(index" not in str(graph.explain(query))
            assert "(index" in str(graph.explain(query.replace("common", "word7")))
            patch.setattr(fulltext_scan, "_MAX_WITH_PUSHDOWN", 0)
            assert "(index" not in str(graph.explain(query.replace("common", "word7")))
        with monkeypatch.context() as patch:
            patch.setattr(fulltext_scan, "MIN_INDEXED_ROWS", 61)
            assert "(index" not in str(graph.explain(query))


def test_fulltext_and_equality_indexes_coexist(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lance filters by the first index of a column: that must never be the one of words."""
    monkeypatch.setattr(scan, "hot_rows", lambda *_: None)

    def look(graph: Graph) -> None:
        equal = 'match { $d: Both  $d.title = "some text 7" } return { $d.k as k }'
        worded = 'match { $d: Both  search($d.title, "texts") } return { $d.k as k }'
        assert "(index title_btree)" in str(graph.explain(equal))
        assert "(index title_fulltext)" in str(graph.explain(worded))
        assert [one["k"] for one in graph.query(equal)] == ["t7"]
        assert len(graph.query(worded)) == len(graph.query("match { $d: Both } return { $d.k }"))

    def row(n: int) -> dict[str, Any]:
        return {"k": f"t{n}", "title": f"some text {n}"}

    only_words = SCHEMA.replace("@index(title)  ", "")
    with new_graph(only_words, {"Both": [row(n) for n in range(20)]}) as graph:
        graph.maintenance.ensure_indices()
        assert graph.schema.apply(SCHEMA)
        assert graph.maintenance.ensure_indices(), "an index of equal values joins the words"
        look(graph)
        assert not graph.maintenance.ensure_indices()
        for n in range(10):  # so many that segments become one
            graph.insert("Both", row(100 + n))
            graph.maintenance.ensure_indices()
        look(graph)
        graph.update("Both", where='title = "some text 3"', set={"title": "other text"})
        graph.maintenance.optimize()
        look(graph)
        graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
        graph.refresh()
        look(graph)
        assert not graph.maintenance.ensure_indices()


def test_renamed_property_keeps_its_fulltext_index(proposals: list[tuple[str, ...]]) -> None:
    with new_graph(SCHEMA, {"D": rows_of(TEXTS)}) as graph:
        graph.maintenance.ensure_indices()
        text = SCHEMA.replace("body: String?", 'content: String? @rename_from("body")')
        assert graph.schema.apply(text.replace("@index(body", "@index(content"))
        assert ask(graph, SEARCH, "search", field="content") == ["k000", "k001"]
        assert proposals
        assert not graph.maintenance.ensure_indices()


def test_prefix_search_uses_stems() -> None:
    """What is looked for in a list of words is looked for by its first letters."""
    ends = "s es ed ied ies ing eed eedly edly ly ation ational ness y ying ful ment e ee us ss ll"
    starts = ["".join(one) for n in (0, 1, 2, 3) for one in product("aeylsbt", repeat=n)]
    made = {start + end for start in starts for end in ["", *ends.split()]}
    for word in sorted(made | {"dyings", "vying", "skies", "idly", "gently", "ugly"}):
        assert not word or word.startswith(tuple(stem_prefixes(stem(word)))), word


def test_check_reports_tokens_missing_from_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    real = fulltext.candidate_rows
    with new_graph(SCHEMA, {"D": rows_of(TEXTS)}) as graph:
        graph.maintenance.ensure_indices()
        assert graph.maintenance.check().findings == ()
        monkeypatch.setattr(fulltext, "candidate_rows", lambda *given: real(*given)[1:])  # type: ignore[index]
        (found,) = graph.maintenance.check().findings
        assert (found.kind, found.type_key) == ("index", "node:D")
        assert "the full-text index on column 'body' of node type 'D'" in found.reason
        assert "1 missing" in found.reason
        monkeypatch.setattr(fulltext, "candidate_rows", real)
        listed = fulltext.read_tokens
        monkeypatch.setattr(fulltext, "read_tokens", lambda *given: listed(*given)[:-2])  # type: ignore[index]
        (found,) = graph.maintenance.check().findings
        assert "is missing 2 of the tokens" in found.reason


def made(place: Path, rows: list[dict[str, Any]]) -> Graph:
    graph = omnigraph.init(place, SCHEMA, durability="os")
    graph.load({"D": rows}, mode="append")
    graph.maintenance.ensure_indices()
    return graph


def test_search_works_without_a_lost_index(tmp_path: Path) -> None:
    for file in ("words.lance", "part_0_invert.lance"):
        place = tmp_path / file
        made(place, rows_of(TEXTS)).close()
        for one in place.rglob(f"_indices/*/{file}"):
            one.unlink()
        with omnigraph.open(place) as graph, pytest.warns(IndexUnreadable):
            assert ask(graph, SEARCH, "search") == ["k000", "k001"]


def test_lost_fulltext_index_is_rebuilt(tmp_path: Path, proposals: list[tuple[str, ...]]) -> None:
    with made(tmp_path / "g", rows_of(TEXTS)) as graph:
        (lost,) = (tmp_path / "g").rglob("words.lance")
        lost.unlink()
        assert graph.maintenance.ensure_indices()
        assert ask(graph, SEARCH, "search") == ["k000", "k001"]
        assert proposals


def test_erased_token_is_in_no_file(tmp_path: Path) -> None:
    place = tmp_path / "g"
    rows = rows_of([*TEXTS, "a verysecretword"])
    with made(place, rows) as graph:
        assert holding(place, b"verysecretword")
        graph.delete("D", where=f"k = 'k{len(TEXTS):03}'")
        graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
        assert not holding(place, b"verysecretword")


def holding(place: Path, needle: bytes) -> list[Path]:
    return [one for one in place.rglob("*") if one.is_file() and needle in one.read_bytes()]


@pytest.mark.full
def test_tokenizer_equals_the_lance_tokenizer(tmp_path: Path) -> None:
    """For every character: what an index of words relies on, with the Lance that is installed."""
    letters = [chr(at) for at in range(0x110000) if not 0xD800 <= at < 0xE000]
    column = pa.array([f"xx{one}yy" for one in letters])
    data = lance.write_dataset(pa.table({"n": range(len(letters)), "t": column}), tmp_path / "d")
    data.create_scalar_index("t", "INVERTED", **fulltext._TOKENIZER_OPTIONS)
    asked = data.scanner(columns=["n", "_score"], full_text_query=MatchQuery("xx", "t"))
    cut_by_lance = set(asked.to_table()["n"].to_pylist())
    held = pa.array(letters)
    ours = np.flatnonzero(pc.match_substring_regex(held, f"^{fulltext.SEPARATOR_PATTERN}$").to_numpy(False))
    assert set(ours.tolist()) <= cut_by_lance
    tokens = analyze_texts(column.take(pa.array(ours)))
    assert set(tokens.vocabulary) == {"xx", "yy"}, "the engine cuts there, and nothing is left of it"
    seen = np.flatnonzero(pc.match_substring_regex(held, fulltext.INDEXED_CHARACTERS).to_numpy(False))
    assert not cut_by_lance & set(seen.tolist())
    assert len(ours) > 100_000
    assert len(seen) > 100_000


LETTERS = "abeéßøİıΣςйё한्\u0301\u200b™½ﬁ x.-_ XEŁ1"


@pytest.mark.full
@given(
    some=st.lists(st.text(LETTERS, max_size=12), min_size=50, max_size=400),
    queries=st.lists(st.text(LETTERS, max_size=6), min_size=20, max_size=20),
)
@settings(max_examples=25)
def test_random_texts_are_found(some: list[str], queries: list[str]) -> None:
    rows = rows_of(some)
    asked = [*queries, *(one for text in some for one in text.split()[:1])][:40]
    with new_graph(SCHEMA, {"D": rows[: len(rows) // 2]}) as graph:
        graph.maintenance.ensure_indices()
        graph.load({"D": rows[len(rows) // 2 :]}, mode="append")
        assert list(looks(graph, asked)) == list(expected(rows, asked))


@pytest.mark.full
def test_search_works_on_s3(s3: S3, proposals: list[tuple[str, ...]]) -> None:
    with omnigraph.init(s3.url, SCHEMA) as graph:
        rows = rows_of(TEXTS)
        graph.load({"D": rows}, mode="append")
        assert graph.maintenance.ensure_indices()
        assert not graph.maintenance.ensure_indices()
        some = QUERIES[::5]
        assert list(looks(graph, some)) == list(expected(rows, some))
        assert proposals
        assert graph.maintenance.check().findings == ()
        (lost,) = (one.name for one in graph._handle.store.objects.list("nodes") if "/words." in one.name)
        graph._handle.store.objects.backend.remove(lost)
        assert graph.maintenance.ensure_indices(), "lost words are written anew"
        assert list(looks(graph, some[:3])) == list(expected(rows, some[:3]))
