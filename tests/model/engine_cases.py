"""Reads the text cases of the engine: a graph, steps, and the expected result of each step.

The format is described in `tests/cases/README.md`. Nothing here runs anything.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[1] / "cases"
FOLDERS = ("query/rows", "mutation", "load")
ACTIONS = frozenset({"query", "mutate", "load", "export"})
EXPECTATIONS = frozenset({"rows", "ordered", "count", "done", "nothing", "error", "lines"})

_HEADER = re.compile(r"# ([a-z]+): (.*)\n")
_CALL = re.compile(r"(?:if (?P<head>\w+))?\s*(?:\((?P<declared>.*)\))?\s*(?P<given>\{.*\})?")


@dataclass(frozen=True)
class Part:
    """One section of a case: its word, the rest of its line, and the text below."""

    word: str
    rest: str
    text: str

    @property
    def condition(self) -> str | None:
        """For a conditional write: `head` for the newest commit, `start` for that of the case."""
        found = _CALL.fullmatch(self.rest)
        return found["head"] if found else None

    @property
    def declared(self) -> str:
        """The declared parameters of a query or mutation."""
        found = _CALL.fullmatch(self.rest)
        assert found, self.rest
        return found["declared"] or ""

    @property
    def given(self) -> dict[str, Any]:
        """The values of the parameters."""
        found = _CALL.fullmatch(self.rest)
        assert found, self.rest
        values: dict[str, Any] = json.loads(found["given"] or "{}")
        return values

    @property
    def source(self) -> str:
        """The query text; a bare body is put into a query called `q`."""
        body = self.text.strip()
        return body if body.startswith("query ") else f"query q({self.declared}) {{\n{body}\n}}"

    @property
    def done(self) -> dict[str, int]:
        """The number of entities by type that a write claims."""
        counts: dict[str, int] = json.loads(self.rest)
        return counts

    @property
    def values(self) -> list[Any]:
        """Every line as JSON."""
        return [json.loads(line) for line in self.text.splitlines() if line.strip()]


@dataclass(frozen=True)
class Case:
    """One case: its name, the rules it stands for, its graph, and its steps in pairs."""

    file: str
    name: str
    rule: str
    graph: str
    schema: str
    data: str
    steps: tuple[tuple[Part, Part], ...]

    @property
    def writes(self) -> bool:
        """Whether a step changes the graph."""
        return any(action.word in ("mutate", "load") for action, _ in self.steps)

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"


def all_cases() -> list[Case]:
    """Every case of every folder."""
    files = [file for folder in FOLDERS for file in sorted((CASES / folder).glob("*.txt"))]
    return [_case(file, text) for file in files for text in _blocks(file)]


def _blocks(file: Path) -> list[str]:
    return re.split(r"^---\n", file.read_text("utf-8"), flags=re.MULTILINE)


def _case(file: Path, text: str) -> Case:
    headers: dict[str, str] = {}
    while match := _HEADER.match(text):
        headers[match[1]] = match[2].strip()
        text = text[match.end() :]
    assert headers.keys() <= {"case", "rule", "graph"}, (file, headers)
    assert "case" in headers, (file, text[:80])
    assert "rule" in headers, (file, headers)
    parts = [_part(one) for one in re.split(r"^=== ", text, flags=re.MULTILINE) if one.strip()]
    made = {one.word: one.text for one in parts if one.word in ("schema", "data")}
    graph = headers.get("graph", "" if "schema" in made else "S D")
    schema, _, data = graph.partition(" ")
    steps = [one for one in parts if one.word not in made]
    return Case(
        file=f"{file.parent.name}/{file.stem}",
        name=headers["case"],
        rule=headers["rule"],
        graph=graph,
        schema=made.get("schema") or schema_text(schema),
        data=made.get("data") or (data_text(data) if data else ""),
        steps=tuple(_pairs(headers["case"], steps)),
    )


def _part(text: str) -> Part:
    line, _, rest = text.partition("\n")
    word, _, more = line.partition(" ")
    return Part(word, more.strip(), rest)


def _pairs(name: str, steps: list[Part]) -> list[tuple[Part, Part]]:
    words = [one.word for one in steps]
    assert steps, name
    assert len(steps) % 2 == 0, (name, words)
    assert set(words[::2]) <= ACTIONS, (name, words)
    assert set(words[1::2]) <= EXPECTATIONS, (name, words)
    return list(zip(steps[::2], steps[1::2], strict=True))


@cache
def schema_text(name: str) -> str:
    """A named schema: of the folder of graphs, else of the checker's cases."""
    places = (CASES / "graphs" / f"{name}.pg", CASES / "query" / "check" / f"{name}.pg")
    return next(one for one in places if one.exists()).read_text("utf-8")


@cache
def data_text(name: str) -> str:
    """A named set of entities, as NDJSON."""
    return (CASES / "graphs" / f"{name}.ndjson").read_text("utf-8")
