"""Reads the text fixtures of query checking, lowering, linting and parameters."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.catalog import Catalog

CASES = Path(__file__).parents[2] / "cases" / "query"
_HEADER = re.compile(r"# ([a-z_]+):(?: (.*))?\n")


@dataclass(frozen=True)
class Block:
    """One case: its headers in order, and its parts of text."""

    file: str
    headers: tuple[tuple[str, str], ...]
    parts: tuple[str, ...]

    def all(self, key: str) -> list[str]:
        return [value for name, value in self.headers if name == key]

    def first(self, key: str, otherwise: str = "") -> str:
        return next(iter(self.all(key)), otherwise)

    @property
    def catalog(self) -> Catalog:
        return schema(self.first("schema", "S"))

    @property
    def text(self) -> str:
        """The query text; a bare body is put into a query called `q`."""
        body = self.parts[0].rstrip("\n")
        if body.startswith("query"):
            return body
        return f"query q({self.first('params')}) {{\n{body}\n}}"

    def __str__(self) -> str:
        return f"{self.file}:{self.first('case', '?')}"


@cache
def schema(name: str) -> Catalog:
    """A schema of the fixtures, by the name of its file."""
    return compile_schema((CASES / "check" / f"{name}.pg").read_text("utf-8"), f"{name}.pg")


def blocks(folder: str) -> list[Block]:
    """Every case of a folder."""
    files = sorted((CASES / folder).glob("*.txt"))
    return [_block(file.stem, text) for file in files for text in _texts(file)]


def _texts(file: Path) -> list[str]:
    return re.split(r"^---\n", file.read_text("utf-8"), flags=re.MULTILINE)


def _block(file: str, text: str) -> Block:
    headers = []
    while match := _HEADER.match(text):
        headers.append((match[1], match[2] or ""))
        text = text[match.end() :]
    return Block(file, tuple(headers), tuple(re.split(r"^===\n", text, flags=re.MULTILINE)))
