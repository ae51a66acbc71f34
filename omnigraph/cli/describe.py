"""`omnigraph describe`: show the parameters, results, reads and writes of queries without running them."""

from typing import Any

import click

from omnigraph.errors import InputError, language_error

from . import files, show
from .options import schema_option, settings, shared_options


@click.command()
@schema_option
@click.option("--query", "query_path", required=True, type=click.Path(allow_dash=True), help="Query file (.gq)")
@click.option("--plan", is_flag=True, help="Also show the compiled plan")
@click.argument("names", nargs=-1)
@shared_options
def describe(schema_path: str, query_path: str, plan: bool, names: tuple[str, ...]) -> None:
    """Show what queries take, return, read and write. If NAMES are given, only those queries are shown."""
    files.reject_repeated_stdin(schema_path, query_path)
    queries = _select_queries(_compile_queries(schema_path, query_path), names)
    if settings().json:
        show.document({"queries": [_query_document(query, plan) for query in queries]})
        return
    for query in queries:
        _print_query(query, plan)


def _compile_queries(schema_path: str, query_path: str) -> tuple[Any, ...]:
    from omnigraph.lang.query import diagnose_queries
    from omnigraph.lang.schema import compile_schema

    schema = files.read_source(schema_path)
    catalog = compile_schema(schema.text, schema.name)
    source = files.read_source(query_path)
    queries, diagnostics = diagnose_queries(source.text, catalog, source.name)
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    if errors:
        raise language_error(errors, source)
    return queries


def _select_queries(queries: tuple[Any, ...], query_names: tuple[str, ...]) -> list[Any]:
    queries_by_name = {query.name: query for query in queries}
    missing = [query_name for query_name in query_names if query_name not in queries_by_name]
    if missing:
        available = f"available queries: {', '.join(queries_by_name)}" if queries_by_name else "the file has no queries"
        raise InputError(f"no query named '{missing[0]}'; {available}", reason="unknown query")
    return [queries_by_name[query_name] for query_name in query_names] if query_names else list(queries)


def _query_document(query: Any, with_plan: bool) -> dict[str, Any]:
    from omnigraph.lang.query import explain_plan

    members: dict[str, Any] = query.to_json()
    return members | ({"plan": explain_plan(query.plan).split("\n")} if with_plan else {})


def _print_query(query: Any, with_plan: bool) -> None:
    from omnigraph.lang.query import explain_plan

    members = query.to_json()
    parameter_list = ", ".join(_describe_parameter(parameter) for parameter in members["params"])
    show.result(f"{click.style(query.kind, fg='cyan')}  {query.name}({parameter_list})")
    if query.description:
        show.result(f"  {query.description}")
    operation = members["operation"]
    for label, items in (
        ("returns", [_describe_column(column) for column in operation["result"]]),
        ("reads", [_describe_table(table) for table in operation["reads"]]),
        ("writes", [_describe_table(table) for table in operation["writes"]]),
    ):
        if items:
            show.result(f"  {label:<8}{', '.join(items)}")
    if with_plan:
        show.result("\n".join(f"  | {line}" for line in explain_plan(query.plan).split("\n")))


def _describe_parameter(parameter: dict[str, Any]) -> str:
    default_note = f" = {parameter['default']}" if "default" in parameter else ""
    nullable_mark = "?" if parameter["nullable"] and not parameter["type"].endswith("?") else ""
    return f"${parameter['name']}: {parameter['type']}{nullable_mark}{default_note}"


def _describe_column(column: dict[str, Any]) -> str:
    column_type = column["kind"]
    if "item_kind" in column:
        column_type = f"[{column['item_kind']}]"
    if "vector_dim" in column:
        column_type = f"vector({column['vector_dim']})"
    return f"{column['name']}: {column_type}{'?' if column['nullable'] else ''}"


def _describe_table(table: dict[str, Any]) -> str:
    return f"{table['kind']} {table['type_name']}"
