"""Reads the migration cases: two schemas and the expected comparison."""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "cases" / "migrate"
_TITLE = re.compile(r"^# case ", re.MULTILINE)
_SECTION = re.compile(r"^--- (\w+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One case; `sections` holds the text below each `--- name`."""

    file: str
    title: str
    sections: dict[str, str]

    def lines(self, name: str) -> list[str]:
        """The lines of a section without empty ones and comments."""
        found = (line.strip() for line in self.sections.get(name, "").splitlines())
        return [line for line in found if line and not line.startswith("#")]

    @property
    def allows_data_loss(self) -> bool:
        """Whether the case is planned with permission to remove history."""
        return "(data loss allowed)" in self.title

    def __str__(self) -> str:
        return f"{self.file}: {self.title}"


def read_cases() -> list[Case]:
    """Every case of every file but the matrix."""
    files = [file for file in sorted(FOLDER.glob("*.txt")) if file.stem != "matrix"]
    return [_case(file.stem, text) for file in files for text in _texts(file)]


def _texts(file: Path) -> list[str]:
    return _TITLE.split(file.read_text("utf-8"))[1:]


def _case(file: str, text: str) -> Case:
    title, _, rest = text.partition("\n")
    _, *parts = _SECTION.split(rest)
    return Case(file, title, dict(zip(parts[::2], parts[1::2], strict=True)))
