"""Measure how long commands take in a new process, compared with `python -c pass` and `import lance`.

Prints the parts of each command's time, together with the recorded figures of the reference. The exit code is 1 only if
a command loads a library that it does not need, because imports, unlike times, do not depend on the machine.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.reference import reference_milliseconds

LIBRARY = Path(__file__).parent.parent / "examples" / "library"
SCHEMA, QUERIES = LIBRARY / "schema.pg", LIBRARY / "queries.gq"
PARTS_PROGRAM = Path(__file__).parent / "startup_parts.py"
ROUNDS = 15
TABLE_LIBRARIES = frozenset({"lance", "pyarrow", "numpy"})
NEVER_NEEDED = frozenset({"pyspark", "pandas", "polars", "obstore"})
QUESTION = "match { $p: Paper $p.year > 2000 } return { count($p) as n }"

PASS = (sys.executable, "-c", "pass")
IMPORT_LANCE = (sys.executable, "-c", "import lance")
OMNIGRAPH = (sys.executable, "-m", "omnigraph")
# Byte code must be cached, as in an installed package.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def commands(root: str, url: str | None = None) -> dict[str, tuple[str, ...]]:
    """Return the measured commands, which use a graph with the example data and optionally the URL of a server."""
    insert = 'insert Institution { code: "s%d", name: "Start-up %d", kind: "company", country: "NO" }'
    on_server = {} if url is None else {"query against a server": ("query", "--store", url, "-e", QUESTION)}
    return {
        "query": ("query", "--store", root, "-e", QUESTION),
        **on_server,
        "insert": ("mutate", "--store", root, "-e", insert),
        "branch list": ("branch", "list", root),
        "log": ("log", root),
        "tag list": ("tag", "list", root),
        "commit list": ("commit", "list", root),
        "commit show": ("commit", "show", "HEAD", "--uri", root),
        "schema show": ("schema", "show", root),
        "snapshot": ("snapshot", root),
        "lint": ("lint", "--schema", str(SCHEMA), "--query", str(QUERIES)),
        "version": ("version",),
        "--help": ("--help",),
    }


NEEDS_TABLES = ("query", "insert")
_insert_number = 0


def numbered(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a unique number, so that each insert has its own key."""
    global _insert_number  # noqa: PLW0603
    _insert_number += 1
    return [argument.replace("%d", str(_insert_number)) for argument in arguments]


def measure_seconds(command: Sequence[str]) -> float:
    """Run a command, and return the elapsed seconds."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    return time.perf_counter() - start


def measure_rounds(arguments: Mapping[str, Sequence[str]], rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median time of each command and of the two baselines, which alternate to run under the same load."""
    seconds: dict[str, list[float]] = {name: [] for name in ("pass", "import lance", *arguments)}
    for round_number in range(rounds + 1):
        for name, times in seconds.items():
            yardstick = {"pass": PASS, "import lance": IMPORT_LANCE}.get(name)
            command = yardstick or (*OMNIGRAPH, *numbered(arguments[name]))
            elapsed = measure_seconds(command)
            if round_number:  # the first round also writes byte code
                times.append(elapsed)
    return {name: statistics.median(times) for name, times in seconds.items()}


def measure_parts(arguments: Sequence[str], rounds: int = 5) -> dict[str, float]:
    """Return the median time of each part of a command."""
    runs = []
    for _ in range(rounds):
        program = (sys.executable, str(PARTS_PROGRAM), *numbered(arguments))
        finished = subprocess.run(program, check=True, capture_output=True, text=True, env=ENVIRONMENT)
        runs.append(json.loads(finished.stderr.splitlines()[-1]))
    return {name: statistics.median(run.get(name, 0.0) for run in runs) for name in runs[0]}


def build_graph(folder: str) -> str:
    """Create a graph with the example data, and return its location."""
    root = f"{folder}/g"
    data = ("--data", str(LIBRARY / "data"), "--mode", "append", "--engine", "local")
    for arguments in (("init", root, "--schema", str(SCHEMA)), ("load", root, *data)):
        subprocess.run((*OMNIGRAPH, "--quiet", *arguments), check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    return root


@contextmanager
def serving(root: str) -> Iterator[str]:
    """Serve a graph, and yield its URL."""
    arguments = ("serve", root, "--unauthenticated", "--bind", "127.0.0.1:0")
    server = subprocess.Popen(
        (*OMNIGRAPH, *arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    )
    try:
        assert server.stdout is not None  # noqa: S101 - it is a pipe
        yield f"http://{server.stdout.readline().strip().removeprefix('OMNIGRAPH_LISTEN_ADDR=')}/graphs/default"
    finally:
        server.terminate()
        server.communicate()


def print_command(name: str, medians: Mapping[str, float], parts: Mapping[str, float]) -> None:
    """Print a command with its time, the ratios to the baselines, and the parts of the time."""
    seconds = medians[name]
    to_pass, to_lance = seconds / medians["pass"], seconds / medians["import lance"]
    multiples = f"{to_pass:5.1f} times `pass`, {to_lance:4.2f} times `import lance`"
    recorded = reference_milliseconds().get(f"command line: {name}")
    reference = f"; reference {recorded} ms (recorded)" if recorded else ""
    print(f"omnigraph {name}: {seconds * 1e3:.0f} ms, {multiples}{reference}")
    print(f"  {medians['pass'] * 1e3:6.1f} ms interpreter")
    for part, part_seconds in sorted(parts.items(), key=lambda item: -item[1]):
        if part_seconds >= 0.0005:
            print(f"  {part_seconds * 1e3:6.1f} ms {part}")


def unneeded_libraries(name: str, parts: Mapping[str, float]) -> list[str]:
    """Return the libraries that a command loaded but does not need."""
    loaded = {part.removeprefix("import ") for part in parts if part.startswith("import ")}
    unneeded = NEVER_NEEDED if name in NEEDS_TABLES else NEVER_NEEDED | TABLE_LIBRARIES
    return sorted(loaded & unneeded)


def main() -> int:
    """Print the report; return 1 if a command loaded a library that it does not need."""
    with tempfile.TemporaryDirectory() as folder:
        root = build_graph(folder)
        with serving(root) as url:
            measured = commands(root, url)
            medians = measure_rounds(measured)
            parts = {name: measure_parts(arguments) for name, arguments in measured.items()}
    print(f"medians of {ROUNDS} runs; python -c pass {medians['pass'] * 1e3:.1f} ms,", end=" ")
    print(f"python -c 'import lance' {medians['import lance'] * 1e3:.0f} ms")
    for name in measured:
        print_command(name, medians, parts[name])
    problems = {name: found for name in measured if (found := unneeded_libraries(name, parts[name]))}
    for name, found in problems.items():
        print(f"omnigraph {name} loads libraries that it does not need: {', '.join(found)}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
