"""`omnigraph check`: verify the integrity of a graph, or verify that an entity is completely erased."""

from typing import TYPE_CHECKING, Any

import click

from . import exits, show
from .address import GraphAddress, graph_arguments, resolve_target
from .engines import engine_arguments, engine_options
from .opening import open_graph
from .options import settings, shared_options
from .server_target import ServerTarget

if TYPE_CHECKING:
    from omnigraph.maintenance.finding import Checkup
    from omnigraph.storage.root import GraphRoot


_CHECKSUM_COUNTS = ("verified", "unrecorded")


@click.command()
@click.option(
    "--absent",
    nargs=2,
    metavar="TYPE ID",
    help="Search for traces of an entity in every file, including deleted rows and indexes",
)
@click.option(
    "--also",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True),
    help="Additional file or folder to search with --absent, such as a folder written by --rejects; may be repeated",
)
@click.option("--quick", is_flag=True, help="Do not check rows, indexes or file contents")
@click.option(
    "--sample",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="Run a quick check that also verifies the contents of this percentage of files",
)
@engine_options("for 32 GiB of files or more")
@graph_arguments()
@shared_options
def check(  # noqa: PLR0913, PLR0917 - an argument for each option
    address: GraphAddress,
    absent: tuple[str, str] | None,
    also: tuple[str, ...],
    quick: bool,
    sample: float | None,
    engine: str,
    master: str | None,
    remote: str | None,
) -> None:
    """Verify graph integrity: names, logs, files, schema rules and indexes.

    Every file that has a recorded checksum is read and verified.

    Exits with code 1 if there are errors, or 5 if there are only warnings. With --absent, verifies
    instead that an entity is completely erased, and exits with code 5 if traces of it remain.
    Nothing is written.
    """
    root = resolve_target(address)
    if absent is not None:
        if quick or sample is not None:
            raise click.UsageError("--absent cannot be combined with --quick or --sample")
        _check_absent(root, absent, also)
        return
    if also:
        raise click.UsageError("--also requires --absent")
    sample_fraction = sample / 100 if sample is not None else None
    _check_whole_graph(root, quick, sample_fraction, engine_arguments(engine, master, remote))


def _check_whole_graph(
    root: "GraphRoot | ServerTarget", quick: bool, sample: float | None, engine_choice: dict[str, Any]
) -> None:
    if isinstance(root, ServerTarget):
        report = open_graph(root, read_only=True).maintenance.check(quick=quick, sample=sample, **engine_choice)
    else:
        report = _check_files(root, quick, sample, engine_choice)
    if settings().json:
        show.document({"uri": root.uri, **report.to_json()})
    else:
        _print_report(report, quick or sample is not None)
    if not report:
        raise click.exceptions.Exit(exits.FAILED)
    if report.findings:
        raise click.exceptions.Exit(exits.DIFFERENCES)


def _check_files(root: "GraphRoot", quick: bool, sample: float | None, engine_choice: dict[str, Any]) -> "Checkup":
    # Do not open a graph handle here: a check must work even if the graph cannot be opened.
    from omnigraph.api.engine_choice import choose_check_executor
    from omnigraph.maintenance.check import check_graph
    from omnigraph.storage.effects import Effects
    from omnigraph.storage.store import open_store

    store = open_store(root.uri, effects=Effects(read_only=True))
    executor = choose_check_executor(store, (engine_choice["engine"], engine_choice.get("spark")))
    return check_graph(store, quick=quick, sample=sample, executor=executor)


def _print_report(report: "Checkup", quick: bool) -> None:
    for finding in report.findings:
        show.result(str(finding))
    for hint in dict.fromkeys(finding.hint for finding in report.findings if finding.hint is not None):
        show.note(f"hint: {hint}")
    if report.more:
        show.result(f"and {show.count(report.more, 'finding')} more")
    if report.damage:
        for branch_label, commit in report.readable.items():
            show.result(f"newest readable commit on {branch_label}: {commit or 'none'}")
    irregular_nouns = {"branches": "branch"}  # all other plurals just add an s
    coverage = ", ".join(
        show.count(number, irregular_nouns.get(plural, plural.removesuffix("s")))
        for plural, number in report.read.items()
        if plural not in _CHECKSUM_COUNTS and (number or (plural != "tags" and not (quick and plural == "rows")))
    )
    if report.read["unrecorded"]:
        unrecorded_files = show.count(report.read["unrecorded"], "file")
        show.note(f"{unrecorded_files} written before checksums were introduced could not be verified")
    verified_files = show.count(report.read["verified"], "file")
    coverage += f", contents of {verified_files} verified" if report.read["verified"] else ""
    if quick:
        files = "other files" if report.read["verified"] else "files"
        show.note(f"not checked: rows and the contents of indexes and {files}; omit --quick and --sample to check them")
    error_count = sum(finding.severity == "error" for finding in report.findings) + report.more
    warning_count = len(report.findings) - error_count + report.more
    verdict = [show.count(error_count, "error")] if error_count else []
    verdict += [show.count(warning_count, "warning")] if warning_count else []
    show.result(f"{', '.join(verdict) or 'graph is healthy'}; {coverage}")


def _check_absent(root: "GraphRoot | ServerTarget", absent: tuple[str, str], also: tuple[str, ...]) -> None:
    absence = open_graph(root, read_only=True).maintenance.check_absent(*absent, also=also)
    if settings().json:
        show.document({"uri": root.uri, **absence.to_json()})
    else:
        for trace in absence.traces:
            type_note = f" in {trace.type_key}" if trace.type_key else ""
            show.result(f"{trace.kind}{type_note}: {trace.name}")
        files_read = f"{show.count(absence.files, 'file')}, {absence.bytes:,} bytes read"
        verdict = "no trace" if absence else show.count(len(absence.traces), "trace")
        show.result(f"{verdict} of {absent[0]} {absent[1]}; {files_read}")
    if not absence:
        raise click.exceptions.Exit(exits.DIFFERENCES)
