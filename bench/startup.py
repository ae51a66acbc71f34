"""How long `omnigraph lint` and a cold `omnigraph query` take, as multiples of Python's own start.

Prints the multiples, where the time goes, and the third-party packages that were loaded. Fails only
when a package is loaded that the command does not need: time depends on the machine, imports do
not.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

LIBRARY = Path(__file__).parent.parent / "examples" / "library"
SCHEMA, QUERIES = LIBRARY / "schema.pg", LIBRARY / "queries.gq"
LINT = ("lint", "--schema", str(SCHEMA), "--query", str(QUERIES))
ROUNDS = 15
TOO_HEAVY = {"lance", "pyarrow", "pyspark", "pandas", "polars", "numpy"}

PYTHON = (sys.executable, "-c", "pass")
COMMAND = (sys.executable, "-m", "omnigraph.cli.main", *LINT)

# Each runs in a process of its own, so that nothing is loaded before its turn.
PARTS = """
import json, sys, time
from pathlib import Path
schema, queries = Path(sys.argv[1]), Path(sys.argv[2])
parts, start = {}, time.perf_counter()
def lap(name):
    global start
    parts[name] = time.perf_counter() - start
    start = time.perf_counter()
import click
lap("import click")
import lark
lap("import lark")
from omnigraph.lang.saved_parsers import load_parser
load_parser("schema"), load_parser("query")
lap("load the parser tables")
from omnigraph.errors.diagnostics import SourceText
from omnigraph.lang.schema.check import check
from omnigraph.lang.schema.parse import parse
from omnigraph.lang.query.compile import diagnose_query
from omnigraph.lang.query.parse import read_queries
lap("import the languages")
schema_tree = parse(SourceText(schema.name, schema.read_text()))
source = SourceText(queries.name, queries.read_text())
query_tree, _ = read_queries(source)
lap("parse")
catalog, _ = check(schema_tree)
for query in query_tree.queries:
    diagnose_query(query, catalog, source)
lap("check")
print(json.dumps(parts))
"""

LOADED = """
import sys, sysconfig
before = set(sys.modules)
from omnigraph.cli.main import run
run(sys.argv[1:])
libraries = sysconfig.get_paths()["purelib"]
after = {name: sys.modules[name] for name in set(sys.modules) - before}
files = {name: getattr(module, "__file__", None) or "" for name, module in after.items()}
print(*sorted({n.split(".")[0] for n, file in files.items() if file.startswith(libraries)}),
      file=sys.stderr)
"""


def seconds(command: Sequence[str]) -> float:
    """The wall-clock time of one run."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(command: Sequence[str]) -> tuple[float, float]:
    """The medians of Python alone and of a command, in turns so that both meet the same load."""
    seconds(command)  # the first run also writes byte code
    rounds = [(seconds(PYTHON), seconds(command)) for _ in range(ROUNDS)]
    alone, whole = zip(*rounds, strict=True)
    return statistics.median(alone), statistics.median(whole)


def measure_parts() -> dict[str, float]:
    """The median time of each part of the command, in a process without the others' help."""
    command = (sys.executable, "-c", PARTS, str(SCHEMA), str(QUERIES))
    runs = [json.loads(subprocess.check_output(command)) for _ in range(ROUNDS)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def query_command(folder: str) -> tuple[str, ...]:
    """A query of the example in a process of its own, on a graph made for it."""
    run = (sys.executable, "-m", "omnigraph.cli.main")
    data = ("--data", str(LIBRARY / "data"), "--mode", "append", "--engine", "local")
    subprocess.run((*run, "--quiet", "init", folder, "--schema", str(SCHEMA)), check=True)
    subprocess.run((*run, "--quiet", "load", folder, *data), check=True)
    asked = "match { $p: Paper $p.year > 2000 } return { count($p) as n }"
    return (*run, "query", "--store", folder, "-e", asked)


def loaded_packages() -> list[str]:
    """The third-party packages in memory after the command has run."""
    command = (sys.executable, "-c", LOADED, *LINT)
    return subprocess.run(command, check=True, capture_output=True, text=True).stderr.split()


def main() -> int:
    """Print the report; gives 1 when something heavy was loaded."""
    with tempfile.TemporaryDirectory() as folder:
        alone, whole = compare(query_command(f"{folder}/g"))
    print(f"omnigraph query: {whole / alone:.1f} times the start of Python")
    print(f"  {whole * 1e3:6.1f} ms in all, median of {ROUNDS} runs")
    alone, whole = compare(COMMAND)
    print(f"omnigraph lint: {whole / alone:.1f} times the start of Python")
    print(f"  {whole * 1e3:6.1f} ms in all, median of {ROUNDS} runs")
    print(f"  {alone * 1e3:6.1f} ms python -c pass")
    for name, part in measure_parts().items():
        print(f"  {part * 1e3:6.1f} ms {name}")
    packages = loaded_packages()
    print(f"third-party packages loaded: {', '.join(packages) or 'none'}")
    heavy = sorted(TOO_HEAVY & set(packages))
    if heavy:
        print(f"not needed for this command: {', '.join(heavy)}", file=sys.stderr)
    return 1 if heavy else 0


if __name__ == "__main__":
    sys.exit(main())
