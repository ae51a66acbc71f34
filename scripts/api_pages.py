"""Generate the reference pages of the public classes, with signatures and docstrings.

The members of a class are determined at run time, so that delegated and inherited methods are included. The signature
of a member is read from its source code, so that annotations appear as written.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Any, get_overloads

from scripts.signatures import alias_definition, field_lines, property_type, signature

FOLDER = "docs/reference/api"
DOCUMENTED_OPERATORS = ("__call__", "__getitem__")

FACETS = {
    "Branches": "omnigraph.api.branches",
    "Tags": "omnigraph.api.tags",
    "Revisions": "omnigraph.api.revisions",
    "GraphSchema": "omnigraph.api.graph_schema",
    "Changes": "omnigraph.api.changes",
    "StoredQueries": "omnigraph.api.stored_queries",
    "Maintenance": "omnigraph.api.maintenance",
    "Operations": "omnigraph.api.operations",
    "Spark": "omnigraph.api.spark",
}
ASYNC_MODULES = ("omnigraph.api.async_facets", "omnigraph.api.async_results", "omnigraph.api.async_pool")
RETURNED = {
    "omnigraph.api.merge_sessions": ("MergeResult", "MergeSession"),
    "omnigraph.merging.discarded_changes": ("DiscardedChange",),
    "omnigraph.values.blobs": ("BlobDigest",),
    "omnigraph.api.stored_queries": ("StoredQuery",),
    "omnigraph.api.query_pool": ("QueryPool",),
    "omnigraph.api.results.diff": ("Diff",),
    "omnigraph.api.results.commit_log": ("CommitLog",),
    "omnigraph.history.branch_info": ("BranchInfo",),
    "omnigraph.history.tags": ("Tag",),
    "omnigraph.history.entity_history": ("EntityHistory", "EntityVersion", "Blamed"),
    "omnigraph.evolve.proposal": ("SchemaPlan", "SchemaApplied"),
    "omnigraph.lang.schema.migrate.plan": ("MigrationPlan",),
    "omnigraph.api.linting": ("ReportedFinding", "LintedFile"),
    "omnigraph.api.type_info": ("NodeTypeInfo", "EdgeTypeInfo", "PropertyInfo"),
    "omnigraph.maintenance.optimize": ("OptimizeReport", "TableMaintenance"),
    "omnigraph.maintenance.retention.report": ("Cleanup", "DatasetCleanup"),
    "omnigraph.maintenance.retention.absence": ("Absence", "ResidualTrace"),
    "omnigraph.maintenance.finding": ("Checkup", "IntegrityFinding"),
    "omnigraph.maintenance.status": ("Status", "DatasetStatus"),
    "omnigraph.maintenance.repair_report": ("Repair", "DatasetRepair"),
    "omnigraph.maintenance.copy": ("CopySummary",),
    "omnigraph.spark.snapshot_frames": ("SparkGraph",),
}
# The type aliases that appear in signatures, and the modules that define them.
ALIASES = {
    "ChangeFilterNames": "omnigraph.api.change_feed.feed",
    "ConflictAnswer": "omnigraph.merging.strategy",
    "DiagramFormat": "omnigraph.api.schema",
    "DiffFilterNames": "omnigraph.api.results.diff",
    "Durability": "omnigraph.storage.store",
    "Duration": "omnigraph.maintenance.retention.policy",
    "Engine": "omnigraph.api.engine_choice",
    "Format": "omnigraph.api.loads",
    "Granularity": "omnigraph.merging.table_merge",
    "LoadMode": "omnigraph.ingest.load",
    "Location": "omnigraph.api.opening",
    "OnError": "omnigraph.ingest.load",
    "Params": "omnigraph.api.queries",
    "ProgressOption": "omnigraph.api.data_files",
    "QueryInput": "omnigraph.api.linting",
    "QuerySource": "omnigraph.api.builders.prepared_queries",
    "Revision": "omnigraph.history.revisions",
    "SchemaText": "omnigraph.api.schema",
    "StorageOptions": "omnigraph.api.opening",
    "Strategy": "omnigraph.merging.strategy",
}
# Data classes whose fields are implementation details.
OPAQUE = {"NodeSet", "EdgeSet", "Diff", "Prepared"}

_INDEX = """\
These pages list every public class with the signatures of its methods. [Python](../python.md) gives an overview with
examples, and [Errors](../errors.md) lists the exceptions. Later releases may add keyword arguments to methods
([stability](../stability.md)).
"""


@dataclass(frozen=True)
class Page:
    """A generated page, with its title, its introduction and the classes that it describes."""

    title: str
    introduction: str
    classes: tuple[type, ...]


def api_pages(notice: str) -> dict[str, Callable[[], str]]:
    """Return a function for every page in the folder, by path. The function returns the text of the page."""
    pages: dict[str, Callable[[], str]] = {
        f"{FOLDER}/README.md": partial(_index_page, notice),
        f"{FOLDER}/functions.md": partial(_functions_page, notice),
        f"{FOLDER}/AsyncGraph.md": partial(_class_pages, notice, _async_page),
        f"{FOLDER}/returned.md": partial(_class_pages, notice, _returned_page),
    }
    for name in (*_public_class_names(), *FACETS):
        pages.setdefault(f"{FOLDER}/{name}.md", partial(_single_page, notice, name))
    return pages


def _public_class_names() -> list[str]:
    """Return the classes in `omnigraph.__all__`, which are recognized by their names without being imported."""
    import omnigraph

    return [name for name in omnigraph.__all__ if name[0].isupper()]


def _load_class(name: str) -> type:
    import omnigraph

    found: type = getattr(import_module(FACETS[name]) if name in FACETS else omnigraph, name)
    return found


def _index_page(notice: str) -> str:
    sections = (
        (
            "Functions",
            [("`init`, `open`, `aopen`, `lint`, `testing.graph`", "functions.md", "Open graphs and check queries.")],
        ),
        ("Classes", [_index_row(name) for name in _public_class_names()]),
        ("Facets", [_index_row(name) for name in FACETS]),
        ("Further pages", [("Returned classes", "returned.md", _returned_page().introduction)]),
    )
    tables = (f"\n## {title}\n\n{_index_table(rows)}" for title, rows in sections)
    aliases = "".join(_alias_row(name, module) for name, module in ALIASES.items())
    types = f"\n## Types in signatures\n\n| name | type |\n| --- | --- |\n{aliases}"
    return f"# Python classes\n\n{notice}\n{_INDEX}" + "".join(tables) + types


def _alias_row(name: str, module: str) -> str:
    definition = alias_definition(inspect.getsource(import_module(module)), name)
    return f"| `{name}` | `{_cell(definition)}` |\n"


def _index_row(name: str) -> tuple[str, str, str]:
    return f"`{name}`", f"{name}.md", _first_line(_load_class(name))


def _index_table(rows: list[tuple[str, str, str]]) -> str:
    lines = (f"| [{name}]({page}) | {_cell(text)} |\n" for name, page, text in rows)
    return "| name | content |\n| --- | --- |\n" + "".join(lines)


def _functions_page(notice: str) -> str:
    import omnigraph

    sections = (
        _function_text("omnigraph.init", omnigraph.init),
        _function_text("omnigraph.open", omnigraph.open),
        _function_text("omnigraph.aopen", omnigraph.aopen),
        _function_text("omnigraph.lint", omnigraph.lint),
        _function_text("omnigraph.testing.graph", omnigraph.testing.graph),
    )
    return f"# Functions\n\n{notice}\nThe functions that open graphs and check queries.\n" + "".join(sections)


def _function_text(name: str, function: Callable[..., Any]) -> str:
    lines = signature(function, name.rpartition(".")[2])
    return f"\n## `{name}`\n\n{_code(lines)}\n\n{_markdown(function)}\n"


def _single_page(notice: str, name: str) -> str:
    cls = _load_class(name)
    return f"# `{name}`\n\n{notice}\n{_class_text(cls, level=2)}"


def _class_pages(notice: str, make_page: Callable[[], Page]) -> str:
    page = make_page()
    sections = (f"\n## `{cls.__name__}`\n\n{_class_text(cls, level=3)}" for cls in page.classes)
    return f"# {page.title}\n\n{notice}\n{page.introduction}\n" + "".join(sections)


def _async_page() -> Page:
    graph = _load_class("AsyncGraph")
    modules = (import_module(name) for name in ASYNC_MODULES)
    mirrors = (cls for module in modules for cls in _own_classes(module))
    introduction = (
        "This page lists `AsyncGraph`, its facets, and the objects that its methods return. These classes have the\n"
        "same methods as the synchronous classes, but the methods are coroutines."
    )
    return Page("`AsyncGraph`", introduction, (graph, *mirrors))


def _own_classes(module: ModuleType) -> Iterator[type]:
    for name, value in vars(module).items():
        own = isinstance(value, type) and value.__module__ == module.__name__
        if own and not name.startswith("_") and name != "AsyncEntitySet":
            yield value


def _returned_page() -> Page:
    classes = (getattr(import_module(module), name) for module, names in RETURNED.items() for name in names)
    introduction = "Other objects that methods return, such as reports, diffs, logs, plans and merge results."
    return Page("Returned classes", introduction, tuple(classes))


def _class_text(cls: type, level: int) -> str:
    heading = "#" * level
    members = list(_members(cls))
    fields = [] if cls.__name__ in OPAQUE else field_lines(cls)
    properties = [(name, member) for name, member in members if not callable(member)]
    methods = [(name, member) for name, member in members if callable(member)]
    parts = [_markdown(cls) + "\n"]
    if fields:
        parts.append(f"\n{heading} Fields{_of(cls, level)}\n\n{_code(fields)}\n")
    if properties:
        rows = "".join(_property_row(name, member) for name, member in properties)
        table = f"| property | type | content |\n| --- | --- | --- |\n{rows}"
        parts.append(f"\n{heading} Properties{_of(cls, level)}\n\n{table}")
    parts.extend(_method_text(cls, name, member, level) for name, member in methods)
    return "".join(parts)


def _of(cls: type, level: int) -> str:
    """Return the suffix of a heading, which makes anchors unique on a page with several classes."""
    return f" of `{cls.__name__}`" if level > 2 else ""


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public members of a class, followed by those of its base classes in this package."""
    seen = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("omnigraph.") or base.__name__ == "Guarded":
            continue
        for name in list(vars(base)):
            getattr(base, name, None)  # a delegated method is loaded on first access
            member = vars(base)[name]
            documented = isinstance(member, property | cached_property) or _function(member)
            if name not in seen and documented and _is_public(name, member):
                seen.add(name)
                yield name, member if _function(member) is None else _function(member)


def _function(member: Any) -> Callable[..., Any] | None:
    plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    return plain if inspect.isfunction(plain) else None


def _is_public(name: str, member: Any) -> bool:
    return not name.startswith("_") or (name in DOCUMENTED_OPERATORS and bool(member.__doc__))


def _property_row(name: str, member: property | cached_property[Any]) -> str:
    getter: Any = member.fget if isinstance(member, property) else member.func
    text = " ".join(_cell(inspect.getdoc(getter) or "").split())
    return f"| `{name}` | `{_cell(property_type(getter))}` | {text} |\n"


def _method_text(cls: type, name: str, member: Callable[..., Any], level: int) -> str:
    overloads = get_overloads(inspect.unwrap(member)) or [member]
    blocks = ("\n".join(signature(one, name, method=member)) for one in overloads)
    lines = ["\n\n".join(blocks)]
    title = f"`{cls.__name__}.{name}`" if level > 2 else f"`{name}`"
    return f"\n{'#' * level} {title}\n\n{_code(lines)}\n\n{_markdown(member)}\n"


def _first_line(documented: Any) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(lines: list[str]) -> str:
    return "\n".join(("```python", *lines, "```"))


def _markdown(documented: Any) -> str:
    """Return the docstring as Markdown, with its examples in fenced blocks."""
    text = inspect.getdoc(documented)
    if not text:
        raise ValueError(f"{documented.__qualname__} is public and has no docstring")
    paragraphs = (
        f"```pycon\n{paragraph}\n```" if paragraph.startswith(">>>") else paragraph for paragraph in text.split("\n\n")
    )
    return "\n\n".join(paragraphs)
