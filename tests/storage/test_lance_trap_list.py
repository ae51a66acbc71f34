"""Every trap of Lance has a guard; those without another guard are tested here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.case_lists import entries, missing

TRAPS = "storage/traps.txt"
PARTS = set(
    "staging schemas indexes detached cleanup swap creation opening branches disk requests stores"
    " blobs processes transactions search extras".split()
)
# What Lance remembers of its versions: not of detached ones, and not always readable.
REMEMBERED = {"read_transaction", "get_transactions", "tracked_files", "all_files", "delta"}


def test_every_trap_has_its_guard() -> None:
    listed = entries(TRAPS)
    assert {part for part, *_ in listed} == PARTS
    for _, trap, fate, guard in listed:
        assert fate in ("relied", "avoided", "later"), trap
        assert fate == "later" or not missing(guard), missing(guard)


def sources(top: Path, word: str, *places: str) -> Iterator[tuple[Path, ast.AST]]:
    """Every piece of every program that has a word in it."""
    for place in places:
        for path in sorted((top / place).rglob("*.py")):
            text = path.read_text()
            for node in ast.walk(ast.parse(text)) if word in text else ():
                yield path, node


def forks(node: ast.AST) -> bool:
    """Whether a piece of a program starts a process by forking this one."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    if called in ("os.fork", "os.forkpty", "multiprocessing.Process", "multiprocessing.Pool"):
        return True
    if called.endswith("get_context"):
        return ast.unparse(node).endswith(("('fork')", "()"))
    given = {one.arg for one in node.keywords}
    return called.endswith("ProcessPoolExecutor") and "mp_context" not in given


@pytest.mark.parametrize(
    ("text", "forked"),
    [
        ("os.fork()", True),
        ("multiprocessing.get_context('fork').Process()", True),
        ("ProcessPoolExecutor(2)", True),
        ("ProcessPoolExecutor(2, mp_context=spawn)", False),
        ("multiprocessing.get_context('spawn').Process()", False),
    ],
)
def test_a_planted_fork_is_caught(text: str, forked: bool) -> None:
    assert any(forks(node) for node in ast.walk(ast.parse(text))) == forked


def test_package_never_forks(checkout: Path) -> None:
    for word in ("os.fork", "multiprocessing", "ProcessPoolExecutor"):
        found = sources(checkout, word, "omnigraph", "tests", "bench", "scripts")
        assert [(path, ast.unparse(node)) for path, node in found if forks(node)] == []


def test_transaction_records_of_lance_decide_nothing(checkout: Path) -> None:
    """Of a compaction that remapped indexes it cannot even be read: `TypeError`.

    What other tools did to a HEAD is told from nothing else, and `table_head.py` decides nothing
    by it that rows do not prove.
    """
    used = [
        (path, node.attr)
        for path, node in sources(checkout, "lance", "omnigraph/storage")
        if isinstance(node, ast.Attribute) and node.attr in REMEMBERED and path.name != "table_head.py"
    ]
    assert used == []
