"""`omnigraph schema`: check, compare, show and change schemas."""

from typing import Any

import click

from omnigraph.errors import LanguageError, language_error
from omnigraph.errors.diagnostics import Diagnostic, SourceText

from . import exits, files, show
from .address import GraphAddress, graph_arguments, open_snapshot, resolve_target
from .group import LazyCommand, LazyGroup
from .options import scope_options, settings, shared_options, snapshot_option

_COMMANDS = {
    "apply": LazyCommand("omnigraph.cli.schema_apply", "apply", "Change the schema of a graph"),
    "check": LazyCommand(__name__, "check", "Check schema files"),
    "diff": LazyCommand(__name__, "diff", "Show the migration plan between two schema files"),
    "infer": LazyCommand("omnigraph.cli.schema_infer", "infer", "Propose a schema for data files"),
    "plan": LazyCommand("omnigraph.cli.schema_apply", "plan", "Preview a change to the schema of a graph"),
    "show": LazyCommand(__name__, "show_", "Print the schema of a graph"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS, aliases={"get": "show"})
@scope_options
@shared_options
def schema() -> None:
    """Check, compare, show and apply schemas."""


@click.command("show")
@click.option("--branch", help="Branch to read; defaults to main unless --snapshot is given")
@snapshot_option
@click.option(
    "--diagram",
    "diagram_format",
    type=click.Choice(["mermaid", "svg"]),
    help="Print a diagram (Mermaid text or an SVG image) instead of the schema text",
)
@graph_arguments()
@shared_options
def show_(address: GraphAddress, branch: str | None, snapshot: str | None, diagram_format: str | None) -> None:
    """Print the schema of a graph as written, or as a diagram."""
    root = resolve_target(address)
    stored_schema = open_snapshot(root, branch, snapshot).schema
    source = stored_schema.source
    diagram = None if diagram_format is None else _draw(stored_schema, diagram_format)
    if settings().json:
        show.document({"schema_source": source} | ({} if diagram is None else {"diagram": diagram}))
        return
    text = source if diagram is None else diagram
    show.verbatim(text if text.endswith("\n") else f"{text}\n")


def _draw(stored_schema: Any, diagram_format: str) -> str:
    from omnigraph.lang.schema.declared_order import read_declared_order
    from omnigraph.lang.schema.diagram import draw_mermaid, draw_svg

    draw = draw_svg if diagram_format == "svg" else draw_mermaid
    return draw(stored_schema.ir.catalog, read_declared_order(stored_schema.source))


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--check", "strict", is_flag=True, help="Exit with code 5 if there are warnings")
@shared_options
@click.pass_context
def check(context: click.Context, paths: tuple[str, ...], strict: bool) -> None:
    """Check schema (.pg) files: syntax, types, constraints, interfaces and names.

    All errors in a file are reported, each with its position.
    """
    files.reject_repeated_stdin(*paths)
    reports = [_check_file(path) for path in files.expand_directories(paths, ".pg")]
    if settings().json:
        documents = [document for document, _, _ in reports]
        has_errors = any(document["status"] == "error" for document in documents)
        show.document({"status": "error" if has_errors else "ok", "files": documents})
    else:
        for document, source, diagnostics in reports:
            show.findings(diagnostics, source)
            show.result(f"{source.name}: {_describe_file(document, diagnostics)}")
    all_diagnostics = [diagnostic for _, _, file_diagnostics in reports for diagnostic in file_diagnostics]
    context.exit(exits.diagnostics_exit_code(all_diagnostics, strict=strict))


def _check_file(path: str) -> tuple[dict[str, Any], SourceText, tuple[Diagnostic, ...]]:
    from omnigraph.lang.schema import examine_schema
    from omnigraph.lang.schema.canonical_shape import shape_hash

    try:
        source = files.read_source(path)
    except LanguageError as error:
        source, diagnostics = error.source or SourceText(path, ""), error.diagnostics
        return _file_document(path, diagnostics), source, diagnostics
    catalog, diagnostics = examine_schema(source.text, source.name)
    if catalog is None:
        return _file_document(path, diagnostics), source, diagnostics
    schema_members = {
        "shape_hash": shape_hash(catalog),
        "interfaces": [declared.name for declared in catalog.interfaces],
        "nodes": [declared.name for declared in catalog.nodes],
        "edges": [declared.name for declared in catalog.edges],
    }
    return _file_document(path, diagnostics) | schema_members, source, diagnostics


def _file_document(path: str, diagnostics: tuple[Diagnostic, ...]) -> dict[str, Any]:
    has_errors = any(diagnostic.severity == "error" for diagnostic in diagnostics)
    diagnostic_documents = [diagnostic.to_json() for diagnostic in diagnostics]
    return {"path": path, "status": "error" if has_errors else "ok", "diagnostics": diagnostic_documents}


def _describe_file(document: dict[str, Any], diagnostics: tuple[Diagnostic, ...]) -> str:
    if document["status"] == "error":
        return show.summary(diagnostics)
    counted_kinds = (("interfaces", "interface"), ("nodes", "node type"), ("edges", "edge type"))
    type_counts = [show.count(len(document[member_name]), noun) for member_name, noun in counted_kinds]
    warning_note = f" ({show.summary(diagnostics)})" if diagnostics else ""
    return f"ok, {', '.join(type_counts)}{warning_note}"


@click.command()
@click.argument("before_path", metavar="BEFORE", type=click.Path(allow_dash=True))
@click.argument("after_path", metavar="AFTER", type=click.Path(allow_dash=True))
@click.option("--allow-data-loss", is_flag=True, help="Also delete the history of dropped data")
@click.option("--safe-only", is_flag=True, help="Exit with code 1 if any step could lose data")
@click.option("--check", "strict", is_flag=True, help="Exit with code 5 if there is anything to migrate")
@shared_options
@click.pass_context
def diff(
    context: click.Context, before_path: str, after_path: str, allow_data_loss: bool, safe_only: bool, strict: bool
) -> None:
    """Show the migration plan from schema BEFORE to schema AFTER.

    Only the two files are read. Steps are marked `+` for additions, `-` for drops and `~` for
    changes. Exits with code 1 if a step is not supported.
    """
    from omnigraph.lang.schema.migrate import plan_migration

    files.reject_repeated_stdin(before_path, after_path)
    old_catalog, new_catalog = _read_catalog(before_path), _read_catalog(after_path)
    schema_name = files.display_name(after_path)
    plan = plan_migration(old_catalog, new_catalog, allow_data_loss=allow_data_loss, source_name=schema_name)
    if settings().json:
        show.document(plan.to_json())
    else:
        print_plan(plan)
    is_lossy = safe_only and any(step.tier == "destructive" for step in plan.steps)
    success_code = exits.DIFFERENCES if strict and plan.steps else exits.OK
    context.exit(exits.FAILED if is_lossy or not plan.supported else success_code)


def _read_catalog(path: str) -> Any:
    from omnigraph.lang.schema import diagnose_schema

    source = files.read_source(path)
    catalog, diagnostics = diagnose_schema(source.text, source.name)
    if catalog is None:
        raise language_error(diagnostics, source)
    return catalog


_COLORS = {"safe": "green", "validated": "yellow", "destructive": "red"}
_MARKS = {"add": "+", "drop": "-", "unsupported": "✗"}


def print_plan(plan: Any) -> None:
    """Print the steps in a plan and whether the plan can be applied."""
    for step, description in zip(plan.steps, str(plan).splitlines(), strict=False):
        mark = _MARKS.get(step.kind.partition("_")[0], "~")
        color = "red" if mark == "✗" else _COLORS[step.tier]
        loss_note = " [destructive]" if step.tier == "destructive" and mark != "✗" else ""
        show.result(f"{click.style(mark, fg=color, bold=True)} {description}{loss_note}")
    for warning in plan.warnings:
        show.note(f"warning: {warning.message}")
    show.result(_describe_plan(plan))


def _describe_plan(plan: Any) -> str:
    if not plan.steps:
        return "the schemas are equal: nothing to migrate"
    refused_count = sum(step.kind == "unsupported_change" for step in plan.steps)
    if refused_count:
        return f"not supported: {refused_count} of {show.count(len(plan.steps), 'change')}"
    validated_count = sum(step.tier == "validated" for step in plan.steps)
    validation_note = f", {validated_count} checked against the data first" if validated_count else ""
    return f"supported: {show.count(len(plan.steps), 'step')}{validation_note}"
