"""`omnigraph query`: run a read query and print its rows."""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import GraphAddress, open_snapshot, resolve_target
from .operator_config import load_config
from .options import settings, shared_options, snapshot_option
from .query_input import QueryInput, query_options
from .server_target import is_served

if TYPE_CHECKING:
    from omnigraph.api.results.formats import TextStyle
    from omnigraph.api.results.result import Result

_BINARY_FORMATS = ("arrow", "parquet")
TEXT_FORMATS = ("table", "kv", "csv", "jsonl", "json", "md", "ndjson")
# JSON does not tell 32-bit floats, which CSV spells shorter, from 64-bit ones.
TYPED_FORMATS = (*_BINARY_FORMATS, "csv")
_LINES_PER_WRITE = 1000  # lines per write
_MAX_COLUMN_WIDTH = 80
_UNKNOWN_ENUM_VALUE = "L206"


@click.command()
@query_options
@click.option("--branch", help="Branch to read; defaults to main unless --snapshot is given")
@snapshot_option
@click.option(
    "--format",
    "form",
    type=click.Choice((*TEXT_FORMATS, *_BINARY_FORMATS)),
    help="Output format; jsonl starts with a metadata line  [default: table, or the suffix of --out]",
)
@click.option(
    "--out",
    metavar="FILE",
    help="Write to a file; the suffix (.arrow, .parquet, .csv, .ndjson, .json or .md) sets the format",
)
@click.option("--max-width", type=click.IntRange(min=8), help="Maximum column width  [default: 80]")
@click.option("--wrap/--no-wrap", default=None, help="Wrap long table cells instead of truncating them")
@click.option("--csv-null", default="null", show_default=True, help="Text for null values in CSV")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Maximum run time in seconds")
@shared_options
def query(query_input: QueryInput, address: GraphAddress, **options: Any) -> None:
    """Run a read query and print its rows.

    The query comes from a file or from -e, which also accepts a bare `match { … } return { … }`.
    """
    root = resolve_target(address)
    form, style = choose_format(options["form"], options["out"]), _read_style(options)
    graph: Any = open_snapshot(root, options["branch"], options["snapshot"])
    result = _run_query(graph, query_input, options["timeout"], needs_arrow=options["out"] or form in TYPED_FORMATS)
    show.warnings(_describe_impossible_values(result))
    if options["out"] is not None:
        _write_file(result, Path(options["out"]), form, style)
    elif form in _BINARY_FORMATS:
        _print_binary(result, form)
    else:
        print_lines(result.render(form, style))


def _run_query(graph: Any, query_input: QueryInput, timeout: float | None, *, needs_arrow: Any) -> Any:
    """Run the query. Request Arrow from a server only if the format needs it, because the import takes time."""
    run = graph.query_arrow if needs_arrow and is_served(graph) else graph.query
    return run(query_input.source, name=query_input.query_name, params=query_input.params, timeout=timeout)


def _describe_impossible_values(result: Any) -> Iterator[str]:
    """Describe comparisons of an enum property with a value that is not in its enum and is probably misspelled."""
    for diagnostic in getattr(result, "diagnostics", ()):
        if diagnostic.code == _UNKNOWN_ENUM_VALUE:
            yield "; ".join(filter(None, (diagnostic.message, diagnostic.hint)))


def choose_format(explicit_format: str | None, out: str | None = None) -> Any:
    """Return the explicit format, or else the one given by the suffix of --out, by --json, or by the configuration."""
    if out is not None:
        from omnigraph.api.results.result_files import choose_file_format

        file_format = explicit_format or choose_file_format(Path(out))
        if file_format is None:
            raise click.UsageError(f"cannot determine the format of {out}: use --format, or a suffix such as .parquet")
        return file_format
    if settings().json:
        return "json"
    if explicit_format in _BINARY_FORMATS and sys.stdout.isatty():
        raise click.UsageError(f"--format {explicit_format} is binary: pass --out FILE or redirect standard output")
    return explicit_format or load_config().output or "table"


def _print_binary(result: "Result", form: Any) -> None:
    from omnigraph.api.results.result_files import copy_binary

    copy_binary(result, form, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _write_file(result: "Result", path: Path, form: Any, style: "TextStyle") -> None:
    from omnigraph.api.results.result_files import write_result_file

    write_result_file(result, path, form, style)
    if settings().json:
        members = {"path": str(path), "format": form, "row_count": result.num_rows}
        show.document(members | {"graph_commit_id": result.commit_id})
    else:
        show.note(f"wrote {show.count(result.num_rows, 'row')} to {path}")


def _read_style(options: dict[str, Any]) -> "TextStyle":
    return choose_style(wrap=options["wrap"], max_width=options["max_width"], csv_null=options["csv_null"])


def choose_style(*, wrap: bool | None = None, max_width: int | None = None, csv_null: str = "null") -> "TextStyle":
    """Return the style for text; options that are not given come from the configuration."""
    from omnigraph.api.results.formats import TextStyle

    config = load_config()
    wraps = wrap if wrap is not None else config.table_cell_layout == "wrap"
    width = max_width or config.table_max_column_width or _MAX_COLUMN_WIDTH
    return TextStyle(width, "wrap" if wraps else "truncate", csv_null)


def print_lines(lines: Iterable[str]) -> None:
    """Print the lines in batches, because a write per line would be slow."""
    remaining: Iterator[str] = iter(lines)
    while chunk := list(islice(remaining, _LINES_PER_WRITE)):
        click.echo("\n".join(chunk))
