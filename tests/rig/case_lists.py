"""Case lists that name their tests: `a | b | tests/x.py::test_y`, one case per line."""

import re
from functools import cache
from pathlib import Path

_TOP = Path(__file__).parents[2]
_NODE = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


def entries(name: str) -> list[tuple[str, ...]]:
    """The cells of every line of a list below tests/cases; lines with `#` are remarks."""
    lines = (_TOP / "tests" / "cases" / name).read_text().splitlines()
    return [tuple(line.split(" | ")) for line in lines if line and not line.startswith("#")]


def missing(cell: str) -> list[str]:
    """The tests that a cell names and that are not there; a cell without a test misses one."""
    named = _NODE.findall(cell)
    if not named:
        return [cell]
    return [f"{path}::{test}" for path, test in named if test not in _tests(path)]


@cache
def _tests(path: str) -> frozenset[str]:
    file = _TOP / path
    source = file.read_text() if file.exists() else ""
    return frozenset(re.findall(r"^def (test_\w+)\(", source, re.MULTILINE))
