"""Run a command in this process, and print the parts of its time as JSON to standard error.

The time of imports is counted by library. The other parts are the functions in `PHASES`, without the imports that they
run. `bench.startup` starts this module in a separate process.
"""

import json
import sys
import time

STARTED = time.perf_counter()

import importlib._bootstrap as bootstrap  # noqa: E402 - the clock must start before the imports
from collections import defaultdict  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

LIBRARIES = ("omnigraph", "lance", "pyarrow", "numpy", "click")
# The functions whose time is measured, by module: the attribute path and the name of the part.
PHASES = {
    "omnigraph.api.opening": ("open_handle", "open"),
    "omnigraph.api.queries": ("_compile_read", "parse and check"),
    "omnigraph.api.schema": ("Schema.source", "read the schema"),
    "omnigraph.lang.schema.parse": ("parse", "parse and check"),
    "omnigraph.lang.query.parse": ("read_queries", "parse and check"),
    "omnigraph.engine.run_query": ("run_read", "run"),
    "omnigraph.api.results.result": ("Result.render", "render"),
}

parts: defaultdict[str, float] = defaultdict(float)
_nested = [0.0]  # the time of parts that ran inside each running part
_load: Callable[..., Any] = bootstrap._find_and_load_unlocked  # type: ignore[attr-defined]


def _measure(part: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function and add its own time to a part, without the parts that run inside it."""
    started_at = time.perf_counter()
    _nested.append(0.0)
    try:
        return function(*args, **options)
    finally:
        elapsed = time.perf_counter() - started_at
        parts[part] += elapsed - _nested.pop()
        _nested[-1] += elapsed


def _load_module(name: str, import_function: Any) -> Any:
    library = name.partition(".")[0]
    part = f"import {library}" if library in LIBRARIES else "import the standard library"
    module = _measure(part, _load, name, import_function)
    if name in PHASES:
        _wrap_phase(sys.modules[name], *PHASES[name])
    return module


def _wrap_phase(module: Any, attribute_path: str, part: str) -> None:
    *owners, attribute = attribute_path.split(".")
    owner = getattr(module, owners[0]) if owners else module
    function = vars(owner)[attribute]
    if isinstance(function, property):
        getter: Any = function.fget
        setattr(owner, attribute, property(lambda self: _measure(part, getter, self)))
    else:
        setattr(owner, attribute, lambda *args, **options: _measure(part, function, *args, **options))


def main() -> None:
    """Run the command, then print the parts of its time."""
    bootstrap._find_and_load_unlocked = _load_module  # type: ignore[attr-defined]
    from omnigraph.cli.main import run

    code = run(sys.argv[1:])
    elapsed = time.perf_counter() - STARTED
    parts["other work of the command"] = elapsed - sum(parts.values())
    print(json.dumps(parts), file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
