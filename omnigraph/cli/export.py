"""`omnigraph export`: write a snapshot as NDJSON that can be loaded again."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import GraphAddress, graph_arguments, open_snapshot, resolve_target
from .options import settings, shared_options, snapshot_option
from .progress import show_progress
from .server_target import ServerTarget

if TYPE_CHECKING:
    from omnigraph.spark.export import Exported

_BLOCK_BYTES = 1 << 18  # minimum number of bytes per write
_FORMATS = ("ndjson", "parquet", "lance")


@click.command()
@click.option("--branch", help="Branch to read; defaults to main unless --snapshot is given")
@snapshot_option
@click.option("--type", "types", multiple=True, help="Export only this type; may be repeated")
@click.option(
    "--out", metavar="PATH", help="Write atomically to a file or s3:// URI; the suffixes .gz and .zst compress it"
)
@click.option("--iso-dates", is_flag=True, help="Write dates as 2024-01-31 instead of numbers")
@click.option("--format", "form", type=click.Choice(_FORMATS), help="Export with Spark to a folder in this format")
@click.option("--ordered", is_flag=True, help="Sort each type by id (only with --format)")
@click.option("--master", metavar="URL", help="Spark master (only with --format)")
@click.option("--remote", metavar="URL", help="Spark Connect URL (only with --format)")
@click.option("--no-progress", is_flag=True, help="Hide the progress bar (only with --format)")
@graph_arguments()
@shared_options
def export(
    address: GraphAddress,
    branch: str | None,
    snapshot: str | None,
    types: tuple[str, ...],
    out: str | None,
    **options: Any,
) -> None:
    """Export one snapshot as NDJSON: nodes first, each type sorted by id.

    A Date is written as days and a DateTime as milliseconds since 1970, unless --iso-dates is
    given; both forms can be loaded. The schema is not included: use `omnigraph schema show`.
    """
    root = resolve_target(address)
    graph: Any = open_snapshot(root, branch, snapshot)
    chosen_types = types or None
    if isinstance(root, ServerTarget):
        _export_from_server(graph, root.uri, out, chosen_types, options)
        return
    if options["form"] is not None:
        _export_with_spark(graph, root.uri, out, chosen_types, options)
        return
    if out is not None:
        entity_count = graph.export(out, types=chosen_types, iso_dates=options["iso_dates"])
        _report_file(root.uri, out, entity_count, graph.snapshot.commit_id)
        return
    from omnigraph.api.queries import export_parts

    for chunk in _join_small(export_parts(graph._handle, chosen_types, iso_dates=options["iso_dates"])):
        click.echo(chunk, nl=False)


def _export_from_server(
    graph: Any, uri: str, out: str | None, types: tuple[str, ...] | None, options: dict[str, Any]
) -> None:
    from .remote.graph import not_supported

    if options["form"] is not None:
        raise not_supported("an export with Spark")
    chunks, commit_id = graph.export_chunks(types, iso_dates=options["iso_dates"])
    if out is None:
        for chunk in chunks:
            click.echo(chunk, nl=False)
        return
    from omnigraph.api.output_files import write_export

    entity_count = 0

    def count_lines() -> Iterator[bytes]:
        nonlocal entity_count
        for chunk in chunks:
            entity_count += chunk.count(b"\n")
            yield chunk

    write_export(out, count_lines())
    _report_file(uri, out, entity_count, commit_id)


def _report_file(uri: str, out: str, entity_count: int, commit_id: str | None) -> None:
    if settings().json:
        show.document({"uri": uri, "path": out, "entities": entity_count, "graph_commit_id": commit_id})
    else:
        show.note(f"exported {show.count(entity_count, 'entity')} to {out}")


def _join_small(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join small parts into larger blocks, because a system call for each line would be slow."""
    block: list[bytes] = []
    block_bytes = 0
    for part in parts:
        block.append(part)
        block_bytes += len(part)
        if block_bytes >= _BLOCK_BYTES:
            yield b"".join(block)
            block, block_bytes = [], 0
    if block:
        yield b"".join(block)


def _export_with_spark(
    graph: Any, uri: str, out: str | None, types: tuple[str, ...] | None, options: dict[str, Any]
) -> None:
    if options["iso_dates"]:
        raise click.UsageError("--iso-dates cannot be combined with --format")
    if out is None:
        raise click.UsageError("--format writes many files: pass a new folder with --out")
    spark_graph = graph.spark.frames(master=options["master"], remote=options["remote"])
    with show_progress("export", hidden=options["no_progress"]) as progress_bar:
        exported = spark_graph.export(
            out, options["form"], types=types, ordered=options["ordered"], progress=progress_bar
        )
    if settings().json:
        members = {"uri": uri, "path": out, "entities": exported.total, "format": exported.form}
        show.document(members | {"seconds": dict(exported.steps), "graph_commit_id": exported.commit_id})
    else:
        show.note(f"exported {show.count(exported.total, 'entity')} to {out}")
        show.note(_describe_timing(exported))


def _describe_timing(exported: "Exported") -> str:
    """Describe how long an export took, as in `12.3 s (Paper 8.1, Cites 4.2), 89,431 rows/s`."""
    step_times = ", ".join(f"{type_name} {seconds:.1f}" for type_name, seconds in exported.steps.items())
    seconds = sum(exported.steps.values())
    return f"{seconds:.1f} s ({step_times}), {exported.total / max(seconds, 0.001):,.0f} rows/s"
