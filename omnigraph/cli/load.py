"""`omnigraph load`: load records into a graph, as one commit."""

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import InputError

from . import exits, files, show
from .address import (
    actor_option,
    address,
    consent,
    store_option,
    tell_target,
    uri_argument,
    yes_option,
)
from .engines import engine_options, session_at
from .options import settings, shared_options, will_write
from .progress import progress

if TYPE_CHECKING:
    from omnigraph.receipt import LoadReport, Receipt

_MODES = ("overwrite", "append", "merge")
_FORMATS = ("ndjson", "parquet", "csv")
_TERMS = ("if_commit", "message", "idempotency_key")
_TYPED = re.compile(r"([A-Z]\w*)=(.+)")


@click.command()
@uri_argument
@click.option(
    "--data",
    required=True,
    multiple=True,
    metavar="[TYPE=]PATH",
    type=click.Path(allow_dash=True),
    help="NDJSON, Parquet or CSV files, folders or patterns; - is standard input; may be repeated",
)
@click.option("--mode", required=True, type=click.Choice(_MODES), help="How to handle existing ids")
@click.option("--branch", default="main", show_default=True, help="Branch to load into")
@click.option("--from", "base", metavar="BASE", help="Create the branch from BASE if it is missing")
@click.option("--format", type=click.Choice(_FORMATS), help="Format of all files, overriding names")
@click.option("--mapping", metavar="PATH", help="JSON file that maps columns to properties by type")
@engine_options("for 64 MiB or more")
@click.option(
    "--report", is_flag=True, help="Print every bad line, not only the first --max-errors"
)
@click.option(
    "--max-errors",
    metavar="N",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Maximum number of bad lines to print",
)
@click.option("--rejects", metavar="DIR", help="Write all bad lines to DIR, as Parquet and NDJSON")
@click.option("--dry-run", is_flag=True, help="Check the data without writing")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit")
@click.option("--message", "-m", help="Commit message")
@click.option("--idempotency-key", metavar="KEY", help="Key that makes a repeated load do nothing")
@click.option("--no-progress", is_flag=True, help="Hide the progress bar")
@store_option
@actor_option
@yes_option
@shared_options
def load(uri: str | None, data: tuple[str, ...], mode: str, store: str | None, **how: Any) -> None:
    """Load records: append rejects existing ids, merge replaces them, overwrite replaces types.

    One load is one commit. A single bad line, and nothing is written.

    An edge without an id gets a new id in every load, also with merge, so repeating a load
    duplicates such edges. To prevent this, give edges an "id" in their "data", pass
    --idempotency-key, or declare @unique(src, dst) in the schema, which rejects the second edge.
    """
    root = address(uri, store)
    if mode == "overwrite":
        consent("load --mode overwrite", root, yes=how["yes"])
    tell_target("load into", root)
    will_write()
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, actor=how["actor"])
    asked = how["report"] or how["rejects"] is not None or how["dry_run"]
    with progress("load", hidden=how["no_progress"]) as told:
        done = graph.load(
            _source(data),
            mode=mode,  # type: ignore[arg-type]
            branch=how["branch"],
            from_=how["base"],
            format=how["format"],
            mapping=_mapping(how["mapping"]),
            on_error="report",
            engine="spark" if how["master"] or how["remote"] else how["engine"],
            spark=session_at(how["master"], how["remote"]),
            rejects=how["rejects"],
            max_errors=None if how["report"] else how["max_errors"],
            dry_run=how["dry_run"],
            progress=told,
            **{name: how[name] for name in _TERMS},
        )
    from omnigraph.receipt import LoadReport

    if isinstance(done, LoadReport):
        lone = len(done) + done.left_out == 1 and done.problems[0].file in (None, *data)
        if done.error is not None and not asked and lone and len(data) == 1:
            raise done.error
        _refuse(done, ", ".join(files.name_of(one) for one in data))
        click.get_current_context().exit(exits.FAILED)
    _tell(done, root.uri, mode, how["base"], checked=how["dry_run"])
    show.warnings(graph.warnings)


def _source(data: tuple[str, ...]) -> Any:
    """Return what to load: standard input, one path, several, or paths by type."""
    if len(data) == 1 and data[0] == files.STDIN:
        return sys.stdin.buffer
    if files.STDIN in data:
        raise click.UsageError("--data - is standard input and cannot be combined with other files")
    typed = [_TYPED.fullmatch(argument) for argument in data]
    if not any(typed):
        return data[0] if len(data) == 1 else list(data)
    found: dict[str, list[str]] = {}
    for one, given in zip(typed, data, strict=True):
        if one is None:
            raise click.UsageError(f"--data {given}: give a type to all paths, or to none")
        found.setdefault(one[1], []).append(one[2])
    return found


def _mapping(path: str | None) -> Any:
    if path is None:
        return None
    import json

    try:
        found = json.loads(files.read_source(path).text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} is not valid JSON: {error.msg}", reason="malformed mapping"
        ) from None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        reason = 'expected {"Type": {"column": "property"}}'
        raise InputError(f"{path} is not a mapping: {reason}", reason="malformed mapping")
    return found


def _refuse(found: "LoadReport", name: str) -> None:
    if settings().json:
        error = InputError(f"{len(found)} bad lines in {name}; nothing was written")
        show.document(error.to_json() | {"problems": found.to_dicts()})
        return
    hint = found.error.advice if found.error is not None else None
    for one in found:
        show.problem(one.reason if one.file is None else f"{one.file}: {one.reason}", hint)
        hint = None  # shown once: it is likely the same for all
    if found.left_out:
        show.problem(f"… and {found.left_out} more", None)
    bad = show.count(len(found) + found.left_out, "problem")
    show.problem(f"{bad} in {name}; nothing was written", None)


def _tell(done: "Receipt", uri: str, mode: str, base: str | None, *, checked: bool = False) -> None:
    if settings().json:
        show.document(_document(done, uri, mode, base))
        return
    counts = [f"{n} {name}" for part in (done.nodes, done.edges) for name, n in part.items()]
    told = f": {', '.join(counts)}" if counts else ", nothing to load"
    if counts and done.commit is None and not checked:
        told += "; all of it already existed, nothing changed"
    elif done.replayed:
        told = f", nothing: this key was already used by commit {done.commit_id}"
    made = " (new branch)" if done.branch_created else ""
    did = "checked for" if checked else "loaded"
    show.result(f"{did} {done.branch}{made} by {mode}{told}")
    if done.steps:
        show.note(_summary(done))


def _summary(done: "Receipt") -> str:
    """Describe the time of a load: `12.3 s (stage 8.1, check 4.0, publish 0.2), 89,431 rows/s`."""
    parts = ", ".join(f"{name} {spent:.1f}" for name, spent in done.steps.items())
    spent = sum(done.steps.values())
    told = [f"{spent:.1f} s ({parts})", f"{done.total / max(spent, 0.001):,.0f} rows/s"]
    if done.written:
        told.append(f"{done.written / 1e6:,.1f} MB")
    return ", ".join(told + ([f"commit {done.commit_id}"] if done.commit else []))


def _document(done: "Receipt", uri: str, mode: str, base: str | None) -> dict[str, Any]:
    from .commit import document

    return {
        "uri": uri,
        "branch": done.branch,
        "mode": mode,
        "base_branch": base if done.branch_created else None,
        "branch_created": done.branch_created,
        "nodes": _counts(done.nodes),
        "edges": _counts(done.edges),
        "total_entities": done.total,
        **({"seconds": dict(done.steps), "bytes": done.written} if done.steps else {}),
        "actor_id": done.commit.actor if done.commit is not None else None,
        "commit": document(done.commit) if done.commit is not None else None,
    }


def _counts(counted: Any) -> list[dict[str, Any]]:
    return [{"name": name, "entities_loaded": n} for name, n in sorted(counted.items())]
