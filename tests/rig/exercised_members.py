"""Read from their source which members of a graph the tests use that run on both hosts.

A test runs on both hosts if it uses the fixture `graphs`, perhaps by other fixtures, and `EMBEDDED_ONLY` does not name
it. What it uses is in its body, and in the functions and values of its module that it names.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.rig.embedded_only import TESTS, find_reason

FACETS = ("branches", "tags", "revisions", "schema", "changes", "maintenance", "operations", "queries", "spark")
FOLDERS = ("api", "merging")
_HOST_FIXTURE = "graphs"
_Definitions = dict[str, ast.AST]


def exercised_members() -> set[str]:
    """Return members such as `query` and `branches.create`."""
    return {
        member for folder in FOLDERS for file in (TESTS / folder).rglob("test_*.py") for member in _members_in(file)
    }


def members_used_in(file: Path) -> set[str]:
    """Return the members that any test in a file uses."""
    definitions = _definitions(file)
    return {member for name in names_of_tests(file) for member in _used_members(definitions, name)}


def names_of_tests(file: Path) -> set[str]:
    """Return the names of the tests in a file."""
    return {name for name in _definitions(file) if name.startswith("test_")}


def _members_in(file: Path) -> Iterator[str]:
    definitions = _definitions(file)
    for name in names_of_tests(file):
        runs_on_hosts = any(_uses_hosts(file, fixture) for fixture in _arguments(definitions[name]))
        if runs_on_hosts and find_reason(file, name) is None:
            yield from _used_members(definitions, name)


def _uses_hosts(file: Path, fixture: str, seen: frozenset[str] = frozenset()) -> bool:
    if fixture == _HOST_FIXTURE:
        return True
    definition = _fixtures(file).get(fixture)
    if definition is None or fixture in seen:
        return False
    return any(_uses_hosts(file, argument, seen | {fixture}) for argument in _arguments(definition))


def _arguments(definition: ast.AST) -> list[str]:
    return [argument.arg for argument in definition.args.args] if isinstance(definition, ast.FunctionDef) else []


@cache
def _fixtures(file: Path) -> _Definitions:
    """Return the fixtures of a file, and those of the `conftest.py` files above it."""
    folders = [folder for folder in reversed(file.parents) if folder.is_relative_to(TESTS)]
    files = [folder / "conftest.py" for folder in folders if (folder / "conftest.py").exists()]
    return {
        name: definition
        for source in (*files, file)
        for name, definition in _definitions(source).items()
        if isinstance(definition, ast.FunctionDef)
        and any("fixture" in ast.dump(one) for one in definition.decorator_list)
    }


@cache
def _definitions(file: Path) -> _Definitions:
    """Return the functions, classes and values that a module defines at its top level."""
    found: _Definitions = {}
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: node for target in targets if isinstance(target, ast.Name)}
    return found


def _used_members(definitions: _Definitions, name: str) -> Iterator[str]:
    pending, seen = [name], {name}
    while pending:
        for node in ast.walk(definitions[pending.pop()]):
            if isinstance(node, ast.Name) and node.id in definitions and node.id not in seen:
                seen.add(node.id)
                pending.append(node.id)
            elif isinstance(node, ast.Attribute):
                yield _member(node)


def _member(node: ast.Attribute) -> str:
    owner = node.value.attr if isinstance(node.value, ast.Attribute) else ""
    return f"{owner}.{node.attr}" if owner in FACETS else node.attr
