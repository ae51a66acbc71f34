"""Parsing work grows linearly with the text: steps are counted, not seconds."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from omnigraph.errors import ParseError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.lang import coarse_scan, lexer
from omnigraph.lang.lalr_parser import Parser
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.parse import read_queries

SIZE = 40  # below the bound on nesting at four times the size only where brackets nest


class Steps:
    """Counts coarse pieces, searches for tokens, shifted tokens, reductions and simulated reductions."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self._wrap(patch, lexer.TerminalMatcher, "match")
        self._wrap(patch, Parser, "_shift")
        self._wrap(patch, Parser, "_reduce")
        self._wrap(patch, Parser, "_would_accept")
        patch.setattr(coarse_scan, "lexemes", self._pieces(coarse_scan.lexemes))

    def _wrap(self, patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        patch.setattr(owner, name, self._counted(name, getattr(owner, name)))

    def _counted(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any, **named: Any) -> Any:
            self.counts[name] += 1
            return work(*given, **named)

        return counting

    def _pieces(self, work: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def counting(*given: Any, **named: Any) -> Iterator[Any]:
            for piece in work(*given, **named):
                self.counts["lexemes"] += 1
                yield piece

        return counting

    def of(self, work: Callable[[str], object], text: str) -> int:
        before = self.counts.total()
        with contextlib.suppress(ParseError):
            work(text)
        return self.counts.total() - before


def read(text: str) -> object:
    return read_queries(SourceText("x.gq", text))


def within(inner: str) -> str:
    return f"query q() {{ match {{ {inner} }} return {{ 1 }} }}"


SHAPES: dict[str, Callable[[int], str]] = {
    "clauses": lambda n: within("$a knows $b " * n),
    "paths": lambda n: within("$p = any shortest $a $e:knows{1,3} $b where $e.k > 1 and $e.k < 3 by $e.k " * n),
    "conditions": lambda n: within(" and ".join(["$a.x = 1 or not $a.y is null"] * n)),
    "sums": lambda n: within("$a.x = " + " + ".join(["$a.y * -2"] * n)),
    "cases": lambda n: within("$a.x = case " + "when $a.y = 1 then 2 " * n + "end"),
    "calls": lambda n: within("lower" + "/* y */" * n + "($a.x) = 1 "),
    "words before calls": lambda n: within("lower /* " * n),
    "columns": lambda n: "query q() { match { $p: P } return { " + "count($p) as n, " * n + "} }",
    "values": lambda n: within("$p.x in [" + ", ".join(["1"] * n) + "]"),
    "assignments": lambda n: "query q() { insert P { " + "a: 1 " * n + "} }",
    "queries": lambda n: "query q($a: I32) { delete P where a = $a } " * n,
    "comments": lambda n: within("$a: A " + "// x\n/* y */" * n),
    "comments before a call": lambda n: within("count" + "/* y */" * n + "($a) = 1 "),
    "strings": lambda n: within('$a.x = "y" ' * n),
    "broken queries": lambda n: "query q() { match { $p: p } } " * n,
    "openings": lambda n: "query q(" * n,
    "open quotes": lambda n: 'query q() { match { $p: P { a: "x } }\n' * n,
    "quotes": lambda n: within('"\n' * n),
    "odd quotes": lambda n: within('"\n' * (2 * n + 1)),
    "open brackets": lambda n: within("(" * n),
    "open braces": lambda n: within("not { " * n),
    "open comments": lambda n: within("/* " * n),
    "open comments after calls": lambda n: within("count /* " * n),
    "unions": lambda n: within("$a: A")[:-1] + "union match { $b: B } return { 1 } " * n + "}",
    "group conditions": lambda n: within("$a: A")[:-1] + "having { " + " and ".join(["count(*) > 1"] * n) + " } }",
    "matched statements": lambda n: "query q() { " + "match { $a: A } delete $a " * n + "}",
    "cypher": lambda n: "MATCH (p:Person) RETURN p " * n,
    "cypher in queries": lambda n: "query q() { MATCH (p:Person)-[:KNOWS]->(q) RETURN p } " * n,
    "sql": lambda n: "SELECT a FROM b WHERE c = 1 " * n,
    "stray characters": lambda n: within("# " * n),
    "backslashes": lambda n: within('"' + "\\" * 2 * n),
    "nothing": lambda n: "\n" * n + " " * n,
}


@pytest.mark.parametrize("work", [read, format_queries])
@pytest.mark.parametrize("shape", SHAPES)
def test_steps_grow_linearly_with_the_text(
    shape: str, work: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)
    one, two, four = (steps.of(work, SHAPES[shape](SIZE * k)) for k in (1, 2, 4))
    assert two <= 2 * one + 20
    assert four <= 4 * one + 60


def test_every_kind_of_step_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    steps.of(read, within("$a: A"))
    assert set(steps.counts) == {"match", "_shift", "_reduce", "lexemes"}


def test_quadratic_work_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def square(text: str) -> None:
        for end in range(0, len(text), 40):
            list(coarse_scan.lexemes(text, 0, end))

    steps = Steps(monkeypatch)
    one, four = (steps.of(square, SHAPES["clauses"](SIZE * k)) for k in (1, 4))
    assert four > 4 * one + 60
