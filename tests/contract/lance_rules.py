"""Forbidden Lance calls, as a function from source text to violations.

Lance's own commits, cleanups and rewrites do not see detached versions, and they move HEADs that
must never move. What is not staged and published by us must not happen at all.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

# Names that only Lance has: forbidden wherever they stand, called or not.
LANCE_ONLY = {
    "cleanup_old_versions",
    "compact_files",
    "optimize_indices",
    "merge_insert",
    "write_dataset",
    "create_index",
    "create_scalar_index",
    "drop_index",
    "add_columns",
    "alter_columns",
    "truncate_table",
    "update_config",
    "delete_config_keys",
    "update_metadata",
    "update_schema_metadata",
    "update_field_metadata",
    "replace_field_metadata",
    "commit_batch",
    "shallow_clone",
    "deep_clone",
    "migrate_manifest_paths_v2",
    "remove_orphans",
    "execute_uncommitted",
}
# Names that Arrow, Python or we have too: forbidden in the package that holds datasets, and
# elsewhere on what is called a dataset.
SHARED = {
    *("delete", "update", "insert", "restore", "drop", "drop_columns", "replace_schema_metadata"),
    *("create_branch", "delete_branch"),
}
# Names that are too common even there: forbidden on these.
ON = {
    "commit": {"LanceDataset", "Compaction", "dataset", "ds"},
    "execute": {"Compaction"},
    "create": {"tags", "branches"},
}
SUSPECT = LANCE_ONLY | SHARED | ON.keys()
DATASETS = {"dataset", "ds", "lance", "LanceDataset"}


@dataclass(frozen=True, slots=True)
class Use:
    """A forbidden name in a function of a module; the function is empty at the top of a module."""

    module: str
    function: str
    name: str
    line: int = 0

    @property
    def permit(self) -> tuple[str, str, str]:
        """What an allow list has to say for this use to pass."""
        return self.module, self.function, self.name


def forbidden_uses(module: str, source: str) -> list[Use]:
    """Every forbidden name in a source text, with the function it stands in.

    >>> forbidden_uses("graph.py", "def tidy(t):\\n    t.dataset.delete('x')")
    [Use(module='graph.py', function='tidy', name='delete', line=2)]
    """
    return [
        Use(module, function, name, node.lineno)
        for function, node in _walk(ast.parse(source), "")
        for name in _forbidden(module, node)
    ]


def _walk(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr | ast.stmt):
            yield inside, child
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        name = getattr(child, "name", "") if named else ""
        yield from _walk(child, f"{inside}.{name}".strip(".") if named else inside)


def _forbidden(module: str, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        if node.attr in SUSPECT and _is_forbidden(module, node.attr, _chain(node.value)):
            yield node.attr
    elif isinstance(node, ast.ImportFrom):
        yield from (one.name for one in node.names if one.name in LANCE_ONLY)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        # A name that is fetched by its text is fetched all the same.
        texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
        if node.func.id == "getattr":
            yield from (str(one) for one in texts if one in LANCE_ONLY | SHARED)


def _is_forbidden(module: str, name: str, chain: set[str]) -> bool:
    near = module.startswith("storage/") or bool(chain & DATASETS)
    common = bool(chain & ON.get(name, set())) and (near or name != "create")
    return name in LANCE_ONLY or common or (name in SHARED and near)


def _chain(node: ast.expr) -> set[str]:
    """The names on the way to a member: `table.dataset.tags` has three."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | {
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)
    }
