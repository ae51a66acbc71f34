"""`omnigraph schema`: check, compare, show and change schemas."""

from typing import Any

import click

from omnigraph.diagnostics import Diagnostic, Source
from omnigraph.errors import LanguageError, language_error

from . import exits, files, show
from .address import address, shown_at, store_option, uri_argument
from .group import Lazy, LazyGroup
from .options import scope_options, settings, shared_options, snapshot_option

_COMMANDS = {
    "apply": Lazy("omnigraph.cli.schema_apply", "apply", "Change the schema of a graph"),
    "check": Lazy(__name__, "check", "Check schema files"),
    "diff": Lazy(__name__, "diff", "Show the migration plan between two schema files"),
    "plan": Lazy("omnigraph.cli.schema_apply", "plan", "Preview a schema change of a graph"),
    "show": Lazy(__name__, "show_", "Print the schema of a graph"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def schema() -> None:
    """Check, compare, show and apply schemas."""


@click.command("show")
@uri_argument
@click.option("--branch", help="Branch; main unless a snapshot is given")
@snapshot_option
@store_option
@shared_options
def show_(uri: str | None, branch: str | None, snapshot: str | None, store: str | None) -> None:
    """Print the schema of a graph, as its author wrote it."""
    root = address(uri, store)
    source = shown_at(root.uri, branch, snapshot).schema.source
    if settings().json:
        show.document({"schema_source": source})
    else:
        show.verbatim(source if source.endswith("\n") else f"{source}\n")


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--check", "strict", is_flag=True, help="Exit 5 if there are warnings")
@shared_options
@click.pass_context
def check(context: click.Context, paths: tuple[str, ...], strict: bool) -> None:
    """Check schema (.pg) files: syntax, types, constraints, interfaces, names.

    All errors of a file are reported, each with its position.
    """
    files.once(*paths)
    reports = [_examine(path) for path in files.expand(paths, ".pg")]
    if settings().json:
        documents = [document for document, _, _ in reports]
        bad = any(document["status"] == "error" for document in documents)
        show.document({"status": "error" if bad else "ok", "files": documents})
    else:
        for document, source, found in reports:
            show.findings(found, source)
            show.result(f"{source.name}: {_headline(document, found)}")
    every = [one for _, _, some in reports for one in some]
    context.exit(exits.of_findings(every, strict=strict))


def _examine(path: str) -> tuple[dict[str, Any], Source, tuple[Diagnostic, ...]]:
    from omnigraph.lang.schema import examine_schema
    from omnigraph.lang.schema.shape import shape_hash

    try:
        source = files.read_source(path)
    except LanguageError as error:
        source, found = error.source or Source(path, ""), error.diagnostics
        return _document(path, found), source, found
    catalog, found = examine_schema(source.text, source.name)
    if catalog is None:
        return _document(path, found), source, found
    facts = {
        "shape_hash": shape_hash(catalog),
        "interfaces": [one.name for one in catalog.interfaces],
        "nodes": [one.name for one in catalog.nodes],
        "edges": [one.name for one in catalog.edges],
    }
    return _document(path, found) | facts, source, found


def _document(path: str, found: tuple[Diagnostic, ...]) -> dict[str, Any]:
    bad = any(one.severity == "error" for one in found)
    diagnostics = [one.to_json() for one in found]
    return {"path": path, "status": "error" if bad else "ok", "diagnostics": diagnostics}


def _headline(document: dict[str, Any], found: tuple[Diagnostic, ...]) -> str:
    if document["status"] == "error":
        return show.summary(found)
    kinds = (("interfaces", "interface"), ("nodes", "node type"), ("edges", "edge type"))
    parts = [show.count(len(document[key]), noun) for key, noun in kinds]
    warned = f" ({show.summary(found)})" if found else ""
    return f"ok, {', '.join(parts)}{warned}"


@click.command()
@click.argument("before_path", metavar="BEFORE", type=click.Path(allow_dash=True))
@click.argument("after_path", metavar="AFTER", type=click.Path(allow_dash=True))
@click.option("--allow-data-loss", is_flag=True, help="Also delete the history of dropped data")
@click.option("--safe-only", is_flag=True, help="Exit 1 if a step can lose data")
@click.option("--check", "strict", is_flag=True, help="Exit 5 if there is anything to migrate")
@shared_options
@click.pass_context
def diff(
    context: click.Context,
    before_path: str,
    after_path: str,
    allow_data_loss: bool,
    safe_only: bool,
    strict: bool,
) -> None:
    """Show the migration plan from schema BEFORE to schema AFTER.

    Only the two files are read. Steps are marked `+` for additions, `-` for drops and `~` for
    changes. Exits 1 if a step is not supported.
    """
    from omnigraph.lang.schema.migrate import plan_migration

    files.once(before_path, after_path)
    old, new = _catalog(before_path), _catalog(after_path)
    name = files.name_of(after_path)
    plan = plan_migration(old, new, allow_data_loss=allow_data_loss, name=name)
    if settings().json:
        show.document(plan.to_json())
    else:
        show_plan(plan)
    lossy = safe_only and any(step.tier == "destructive" for step in plan.steps)
    changes = exits.DIFFERENCES if strict and plan.steps else exits.OK
    context.exit(exits.FAILED if lossy or not plan.supported else changes)


def _catalog(path: str) -> Any:
    from omnigraph.lang.schema import diagnose_schema

    source = files.read_source(path)
    catalog, found = diagnose_schema(source.text, source.name)
    if catalog is None:
        raise language_error(found, source)
    return catalog


_COLORS = {"safe": "green", "validated": "yellow", "destructive": "red"}
_MARKS = {"add": "+", "drop": "-", "unsupported": "✗"}


def show_plan(plan: Any) -> None:
    """Print a plan step by step, and whether it can be applied."""
    from omnigraph.lang.schema.migrate import describe_step

    for step in plan.steps:
        mark = _MARKS.get(step.kind.partition("_")[0], "~")
        color = "red" if mark == "✗" else _COLORS[step.tier]
        lossy = " [destructive]" if step.tier == "destructive" and mark != "✗" else ""
        show.result(f"{click.style(mark, fg=color, bold=True)} {describe_step(step)}{lossy}")
    for warning in plan.warnings:
        show.note(f"warning: {warning.message}")
    show.result(_verdict(plan))


def _verdict(plan: Any) -> str:
    if not plan.steps:
        return "the schemas are equal: nothing to migrate"
    refused = sum(step.kind == "unsupported_change" for step in plan.steps)
    if refused:
        return f"not supported: {show.count(refused, 'change')} of {len(plan.steps)} refused"
    validated = sum(step.tier == "validated" for step in plan.steps)
    scan = f", {validated} checked against the data first" if validated else ""
    return f"supported: {show.count(len(plan.steps), 'step')}{scan}"
