"""Work on a schema grows linearly with its text: steps are counted, not seconds."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from omnigraph.errors import ParseError
from omnigraph.lang import coarse_scan, lexer
from omnigraph.lang.lalr_parser import Parser
from omnigraph.lang.schema import diagnose_schema, format_schema

SIZE = 25
DOUBLED = 2.2  # how much more work twice the text may make

SHAPES: dict[str, Callable[[int], str]] = {
    "declarations": lambda n: "".join(f"node A{i} {{ a: I32 @index }}\n" for i in range(n)),
    "edges": lambda n: "node A {}" + "".join(f"edge E{i}: A -> A @card(0..1)\n" for i in range(n)),
    "one declaration": lambda n: f"node A {{ {' '.join(f'a{i}: I32' for i in range(n))} }}",
    "one enum": lambda n: f"node A {{ a: enum({', '.join(f'v{i}' for i in range(n))}) }}",
    "annotations": lambda n: f"node A {{ a: I32 {'@x(1, k=2) ' * n} }}",
    "constraints": lambda n: f"node A {{ a: I32 {'@range(a, 1..2) ' * n} }}",
    "constraints in line": lambda n: "node A { a: I32 " + "@key // x\n /* y */ " * n + "}",
    "interfaces": lambda n: f"node A implements {', '.join(f'I{i}' for i in range(n))} {{}}",
    "comments": lambda n: "node A {}" + "// x\n /* y */\n" * n + "node B {}",
    "empty bodies and comments": lambda n: "".join(f"node A{i} {{}} // x\n" for i in range(n)),
    "open quotes": lambda n: 'node A @x("a) {}\n' * n,
    "quotes": lambda n: '"' * (2 * n + 1),
    "open brackets": lambda n: "node A { a: " + "[" * n,
    "open braces": lambda n: "node A { " * n,
    "open comments": lambda n: "node A { a: I32 " + "/* " * n,
    "open comments behind constraints": lambda n: "node A { a: I32 " + "@key /* " * n,
    "broken declarations": lambda n: "node A { a I32 }\n" * n,
    "unknown types": lambda n: "node A { a: Nothing }\n" * n,
    "no declarations": lambda n: "lamp ( " * n,
    "stray commas": lambda n: f"node A {{ {'a: I32, ' * n} }}",
    "backslashes": lambda n: 'node A @x("' + "\\" * 2 * n,
    "one long word": lambda n: "x" * 40 * n,
    "nothing": lambda n: "\n" * n + " " * n,
}


class Steps:
    """Counts lexemes of the coarse scanner, searches for tokens, shifted tokens and reductions."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        for owner, name in ((lexer.TerminalMatcher, "match"), (Parser, "_shift"), (Parser, "_reduce")):
            patch.setattr(owner, name, self._counted(name, getattr(owner, name)))
        patch.setattr(coarse_scan, "lexemes", self._pieces(coarse_scan.lexemes))

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
        """How many steps some work on a text takes; a few are granted to every text."""
        before = self.counts.total()
        with contextlib.suppress(ParseError):
            work(text)
        return self.counts.total() - before + 10


@pytest.mark.parametrize("work", [diagnose_schema, format_schema])
@pytest.mark.parametrize("shape", SHAPES)
def test_steps_grow_linearly_with_the_text(
    shape: str, work: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)
    one, two, four = (steps.of(work, SHAPES[shape](SIZE * k)) for k in (1, 2, 4))
    assert two <= DOUBLED * one
    assert four <= DOUBLED * two


def test_every_kind_of_step_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    steps.of(diagnose_schema, "node A {}")
    assert set(steps.counts) == {"match", "_shift", "_reduce", "lexemes"}


def test_quadratic_work_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def square(text: str) -> None:
        for end in range(0, len(text), 40):
            list(coarse_scan.lexemes(text, 0, end))

    steps = Steps(monkeypatch)
    one, two = (steps.of(square, SHAPES["declarations"](SIZE * k)) for k in (1, 2))
    assert two > DOUBLED * one
