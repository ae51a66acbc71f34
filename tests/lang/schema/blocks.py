"""Reads the text fixtures of the schema language."""

import re
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parents[2] / "cases" / "schema"
_HEADER = re.compile(r"# (case|expect|hint|level|columns|key|card|rules|notes|default|embed|renamed): (.*)")


@dataclass(frozen=True)
class Block:
    """One case: its headers in order, and its parts of text."""

    file: str
    headers: tuple[tuple[str, str], ...]
    parts: tuple[str, ...]

    def all(self, key: str) -> list[str]:
        return [value for name, value in self.headers if name == key]

    def __str__(self) -> str:
        return f"{self.file}:{(self.all('case') or ['?'])[0]}"


def blocks(folder: str) -> list[Block]:
    """Every case of a folder."""
    files = sorted((CASES / folder).glob("*.txt"))
    return [_block(file.stem, text) for file in files for text in _texts(file)]


def _texts(file: Path) -> list[str]:
    return re.split(r"^---\n", file.read_text("utf-8"), flags=re.MULTILINE)


def _block(file: str, text: str) -> Block:
    headers = []
    while match := _HEADER.match(text):
        headers.append((match[1], match[2]))
        text = text[match.end() + 1 :]
    return Block(file, tuple(headers), tuple(re.split(r"^===\n", text, flags=re.MULTILINE)))
