"""`omnigraph schema infer`: propose a schema for data files."""

from typing import Any

import click

from . import show
from .options import settings, shared_options


@click.command()
@click.argument("paths", metavar="[TYPE=]PATH...", nargs=-1, required=True)
@click.option(
    "--rows",
    "sample_rows",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Maximum number of rows to read per type",
)
@shared_options
def infer(paths: tuple[str, ...], sample_rows: int) -> None:
    """Propose a schema for CSV, NDJSON or Parquet files, and print it.

    A TYPE= prefix sets the type of a file; without it, the type comes from the records or the file name. Comments mark
    guesses: review the schema before you create a graph with it. Nothing is written.
    """
    from omnigraph.api.schema import Schema

    schema = Schema.infer(_read_arguments(paths), sample_rows=sample_rows)
    if settings().json:
        show.document({"schema_source": schema.source})
    else:
        show.verbatim(schema.source)


def _read_arguments(paths: tuple[str, ...]) -> Any:
    """Return the paths as a list, or as a mapping by type if the arguments name types."""
    named_paths = [path.partition("=") for path in paths]
    named_count = sum(bool(separator) and type_name.isidentifier() for type_name, separator, _ in named_paths)
    if not named_count:
        return list(paths)
    if named_count < len(paths):
        raise click.UsageError("specify a type for every file, as in Person=people.csv, or for none")
    if len({type_name for type_name, _, _ in named_paths}) < len(paths):
        raise click.UsageError("each type accepts one path; use a folder or a pattern for several files")
    return {type_name: path for type_name, _, path in named_paths}
