"""The shell on a terminal: prompt, multi-line input, Ctrl-C, Ctrl-D, history and completion."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

import omnigraph as package
from omnigraph.cli.main import cli
from omnigraph.cli.options import CurrentGraph, Settings
from omnigraph.cli.shell.history import MAX_ENTRIES, History
from omnigraph.cli.shell.input_completion import InputCompleter
from omnigraph.cli.shell.session import Session
from tests.cli.conftest import Program
from tests.cli.shell.test_shell import SCHEMA
from tests.rig.timeouts import PATIENCE

pty = pytest.importorskip("pty")


# Python cannot make a terminal the controlling one in `subprocess`, and forking is unsafe after Lance was imported.
START = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)  # background jobs of shells start with SIGINT ignored
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "omnigraph.cli.main", *sys.argv[1:]])
"""


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.descriptor, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        os.close(slave)
        self.output = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.descriptor)

    def expect(self, text: str, *, press: str = "") -> None:
        """Read until a text appears after everything that was expected before; press a key again each second."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.output:
            assert time.monotonic() < deadline, f"no {text!r} in {self.output!r}"
            if select.select([self.descriptor], [], [], 1)[0]:
                self.output += os.read(self.descriptor, 4096).decode()
            elif press:
                self.type(press)
        self.output = self.output.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def end(self) -> int:
        return self.process.wait(PATIENCE)


def test_statements_are_entered_on_a_terminal(tmp_path: Path) -> None:
    package.init(tmp_path / "people", SCHEMA).insert("Person", {"name": "ada"})
    home = tmp_path / "home"
    with Terminal("shell", str(tmp_path / "people"), OMNIGRAPH_HOME=str(home), TERM="dumb") as terminal:
        terminal.expect("people:main> ")
        terminal.type("match { $p: Person }\n")
        terminal.expect("...> ")
        terminal.type("return { $p.na\t }\n")  # completed
        terminal.expect("return { $p.name")
        terminal.expect("ada")
        terminal.expect("people:main> ")
        terminal.type("match {")
        terminal.expect("match {")
        # Python misses a signal that arrives just before readline starts to wait, so Ctrl-C may be needed twice.
        terminal.type("\x03")
        terminal.expect("people:main> ", press="\x03")
        terminal.type("branch lst\n")
        terminal.expect("did you mean 'list'?")
        terminal.expect("people:main> ")
        terminal.type("\\at HEAD\n")
        terminal.expect("people:main@HEAD> ")
        terminal.type("\x04")  # Ctrl-D
        assert terminal.end() == 0
    assert (home / "history").read_text().splitlines() == [
        "match { $p: Person } return { $p.name }",
        "branch lst",
        "\\at HEAD",
    ]
    assert (home / "history").stat().st_mode & 0o777 == 0o600


def test_history_is_limited_and_shared(tmp_path: Path) -> None:
    path = tmp_path / "home" / "history"
    first, second = History(None, path), History(None, path)
    for number in range(MAX_ENTRIES):
        first.add(f"log --limit {number}")
    second.add("branch list")
    second.add("branch list")
    first.save()
    second.save()
    entries = path.read_text().splitlines()
    assert len(entries) == MAX_ENTRIES
    assert entries[-2:] == [f"log --limit {MAX_ENTRIES - 1}", "branch list"]


@pytest.fixture
def completer(omnigraph: Program) -> InputCompleter:
    graph = package.init("people", SCHEMA)
    graph.branches.create("review")
    graph.tag("v1")
    return InputCompleter(Session(cli, CurrentGraph(graph.uri), Settings()))


@pytest.mark.parametrize(
    ("before", "word", "matches"),
    [
        ("", "sna", ["snapshot"]),
        ("", "mat", ["match"]),
        ("", "\\b", ["\\branch"]),
        ("\\branch ", "r", ["review"]),
        ("\\at ", "v", ["v1"]),
        ("\\d ", "P", ["Person"]),
        ("\\format ", "j", ["json"]),
        ("match { $p: ", "P", ["Person"]),
        ("match { $p: Person } return { ", "$p.n", ["$p.name"]),
        ("match { $p: Person } ", "ret", ["return"]),
        ("match { $person: Person  ", "$p", ["$person"]),
        ("match { $p: Person  $p ", "kn", ["knows"]),
        ("insert ", "Kn", ["Knows"]),
        ("insert Person { ", "ag", ["age"]),
        ("branch ", "cr", ["create"]),
        ("branch merge ", "re", ["review"]),
        ("log --branch ", "m", ["main"]),
        ("log --type ", "K", ["Knows"]),
        ("query --format ", "pa", ["parquet"]),
        ("tag delete ", "", ["v1"]),
        ("load --data ", "peo", ["people/"]),
    ],
)
def test_input_is_completed(completer: InputCompleter, before: str, word: str, matches: list[str]) -> None:
    assert completer.complete(before, word) == matches
