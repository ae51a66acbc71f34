"""House rules that no standard linter checks, as functions from source text to violations."""

import ast
from collections.abc import Iterator
from pathlib import Path

LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "base", "misc", "core"}

# Sources of time and chance. Only omnigraph/ids may use them: everything else is a function of
# what it is given, so that a run can be repeated.
IMPURE_MODULES = {"uuid", "random", "secrets"}
IMPURE_CALLS = {
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "time.time",
    "time.time_ns",
    "os.urandom",
    "os.getrandom",
}


def impurities(source: str) -> list[str]:
    """Each use of the clock or of chance in a source text, as `line: what`.

    >>> impurities("import time as t\\nfrom os import urandom\\nt.time()")
    ['2: os.urandom', '3: time.time']
    """
    tree = ast.parse(source)
    renamed = _renamed_modules(tree)
    found = [(line, name) for line, name in _uses(tree, renamed) if _is_impure(name)]
    return [f"{line}: {name}" for line, name in sorted(found)]


def _renamed_modules(tree: ast.AST) -> dict[str, str]:
    """The names that stand for a module or a class of it: `import time as t`, `from x import y`."""
    renamed: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            renamed |= {a.asname: a.name for a in node.names if a.asname}
        elif isinstance(node, ast.ImportFrom):
            renamed |= {a.asname: f"{node.module}.{a.name}" for a in node.names if a.asname}
    return renamed


def _uses(tree: ast.AST, renamed: dict[str, str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute):
            head, _, rest = ast.unparse(node).partition(".")
            yield node.lineno, f"{renamed.get(head, head)}.{rest}"


def _is_impure(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in IMPURE_MODULES or ".".join(parts[-2:]) in IMPURE_CALLS


def breaches_of_form(path: Path, source: str) -> list[str]:
    """What is wrong with the name, the docstring and the size of a module."""
    tree = ast.parse(source)
    found = []
    if VAGUE_NAMES & {path.stem, path.parent.name}:
        found.append("the name says nothing about the job")
    if source.strip() and not ast.get_docstring(tree):
        found.append("no module docstring")
    if (lines := source.count("\n")) > LONGEST_MODULE:
        found.append(f"{lines} lines, more than {LONGEST_MODULE}")
    return found + [_too_long(node) for node in ast.walk(tree) if _too_long(node)]


def _too_long(node: ast.AST) -> str:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    return f"{node.name} has {lines} lines" if lines > LONGEST_FUNCTION else ""
