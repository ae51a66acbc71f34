"""Signals to the program: it ends at once and in order, with no lock and no temporary file."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omnigraph import graph as graphs
from omnigraph.cli import exits
from tests.rig.invariants import check_invariants, unfinished
from tests.rig.writes import append, init_small, line_at, write

CODES = {signal.SIGTERM: exits.TERMINATED, signal.SIGINT: exits.INTERRUPTED}
WORDS = {signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}
# Says when the work has begun; every durable effect then takes a moment.
SLOW = """
import sys, time
from omnigraph.storage import effects
real = effects.Effects.run
def slow(self, kind, target, action):
    print(kind, target, file=sys.stderr, flush=True)
    def late():
        time.sleep(0.02)
        return action()
    return real(self, kind, target, late)
effects.Effects.run = slow
from omnigraph.cli.main import main
main()
"""


def told_to_end(words: list[str], number: int, effects: int) -> tuple[int, str]:
    """Run the program, and send it a signal when so many effects have begun."""
    command = [sys.executable, "-c", SLOW, *words]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stderr is not None
        lines: list[str] = []
        while len([one for one in lines if " (direct" not in one]) < effects:
            lines.append(program.stderr.readline())
            assert lines[-1]
        program.send_signal(number)
        said = program.stderr.read()
        return program.wait(60), said


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "graph")
    line = line_at(tmp_path / "graph")
    for n in range(4):
        write(line, append({f"p{n}": n}))
    return tmp_path / "graph"


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("effects", [1, 3, 9])
def test_a_copy_that_is_told_to_end(
    root: Path, tmp_path: Path, number: signal.Signals, effects: int
) -> None:
    target = tmp_path / "copy"
    code, said = told_to_end(["copy", str(root), str(target)], number, effects)
    assert code == CODES[number], said
    assert f"{WORDS[number]}; nothing was left half-written" in said
    assert "Traceback" not in said
    assert unfinished(target) == []
    assert unfinished(root) == []
    check_invariants(root)


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("effects", [1, 2, 3, 5])
def test_a_branch_creation_that_is_told_to_end(
    root: Path, number: signal.Signals, effects: int
) -> None:
    words = ["branch", "create", "b", "--store", str(root)]
    code, said = told_to_end(words, number, effects)
    assert code == CODES[number], said
    assert unfinished(root) == []
    graph = graphs.open(root, durability="os")
    assert graph.branches.names() in (["main"], ["b", "main"])
    assert write(graph._line, append({"next": 1})) is not None


def test_a_second_request_ends_the_program_at_once(root: Path, tmp_path: Path) -> None:
    stuck = SLOW.replace("time.sleep(0.02)", "hang()").replace(
        "import sys, time",
        "import sys, time\ndef hang():\n    try:\n        time.sleep(60)\n    finally:\n"
        "        print('hanging', file=sys.stderr, flush=True)\n        time.sleep(60)",
    )
    command = [sys.executable, "-c", stuck, "copy", str(root), str(tmp_path / "copy")]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stderr is not None
        while not program.stderr.readline().startswith("object"):
            pass
        time.sleep(0.1)
        program.terminate()
        while "hanging" not in program.stderr.readline():
            pass
        program.terminate()
        assert program.wait(30) == -signal.SIGTERM


def test_a_program_that_is_to_ignore_the_signal_does_so(tmp_path: Path) -> None:
    code = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "from omnigraph.cli import main as m; m.run = lambda _: 0\n"
        "try: m.main([])\n"
        "except SystemExit: print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_inside_another_program_nothing_is_installed() -> None:
    from omnigraph.cli.main import run

    before = signal.getsignal(signal.SIGTERM)
    run(["version"])
    assert signal.getsignal(signal.SIGTERM) == before
