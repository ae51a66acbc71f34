"""`omnigraph export`: write a snapshot as NDJSON that can be loaded again, or a type in another format."""

from collections.abc import Iterator
from pathlib import Path
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
_FILE_FORMATS = ("ndjson", "parquet", "arrow", "csv")
_FOLDER_FORMATS = ("ndjson", "parquet", "lance")
_FORMATS = (*_FILE_FORMATS, "lance")
_FILE_SUFFIXES = (".ndjson", ".jsonl", ".json", ".parquet", ".arrow", ".feather", ".csv", ".gz", ".zst")


@click.command()
@click.option("--branch", help="Branch to read; defaults to main unless --snapshot is given")
@snapshot_option
@click.option("--type", "types", multiple=True, help="Export only this type; may be repeated")
@click.option("--since", metavar="REVISION", help="Export only entities that were added or changed after this revision")
@click.option(
    "--out",
    metavar="PATH",
    help="Write to a file or s3:// URI; the suffix (.ndjson, .parquet, .arrow or .csv) sets the format; .gz and .zst "
    "compress text",
)
@click.option("--iso-dates", is_flag=True, help="Write dates in NDJSON as 2024-01-31 instead of as numbers")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="Format of the file; a path without a suffix is a folder, which is written with Spark",
)
@click.option("--ordered", is_flag=True, help="Sort the entities of each type by id (only with Spark)")
@click.option("--master", metavar="URL", help="Spark master (only with Spark)")
@click.option("--remote", metavar="URL", help="Spark Connect URL (only with Spark)")
@click.option("--no-progress", is_flag=True, help="Hide the progress bar (only with Spark)")
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

    A Parquet, Arrow or CSV file contains a single type, which --type selects. With --format, a path without a suffix
    is a new folder, to which Spark writes all types in parallel.

    To load an export that was made with --since, use `--mode merge`. Entities that were deleted after the given
    revision are not exported; `omnigraph changes` lists them.
    """
    root = resolve_target(address)
    graph: Any = open_snapshot(root, branch, snapshot)
    chosen_types = types or None
    if options["form"] is not None and _is_folder(options["form"], out):
        if isinstance(root, ServerTarget):
            from .remote.graph import not_supported

            raise not_supported("an export with Spark")
        _export_with_spark(graph, root.uri, out, chosen_types, options)
    elif isinstance(root, ServerTarget):
        _export_from_server(graph, root.uri, out, chosen_types, options)
    else:
        _export_from_disk(graph, root.uri, out, chosen_types, options)


def _is_folder(form: str, out: str | None) -> bool:
    """Return whether an export in this format is written to a folder by Spark."""
    if form not in _FOLDER_FORMATS or (out is None and form == "ndjson"):
        return False
    is_other_file = out is not None and Path(out).exists() and not Path(out).is_dir()  # such as /dev/stdout
    has_suffix = out is not None and out.lower().endswith(_FILE_SUFFIXES)
    return form == "lance" or not (is_other_file or has_suffix)


def _export_from_disk(
    graph: Any, uri: str, out: str | None, types: tuple[str, ...] | None, options: dict[str, Any]
) -> None:
    from omnigraph.api.export_files import choose_export_format

    choose_export_format(out, options["form"])
    selection = {"iso_dates": options["iso_dates"], "since": options["since"]}
    if out is not None:
        entity_count = graph.export(out, types=types, format=options["form"], **selection)
        _report_file(uri, out, entity_count, graph.snapshot.commit_id)
        return
    from omnigraph.api.byte_blocks import join_small_pieces
    from omnigraph.api.exports import export_parts

    for chunk in join_small_pieces(export_parts(graph._handle, types, **selection), _BLOCK_BYTES):
        click.echo(chunk, nl=False)


def _export_from_server(
    graph: Any, uri: str, out: str | None, types: tuple[str, ...] | None, options: dict[str, Any]
) -> None:
    from omnigraph.api.export_files import choose_export_format

    file_format = choose_export_format(out, options["form"])
    if out is not None and file_format != "ndjson":
        entity_count, commit_id = graph.export_file(out, file_format, types, since=options["since"])
        _report_file(uri, out, entity_count, commit_id)
        return
    chunks, commit_id = graph.export_chunks(types, iso_dates=options["iso_dates"], since=options["since"])
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


def _export_with_spark(
    graph: Any, uri: str, out: str | None, types: tuple[str, ...] | None, options: dict[str, Any]
) -> None:
    for option in ("iso_dates", "since"):
        if options[option]:
            flag = f"--{option.replace('_', '-')}"
            raise click.UsageError(f"{flag} cannot be combined with a folder as --out; add a suffix such as .parquet")
    if out is None:
        raise click.UsageError(f"--format {options['form']} requires --out: a file with a suffix, or a new folder")
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
