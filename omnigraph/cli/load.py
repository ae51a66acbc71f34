"""`omnigraph load`: load records into a graph, as one commit."""

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import InputError, KeyConflict

from . import exits, files, show
from .address import (
    GraphAddress,
    actor_option,
    announce_target,
    external_blobs_option,
    graph_arguments,
    require_consent,
    resolve_target,
    yes_option,
)
from .engines import engine_options, open_spark_session
from .opening import open_graph
from .options import idempotency_key_option, mark_as_write, settings, shared_options
from .progress import show_progress

if TYPE_CHECKING:
    from omnigraph.api.results.receipt import LoadReport, Receipt
    from omnigraph.ingest.csv_options import CsvOptions

_MODES = ("overwrite", "append", "merge", "patch", "delete")
_FORMATS = ("ndjson", "parquet", "csv")
_WRITE_OPTIONS = ("if_commit", "message", "idempotency_key")
_TYPED_PATH = re.compile(r"([A-Z]\w*)=(.+)")


@click.command()
@click.option(
    "--data",
    required=True,
    multiple=True,
    metavar="[TYPE=]PATH",
    type=click.Path(allow_dash=True),
    help="NDJSON, CSV or Parquet files, folders, patterns or s3:// URIs; - reads standard input; may be repeated",
)
@click.option("--mode", required=True, type=click.Choice(_MODES), help="How to apply the records")
@click.option("--branch", default="main", show_default=True, help="Branch to load into")
@click.option("--from", "base", metavar="BASE", help="Create the branch from BASE if it does not exist")
@click.option("--format", type=click.Choice(_FORMATS), help="Format of all files, overriding their suffixes")
@click.option(
    "--mapping",
    metavar="PATH|JSON",
    help="JSON file or object that maps columns to properties for each type",
)
@click.option("--csv-delimiter", metavar="CHAR", help="CSV delimiter (one character, or tab); detected by default")
@click.option(
    "--csv-quote", metavar="CHAR", help="CSV quote character, or none to disable quoting; detected by default"
)
@click.option("--csv-null", metavar="TEXT", multiple=True, help="Unquoted CSV cell that means null; may be repeated")
@click.option(
    "--csv-columns",
    metavar="[TYPE=]NAMES",
    multiple=True,
    help="Comma-separated column names for CSV files without a header line; may be repeated",
)
@click.option(
    "--csv-header", is_flag=True, default=None, help="Skip the header line and use the names from --csv-columns"
)
@click.option("--csv-encoding", metavar="NAME", help="CSV encoding, for example cp1252  [default: utf-8]")
@click.option(
    "--csv-decimal", type=click.Choice((".", ",")), default=".", show_default=True, help="CSV decimal separator"
)
@engine_options("if the load is predicted to be faster on Spark")
@click.option("--report", is_flag=True, help="Print every invalid line, regardless of --max-errors")
@click.option(
    "--max-errors",
    metavar="N",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Maximum number of invalid lines to print",
)
@click.option(
    "--max-row-bytes",
    metavar="N",
    type=click.IntRange(1),
    help="Maximum row size in bytes  [default: $OMNIGRAPH_MAX_ROW_BYTES, or 32 MiB, not counting large blobs]",
)
@click.option("--rejects", metavar="DIR", help="Write all invalid lines to DIR, as Parquet and NDJSON")
@click.option("--dry-run", is_flag=True, help="Check the data without loading it")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit")
@click.option("--message", "-m", help="Commit message")
@idempotency_key_option
@click.option("--no-progress", is_flag=True, help="Hide the progress bar")
@external_blobs_option
@graph_arguments()
@actor_option
@yes_option
@shared_options
def load(address: GraphAddress, data: tuple[str, ...], mode: str, **options: Any) -> None:
    """Load records: append rejects existing ids, merge replaces entities, overwrite replaces whole types.

    With patch, each record identifies an existing entity by its key or id, and changes only the properties in the
    record. A record that matches no entity is an error. With delete, the entities that the records identify are
    deleted, nodes together with their edges. An edge may also be identified by its endpoints. Records that match no
    entity are counted and otherwise ignored.

    A load creates one commit. If any line is invalid, nothing is written. Files in different formats and of different
    types may be combined. With TYPE=PATH, every record in the file has that type, and NDJSON records have no envelope.
    Without TYPE, a CSV or Parquet file must be named after its type. The endpoints of an edge may be named from and to,
    or src and dst.

    If an edge type has no @key, an edge without an id gets a new id in every load, even with merge. Repeating the load
    therefore duplicates these edges. To prevent this, declare @key(src, dst) in the schema, give edges an "id" in their
    "data", pass --idempotency-key, or declare @unique(src, dst), which rejects repeated edges.
    """
    root = resolve_target(address)
    if mode == "overwrite":
        require_consent("load --mode overwrite", root, yes=options["yes"])
    announce_target("load into", root)
    mark_as_write()
    graph = open_graph(root, actor=options["actor"], external_blobs=options["external_blobs"] or None)
    wants_report = options["report"] or options["rejects"] is not None or options["dry_run"]
    with show_progress("load", hidden=options["no_progress"]) as progress_bar:
        outcome = graph.load(
            _choose_source(data),
            mode=mode,  # type: ignore[arg-type]
            branch=options["branch"],
            from_=options["base"],
            format=options["format"],
            mapping=_read_mapping(options["mapping"]),
            csv=_csv_options(options),
            on_error="report",
            engine="spark" if options["master"] or options["remote"] else options["engine"],
            spark=open_spark_session(options["master"], options["remote"]),
            rejects=options["rejects"],
            max_errors=None if options["report"] else options["max_errors"],
            dry_run=options["dry_run"],
            progress=progress_bar,
            max_row_bytes=options["max_row_bytes"],
            **{option_name: options[option_name] for option_name in _WRITE_OPTIONS},
        )
    from omnigraph.api.results.receipt import LoadReport

    if isinstance(outcome, LoadReport):
        is_single_problem = len(outcome) + outcome.left_out == 1 and outcome.problems[0].file in (None, *data)
        if outcome.error is not None and not wants_report and is_single_problem and len(data) == 1:
            raise outcome.error
        _print_problems(outcome, ", ".join(files.display_name(path) for path in data))
        click.get_current_context().exit(exits.error_exit_code(outcome.error or InputError()))
    _print_receipt(outcome, root.uri, mode, options["base"], is_dry_run=options["dry_run"])
    show.warnings(graph.warnings)


def _choose_source(data: tuple[str, ...]) -> Any:
    """Return the source to load: standard input, one path, or a list of paths. Any path may have a type."""
    if data == (files.STDIN,):
        return sys.stdin.buffer
    parts = [_read_part(argument) for argument in data]
    stdin_count = sum(isinstance(part, Mapping) and sys.stdin.buffer in part.values() for part in parts)
    if files.STDIN in data or stdin_count > 1:
        raise click.UsageError("--data - reads standard input; to combine standard input with files, pass TYPE=- once")
    return parts[0] if len(parts) == 1 else parts


def _read_part(argument: str) -> Any:
    match = _TYPED_PATH.fullmatch(argument)
    if match is None:
        return argument
    return {match[1]: sys.stdin.buffer if match[2] == files.STDIN else match[2]}


def _csv_options(options: dict[str, Any]) -> "CsvOptions":
    from omnigraph.ingest.csv_options import CsvOptions

    return CsvOptions(
        delimiter=options["csv_delimiter"],
        quote="" if options["csv_quote"] == "none" else options["csv_quote"],
        null=options["csv_null"] or "",
        header=options["csv_header"] or None,
        columns=_read_columns(options["csv_columns"]),
        encoding=options["csv_encoding"],
        decimal=options["csv_decimal"],
    )


def _read_columns(arguments: tuple[str, ...]) -> Any:
    """Return the column names for CSV files without a header line, as one list or by type, or None."""
    columns_by_type = {}
    for argument in arguments:
        type_name, _, names = argument.rpartition("=")
        columns_by_type[type_name] = [name.strip() for name in names.split(",")]
    if "" in columns_by_type and len(arguments) > 1:
        raise click.UsageError(
            "--csv-columns: pass one list of names for all files, or one TYPE=NAMES list for each type"
        )
    return columns_by_type.get("", columns_by_type or None)


def _read_mapping(argument: str | None) -> Any:
    """Read a mapping from a file, or from the argument itself if it begins with a brace."""
    if argument is None:
        return None
    import json

    is_json_text = argument.lstrip().startswith("{")
    source_name = "--mapping" if is_json_text else argument
    try:
        mapping = json.loads(argument if is_json_text else files.read_source(argument).text)
    except json.JSONDecodeError as error:
        raise InputError(f"{source_name} is not valid JSON: {error.msg}", reason="malformed mapping") from None
    if not isinstance(mapping, dict) or not all(isinstance(columns, dict) for columns in mapping.values()):
        reason = 'expected {"Type": {"column": "property"}}'
        raise InputError(f"{source_name} is not a mapping: {reason}", reason="malformed mapping")
    return mapping


def _print_problems(report: "LoadReport", source_names: str) -> None:
    if settings().json or settings().json_errors:
        message = f"{show.count(len(report), 'invalid line')} in {source_names}; nothing was written"
        members = report.error.to_json() if isinstance(report.error, KeyConflict) else InputError(message).to_json()
        show.document(members | {"error": message, "problems": report.to_dicts()})
        return
    hint = report.error.advice if report.error is not None else None
    for problem in report:
        show.problem(problem.reason if problem.file is None else f"{problem.file}: {problem.reason}", hint)
        hint = None  # shown once, because the hint is usually the same for all problems
    if report.left_out:
        show.problem(f"… and {report.left_out} more", None)
    problem_count = show.count(len(report) + report.left_out, "problem")
    show.problem(f"{problem_count} in {source_names}; nothing was written", None)


def _print_receipt(receipt: "Receipt", uri: str, mode: str, base: str | None, *, is_dry_run: bool = False) -> None:
    if settings().json:
        show.document(_receipt_document(receipt, uri, mode, base))
        return
    branch_note = "new branch " if receipt.branch_created else ""
    verb, details = _describe_counts(receipt, mode, is_dry_run)
    preposition = "from" if mode == "delete" else "into"
    summary = f"{verb} {preposition} {branch_note}{receipt.branch} (mode: {mode}){details}"
    show.confirmation(summary, preview=is_dry_run)
    if receipt.nulled:
        effect = "would remove" if is_dry_run else "removed"
        removal = f"the merge {effect} the values of properties missing from the input: {_describe_nulled(receipt)}"
        show.confirmation(removal, preview=is_dry_run)
        show.note("hint: use --mode patch to change only the properties in the input")
    if receipt.steps:
        show.note(_describe_timing(receipt))
        if receipt.engine_reason:
            show.note(f"engine {receipt.engine}: {receipt.engine_reason}")


def _describe_counts(receipt: "Receipt", mode: str, is_dry_run: bool) -> tuple[str, str]:
    """Return the parts of a load's summary that come before and after the branch name."""
    stem, done = ("delete", "deleted") if mode == "delete" else ("load", "loaded")
    if receipt.replayed:
        return f"{done} nothing", f": commit {receipt.commit_id} already used this idempotency key"
    loaded_counts = _describe_by_type(receipt.nodes, receipt.edges)
    missing_counts = _describe_by_type(receipt.missing)
    missing_text = f"; not found: {', '.join(missing_counts)}" if missing_counts else ""
    if not loaded_counts:
        return f"nothing to {stem}", missing_text
    details = f": {', '.join(loaded_counts)}{missing_text}"
    if receipt.commit is None and not is_dry_run:
        reason = (
            "all of these values were already stored" if mode == "patch" else "all of these entities already existed"
        )
        details += f"; {reason}, so nothing changed"
    return f"would {stem}" if is_dry_run else done, details


def _describe_by_type(*counts: Mapping[str, int]) -> list[str]:
    return [f"{count} {type_name}" for counts_by_type in counts for type_name, count in counts_by_type.items()]


def _describe_nulled(receipt: "Receipt") -> str:
    """Describe which values became null, as in `Person.age (2), Person.city (1)`."""
    return ", ".join(
        f"{type_name}.{property_name} ({count})"
        for type_name, counts in receipt.nulled.items()
        for property_name, count in counts.items()
    )


def _describe_timing(receipt: "Receipt") -> str:
    """Describe how long a load took, as in `20.9 s (start 8.6, stage 8.1, publish 4.2), 89,431 rows/s`.

    `start` is the time until the first step begins, and includes the start of Spark. The rate does not include it.
    """
    work_seconds = sum(receipt.steps.values())
    steps = {"start": max(receipt.elapsed - work_seconds, 0.0), **receipt.steps}
    step_times = ", ".join(f"{step_name} {seconds:.1f}" for step_name, seconds in steps.items())
    total_seconds = sum(steps.values())
    facts = [f"{total_seconds:.1f} s ({step_times})", f"{receipt.total / max(work_seconds, 0.001):,.0f} rows/s"]
    if receipt.written:
        facts.append(f"{receipt.written / 1e6:,.1f} MB")
    return ", ".join(facts + ([f"commit {receipt.commit_id}"] if receipt.commit else []))


def _receipt_document(receipt: "Receipt", uri: str, mode: str, base_branch: str | None) -> dict[str, Any]:
    from .commit import commit_document

    return {
        "uri": uri,
        "branch": receipt.branch,
        "mode": mode,
        "base_branch": base_branch if receipt.branch_created else None,
        "branch_created": receipt.branch_created,
        "nodes": _count_documents(receipt.nodes, mode),
        "edges": _count_documents(receipt.edges, mode),
        "total_entities": receipt.total,
        **(
            {"missing": [{"name": name, "entities": receipt.missing[name]} for name in sorted(receipt.missing)]}
            if mode == "delete"
            else {}
        ),
        **(
            {"nulled": [{"name": name, "properties": dict(receipt.nulled[name])} for name in sorted(receipt.nulled)]}
            if receipt.nulled
            else {}
        ),
        **({"seconds": dict(receipt.steps), "bytes": receipt.written} if receipt.steps else {}),
        "engine": receipt.engine,
        "engine_reason": receipt.engine_reason or None,
        "actor_id": receipt.commit.actor if receipt.commit is not None else None,
        "commit": commit_document(receipt.commit) if receipt.commit is not None else None,
    }


def _count_documents(counts_by_type: Any, mode: str) -> list[dict[str, Any]]:
    count_member = "entities_deleted" if mode == "delete" else "entities_loaded"
    return [
        {"name": type_name, count_member: entity_count} for type_name, entity_count in sorted(counts_by_type.items())
    ]
