"""The commands of the project work as documented: demo, start-up check, helper scripts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import peers, reference, startup, table
from bench.peers_data import Inputs


@pytest.mark.timeout(600)  # it starts thirty programs
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.full)])
def test_the_demo_shows_everything_and_is_plain_off_a_terminal(checkout: Path, engine: str) -> None:
    environ = os.environ | {"BIN": str(Path(sys.executable).parent), "ENGINE": engine}
    shown = subprocess.run(
        ["bash", checkout / "scripts" / "demo.sh"], env=environ, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for part in (
        "1. Write a schema",
        "supported: ",
        "error[T",
        "^^^",
        "exited with code 0",
        "Not built yet",
        "The demo took",
    ):
        assert part in shown.stdout
    assert "\x1b" not in shown.stdout


def test_start_up_bench_shows_the_imports_of_a_command() -> None:
    parts = startup.measure_parts(startup.commands("")["lint"], rounds=1)
    assert {"import click", "parse and check"} <= parts.keys()
    assert startup.unneeded_libraries("lint", parts) == []
    assert startup.unneeded_libraries("log", parts | {"import lance": 0.2}) == ["lance"]


def test_bench_table_shows_the_recorded_figures_of_the_reference() -> None:
    titles = {f"command line: {command}" for command in table.COMMANDS} | set(table.WRITE_TITLES.values())
    titles |= peers.questions(None, Inputs(["a"], "a", ["a"], "a")).keys() | table.OTHER_TITLES
    assert reference.reference_milliseconds().keys() <= titles
    row = ("update of one node", {table.OURS: 9.54, table.LANCE: 1234.5})
    assert table.format_row(row) == "| update of one node | **9.5** | 339 |  |  | 1,234 |  |"
    assert table.format_row(("unknown", {table.SPARK: 0.0618})) == "| unknown |  |  |  |  |  | 0.06 |"


def test_help_lists_every_target(checkout: Path) -> None:
    listed = subprocess.check_output(["make", "-s"], cwd=checkout, text=True)
    targets = [line.split()[0] for line in listed.splitlines()]
    wanted = "setup demo test test-full check bench bench-startup docs dist tables clean".split()
    assert set(wanted) <= set(targets)


@pytest.mark.parametrize("script", [".ci/run", "scripts/demo.sh", "scripts/find_python.sh"])
def test_shell_scripts_have_no_syntax_errors(checkout: Path, script: str) -> None:
    subprocess.run(["bash", "-n", checkout / script], check=True)


def test_a_missing_python_is_explained(checkout: Path) -> None:
    finder = checkout / "scripts" / "find_python.sh"
    answer = subprocess.run(["/bin/sh", finder], env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert "Python 3.11 or newer" in answer.stderr


def test_chosen_python_is_used(checkout: Path) -> None:
    finder = checkout / "scripts" / "find_python.sh"
    environ = {"PATH": "", "PYTHON": sys.executable}
    assert subprocess.check_output(["/bin/sh", finder], env=environ, text=True) == (f"{sys.executable}\n")


@pytest.mark.parametrize("target", ["demo", "test", "test-full"])
def test_command_ensures_java_is_available(checkout: Path, target: str) -> None:
    """A newcomer runs it first: nothing but Python and make need be there."""
    done = subprocess.run(["make", "--dry-run", target], cwd=checkout, capture_output=True, text=True, check=True)
    steps = done.stdout.splitlines()
    java = next(at for at, one in enumerate(steps) if "scripts/java.py" in one)
    assert java < len(steps) - 1, "before the command itself"
