"""`omnigraph check`: verify graph integrity, or that an entity is completely erased."""

from typing import TYPE_CHECKING, Any

import click

from . import exits, show
from .address import address, direct_only, store_option, uri_argument
from .engines import chosen, engine_options
from .options import settings, shared_options

if TYPE_CHECKING:
    from omnigraph.health.finding import Checkup
    from omnigraph.storage.root import Root


_CHECKSUMS = ("verified", "unrecorded")


@click.command()
@uri_argument
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
    help="With --absent: another file or folder to search, such as rejects; may be repeated",
)
@click.option("--quick", is_flag=True, help="Skip rows, indexes and file contents")
@click.option(
    "--sample",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="Quick check that also verifies the content of this percentage of the files",
)
@engine_options("for 32 GiB of files or more")
@store_option
@direct_only
@shared_options
def check(  # noqa: PLR0913, PLR0917 - an argument for each option
    uri: str | None,
    store: str | None,
    absent: tuple[str, str] | None,
    also: tuple[str, ...],
    quick: bool,
    sample: float | None,
    engine: str,
    master: str | None,
    remote: str | None,
) -> None:
    """Verify graph integrity: names, logs, files, schema rules and indexes.

    Every file that has a recorded checksum is read and compared with it.

    Exits 1 if there are errors, 5 if there are only warnings. With --absent, verifies instead that
    an entity is completely erased, and exits 5 if traces of it remain. Nothing is written.
    """
    root = address(uri, store)
    if absent is not None:
        if quick or sample is not None:
            raise click.UsageError("--absent cannot be combined with --quick or --sample")
        _absent(root, absent, also)
        return
    if also:
        raise click.UsageError("--also needs --absent")
    share = sample / 100 if sample is not None else None
    _whole(root, quick, share, chosen(engine, master, remote))


def _whole(root: "Root", quick: bool, sample: float | None, spark: dict[str, Any]) -> None:
    # Not through a graph handle: this must work for a graph that cannot be opened.
    from omnigraph.health.check import check_graph, executor_for
    from omnigraph.storage.effects import Effects
    from omnigraph.storage.store import open_store

    store = open_store(root.uri, effects=Effects(read_only=True))
    executor = executor_for(store, spark["engine"], spark.get("spark"))
    found = check_graph(store, quick=quick, sample=sample, executor=executor)
    if settings().json:
        show.document({"uri": root.uri, **found.to_json()})
    else:
        _show(found, quick or sample is not None)
    if not found:
        raise click.exceptions.Exit(exits.FAILED)
    if found.findings:
        raise click.exceptions.Exit(exits.DIFFERENCES)


def _show(found: "Checkup", quick: bool) -> None:
    for one in found.findings:
        show.result(str(one))
    for hint in dict.fromkeys(one.hint for one in found.findings if one.hint is not None):
        show.note(f"hint: {hint}")
    if found.more:
        show.result(f"and {show.count(found.more, 'finding')} more")
    if found.damage:
        for name, commit in found.readable.items():
            show.result(f"newest readable commit of {name}: {commit or 'none'}")
    nouns = {"branches": "branch"}  # all other plurals end in s
    read = ", ".join(
        show.count(number, nouns.get(what, what.removesuffix("s")))
        for what, number in found.read.items()
        if what not in _CHECKSUMS
        and (number or (what != "tags" and not (quick and what == "rows")))
    )
    if found.read["unrecorded"]:
        older = show.count(found.read["unrecorded"], "file")
        show.note(f"{older} without a checksum, written before checksums were recorded")
    verified = show.count(found.read["verified"], "file")
    read += f", the content of {verified} verified" if found.read["verified"] else ""
    wrong = sum(one.severity == "error" for one in found.findings) + found.more
    warned = len(found.findings) - wrong + found.more
    said = [show.count(wrong, "error")] if wrong else []
    said += [show.count(warned, "warning")] if warned else []
    show.result(f"{', '.join(said) or 'graph is healthy'}; {read}")


def _absent(root: "Root", absent: tuple[str, str], also: tuple[str, ...]) -> None:
    from omnigraph.api.opening import open as open_graph

    found = open_graph(root.uri, read_only=True).maintenance.check_absent(*absent, also=also)
    if settings().json:
        show.document({"uri": root.uri, **found.to_json()})
    else:
        for one in found.traces:
            where = f" of {one.type_key}" if one.type_key else ""
            show.result(f"{one.kind}{where}: {one.name}")
        read = f"{show.count(found.files, 'file')}, {found.bytes:,} bytes read"
        what = "no trace" if found else show.count(len(found.traces), "trace")
        show.result(f"{what} of {absent[0]} {absent[1]}; {read}")
    if not found:
        raise click.exceptions.Exit(exits.DIFFERENCES)
