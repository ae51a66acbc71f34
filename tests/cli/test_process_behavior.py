"""The program as a process: signals, pipes, closed streams, shells."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig.timeouts import PATIENCE

PROGRAM = (sys.executable, "-m", "omnigraph.cli.main")
QUIET = {"NO_COLOR", "CLICOLOR_FORCE", "OMNIGRAPH_JSON_ERRORS", "OMNIGRAPH_EXIT_CODES"}


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in QUIET} | more


def start(
    *words: str | Path, stdin: bytes = b"", stdout: int = subprocess.PIPE, **more: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *map(str, words)],
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=environment(**more),
        timeout=PATIENCE,
        check=False,
    )


def test_the_installed_program_is_the_module() -> None:
    installed = Path(sys.executable).parent / "omnigraph"
    if not installed.exists():
        pytest.skip("the package is not installed beside this Python")
    ended = subprocess.run([installed, "version"], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert re.match(rb"omnigraph \d+\.\d+\.\d+\n", ended.stdout)
    assert ended.stdout == start("version").stdout


@pytest.mark.parametrize("words", ["--help", "schema diff {0}/schema.pg {0}/schema-next.pg"])
def test_closed_output_pipe_ends_quietly(library: Path, words: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = start(*words.format(library).split(), stdout=writer)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_pipe_closed_after_one_line_ends_quietly(library: Path) -> None:
    words = f"describe --plan --json --schema {library}/schema.pg --query {library}/queries.gq"
    command = " ".join([*PROGRAM, words])
    ended = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, env=environment(), check=False)
    assert (ended.stdout, ended.stderr) == (b"{\n", b"")


def test_interrupt_prints_no_traceback() -> None:
    process = subprocess.Popen(
        [*PROGRAM, "fmt", "-", "--language", "pg"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin is not None
    try:
        # More than a pipe holds: this returns only when the program has begun to read.
        process.stdin.write(b"// waiting\n" * 10_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, b"")
    assert err.strip() == b"interrupted; no partial changes were left behind"


def test_closed_standard_streams_are_tolerated() -> None:
    for redirection, code, said in ((">&-", 0, b""), ("<&-", 1, b"error: cannot read <stdin>: Bad file descriptor\n")):
        ended = subprocess.run(
            f"{' '.join(PROGRAM)} {'version' if code == 0 else 'schema check -'} {redirection}",
            shell=True,
            capture_output=True,
            env=environment(),
            check=False,
        )
        assert (ended.returncode, ended.stderr[: len(said)]) == (code, said)
        assert b"Traceback" not in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_unwritable_output_is_reported() -> None:
    with Path("/dev/full").open("wb") as full:
        ended = start("version", stdout=full.fileno())
        assert ended.returncode == 1
        assert ended.stderr.startswith(b"error: cannot write the result: No space left on device")
        again = start("--json-errors", "version", stdout=full.fileno())
        assert (again.returncode, again.stderr) == (1, ended.stderr)


def test_ascii_output_escapes_unicode(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode("größe\xff.pg".encode("latin-1"))
    path.write_text("node A { a: String @default(🎉) }", "utf-8")
    ended = start("schema", "check", path, PYTHONIOENCODING="ascii:strict")
    assert ended.returncode == 1
    assert rb"gr\udcf6\udcdfe\udcff.pg:1:29: error: " in ended.stdout
    assert ended.stdout.endswith(b"pg: 1 error\n")
    told = start("schema", "check", path, "--json", PYTHONIOENCODING="ascii:strict")
    assert rb"\ud83c\udf89" in told.stdout


def test_file_names_that_are_not_utf8_are_handled(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"lamp\xff.pg")
    path.write_text("node Lamp {}")
    ended = start("schema", "check", path, PYTHONIOENCODING="utf-8:strict")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert rb"/lamp\udcff.pg: ok" in ended.stdout
    told = start("schema", "check", path, "--json", PYTHONIOENCODING="utf-8:strict")
    assert json.loads(told.stdout)["files"][0]["path"] == str(path)


# Completion -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid_shell(shell: str) -> None:
    ended = start("completion", shell)
    assert ended.returncode == 0
    assert b"_OMNIGRAPH_COMPLETE" in ended.stdout
    assert b"complete" in ended.stdout
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=ended.stdout, capture_output=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, b"")


def completed(line: str) -> list[str]:
    words = line.split(" ")
    ended = start(_OMNIGRAPH_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    assert (ended.returncode, ended.stderr) == (0, b"")
    return [one.partition(",")[2] for one in ended.stdout.decode().split()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("omnigraph sch", ["schema"]),
        ("omnigraph schema ", ["apply", "check", "diff", "infer", "plan", "show"]),
        ("omnigraph --json lint --sc", ["--schema"]),
        ("omnigraph completion f", ["fish"]),
        ("omnigraph --color a", ["auto", "always"]),
        ("omnigraph misspelt che", ["cherry-pick", "check"]),  # as if it were not there
        ("omnigraph misspelt --n", []),
    ],
)
def test_completion_offers_matching_options(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_bash_completes_commands(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    (tmp_path / "omnigraph").write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    (tmp_path / "omnigraph").chmod(0o755)
    script = """
        eval "$(omnigraph completion bash)"
        COMP_WORDS=(omnigraph schema d) COMP_CWORD=2
        _omnigraph_completion omnigraph
        echo "${COMPREPLY[@]}"
    """
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run([bash, "--norc", "-c", script], capture_output=True, env=environment(PATH=path), check=False)
    assert (ended.stdout, ended.stderr) == (b"diff\n", b"")
