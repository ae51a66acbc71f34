"""Runs the program in the test process and captures exit code, stdout and stderr."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from omnigraph.cli.main import run

AMBIENT = (
    "OMNIGRAPH_STORE",
    "OMNIGRAPH_PROFILE",
    "OMNIGRAPH_ACTOR",
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "OMNIGRAPH_JSON_ERRORS",
    "OMNIGRAPH_EXIT_CODES",
)


@dataclass(frozen=True)
class Outcome:
    """How a run of the program ended."""

    code: int
    out: str
    err: str


Program = Callable[..., Outcome]


@pytest.fixture
def omnigraph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    """The program, in an empty directory and with nothing said by the environment."""
    monkeypatch.chdir(tmp_path)
    for name in AMBIENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "no-operator-home"))

    def call(*arguments: str | Path, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run([str(one) for one in arguments])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return call


@pytest.fixture
def library(checkout: Path) -> Path:
    """The example library."""
    return checkout / "examples" / "library"
