"""`omnigraph describe`: parameters, results, reads and writes of queries, without running them."""

from typing import Any

import click

from omnigraph.errors import InputError, language_error

from . import files, show
from .options import schema_option, settings, shared_options


@click.command()
@schema_option
@click.option(
    "--query",
    "query_path",
    required=True,
    type=click.Path(allow_dash=True),
    help="Query file (.gq)",
)
@click.option("--plan", is_flag=True, help="Also show the compiled plan")
@click.argument("names", nargs=-1)
@shared_options
def describe(schema_path: str, query_path: str, plan: bool, names: tuple[str, ...]) -> None:
    """Show what queries take, return and touch. NAMES selects queries of the file."""
    files.once(schema_path, query_path)
    queries = _picked(_compiled(schema_path, query_path), names)
    if settings().json:
        show.document({"queries": [_document(one, plan) for one in queries]})
        return
    for one in queries:
        _tell(one, plan)


def _compiled(schema_path: str, query_path: str) -> tuple[Any, ...]:
    from omnigraph.lang.query import diagnose_queries
    from omnigraph.lang.schema import compile_schema

    schema = files.read_source(schema_path)
    catalog = compile_schema(schema.text, schema.name)
    source = files.read_source(query_path)
    queries, found = diagnose_queries(source.text, catalog, source.name)
    errors = [one for one in found if one.severity == "error"]
    if errors:
        raise language_error(errors, source)
    return queries


def _picked(queries: tuple[Any, ...], names: tuple[str, ...]) -> list[Any]:
    known = {one.name: one for one in queries}
    missing = [name for name in names if name not in known]
    if missing:
        listed = ", ".join(known) or "none"
        raise InputError(f"no query '{missing[0]}'; there are: {listed}", reason="unknown query")
    return [known[name] for name in names] if names else list(queries)


def _document(one: Any, plan: bool) -> dict[str, Any]:
    from omnigraph.lang.query import explain_plan

    facts: dict[str, Any] = one.to_json()
    return facts | ({"plan": explain_plan(one.plan).split("\n")} if plan else {})


def _tell(one: Any, plan: bool) -> None:
    from omnigraph.lang.query import explain_plan

    facts = one.to_json()
    parameters = ", ".join(_parameter(p) for p in facts["params"])
    show.result(f"{click.style(one.kind, fg='cyan')}  {one.name}({parameters})")
    if one.description:
        show.result(f"  {one.description}")
    operation = facts["operation"]
    for label, items in (
        ("returns", [_column(c) for c in operation["result"]]),
        ("reads", [_touched(t) for t in operation["reads"]]),
        ("writes", [_touched(t) for t in operation["writes"]]),
    ):
        if items:
            show.result(f"  {label:<8}{', '.join(items)}")
    if plan:
        show.result("\n".join(f"  | {line}" for line in explain_plan(one.plan).split("\n")))


def _parameter(facts: dict[str, Any]) -> str:
    default = f" = {facts['default']}" if "default" in facts else ""
    mark = "?" if facts["nullable"] and not facts["type"].endswith("?") else ""
    return f"${facts['name']}: {facts['type']}{mark}{default}"


def _column(facts: dict[str, Any]) -> str:
    kind = facts["kind"]
    if "item_kind" in facts:
        kind = f"[{facts['item_kind']}]"
    if "vector_dim" in facts:
        kind = f"vector({facts['vector_dim']})"
    return f"{facts['name']}: {kind}{'?' if facts['nullable'] else ''}"


def _touched(facts: dict[str, Any]) -> str:
    return f"{facts['kind']} {facts['type_name']}"
