"""Signals end the program at once, without locks or temporary files left behind."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omnigraph.api import opening as graphs
from omnigraph.cli import exits
from tests.rig.invariants import check_invariants, unfinished
from tests.rig.timeouts import PATIENCE
from tests.rig.writes import append, init_small, line_at, write

CODES = {signal.SIGTERM: exits.TERMINATED, signal.SIGINT: exits.INTERRUPTED}
WORDS = {signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}
# From the effect with a given number on, each effect first tells that it begins and then waits for
# the signal, so that the signal always meets a running command. Bytes appear on `arrival` when the
# signal arrives, in whichever thread the effect runs.
GATED = """
import os, select, signal, sys
from omnigraph.storage import effects
first = int(sys.argv.pop(1))
arrival, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
real, begun = effects.Effects.run, []
def gated(self, kind, target, action):
    begun.append(target)
    if len(begun) >= first:
        print("waiting", kind, target, file=sys.stderr, flush=True)
        select.select([arrival], [], [])
    return real(self, kind, target, action)
effects.Effects.run = gated
from omnigraph.cli.main import main
main()
"""


def told_to_end(words: list[str], number: int, effects: int) -> tuple[int, str]:
    """Run the program, and send it a signal while the effect with this number waits for it."""
    command = [sys.executable, "-c", GATED, str(effects), *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
        _read_until(program, "waiting")
        program.send_signal(number)
        assert program.stderr is not None
        said = program.stderr.read()
        return program.wait(PATIENCE), said


def _read_until(program: subprocess.Popen[str], word: str) -> None:
    """Read lines of standard error up to the one that begins with a word."""
    assert program.stderr is not None
    lines = [program.stderr.readline()]
    while not lines[-1].startswith(word):
        assert lines[-1], f"the program ended: {lines}"
        lines.append(program.stderr.readline())


def at_effects(*quick: str, of: tuple[int, ...]) -> list[Any]:
    """Each signal at each of these effects; all but the quick ones run with `make test-full`."""
    return [
        pytest.param(number, effects, id=name, marks=() if name in quick else pytest.mark.full)
        for effects in of
        for number in CODES
        for name in [f"{number.name.removeprefix('SIG')} {effects}"]
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "graph")
    line = line_at(tmp_path / "graph")
    for n in range(4):
        write(line, append({f"p{n}": n}))
    return tmp_path / "graph"


@pytest.mark.parametrize(("number", "effects"), at_effects("TERM 1", "TERM 9", "INT 3", of=(1, 3, 9)))
def test_terminated_copy_leaves_no_lock(root: Path, tmp_path: Path, number: signal.Signals, effects: int) -> None:
    target = tmp_path / "copy"
    code, said = told_to_end(["copy", str(root), str(target)], number, effects)
    assert code == CODES[number], said
    assert f"{WORDS[number]}; no partial changes were left behind" in said
    assert "Traceback" not in said
    assert unfinished(target) == []
    assert unfinished(root) == []
    check_invariants(root)


@pytest.mark.parametrize(("number", "effects"), at_effects("TERM 1", "INT 2", "TERM 5", of=(1, 2, 3, 5)))
def test_terminated_branch_creation_leaves_no_lock(root: Path, number: signal.Signals, effects: int) -> None:
    words = ["branch", "create", "b", "--store", str(root)]
    code, said = told_to_end(words, number, effects)
    assert code == CODES[number], said
    assert unfinished(root) == []
    graph = graphs.open(root, durability="os")
    assert graph.branches.names() in (["main"], ["b", "main"])
    assert write(graph._handle.branch_state, append({"next": 1})) is not None


HANGING = """
import sys, time
from omnigraph.storage import effects
def hang(*_):
    try:
        print("working", file=sys.stderr, flush=True)
        time.sleep(600)
    finally:
        print("hanging", file=sys.stderr, flush=True)
        time.sleep(600)
effects.Effects.run = hang
from omnigraph.cli.main import main
main()
"""


def test_second_signal_ends_the_program_at_once(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HANGING, "copy", str(root), str(tmp_path / "copy")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
        _read_until(program, "working")
        program.terminate()
        _read_until(program, "hanging")
        program.terminate()
        assert program.wait(PATIENCE) == -signal.SIGTERM


# Sends itself a signal in a part of the program's end.
LATE = """
import atexit, os, signal, sys, threading
from omnigraph.cli import main as program
def send(*_):
    os.kill(os.getpid(), int(sys.argv[1]))
if sys.argv[2] == "log":
    program.stop_log = send
elif sys.argv[2] == "exit":
    atexit.register(send)
elif sys.argv[2] == "return":
    real = program.run
    program.run = lambda words: (real(words), send())[0]
program.main(["version"])
"""


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("moment", ["log", "return", "exit"])
def test_signal_during_exit_is_ignored(number: signal.Signals, moment: str) -> None:
    """The command is done: the program reports the signal in its exit code, in plain words."""
    command = [sys.executable, "-c", LATE, str(int(number)), moment]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode in (CODES[number], -number)
    assert ended.stderr in ("", f"{WORDS[number]}; no partial changes were left behind\n")


def test_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    code = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "from omnigraph.cli import main as m; m.run = lambda _: 0\n"
        "try: m.main([])\n"
        "except SystemExit: print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_embedded_use_installs_no_signal_handlers() -> None:
    from omnigraph.cli.main import run

    before = signal.getsignal(signal.SIGTERM)
    run(["version"])
    assert signal.getsignal(signal.SIGTERM) == before
