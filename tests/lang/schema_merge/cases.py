"""Reads the merge cases: one-line schemas, and the expected merge or conflicts."""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "cases" / "schema_merge"
_TITLE = re.compile(r"^# case ", re.MULTILINE)


@dataclass(frozen=True)
class MergeCase:
    """One case; `lines` holds the values of each label, in order.

    Several lines with the label `ours` or `theirs` are successive schemas of that side.
    """

    file: str
    title: str
    lines: dict[str, tuple[str, ...]]

    def all_of(self, label: str) -> tuple[str, ...]:
        """Return every value of a label."""
        return self.lines.get(label, ())

    def only(self, label: str) -> str | None:
        """Return the single value of a label, or None."""
        values = self.all_of(label)
        assert len(values) < 2, f"{self}: {label} is given twice"
        return values[0] if values else None

    def __str__(self) -> str:
        return f"{self.file}: {self.title}"


def read_merge_cases() -> list[MergeCase]:
    """Return the cases of every file."""
    return [
        _read_case(file.stem, text)
        for file in sorted(FOLDER.glob("*.txt"))
        for text in _TITLE.split(file.read_text("utf-8"))[1:]
    ]


def _read_case(file: str, text: str) -> MergeCase:
    title, *rows = text.splitlines()
    lines: dict[str, tuple[str, ...]] = {}
    for row in rows:
        if not row.strip() or row.startswith("#"):
            continue
        label, _, value = row.partition(":")
        lines[label] = (*lines.get(label, ()), value.strip())
    return MergeCase(file, title, lines)
