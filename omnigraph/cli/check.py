"""`omnigraph check`: look whether a graph is as it should be.

Only `--absent` is built: whether an entity has left traces anywhere.
"""

import click

from . import exits, show
from .address import address, store_option, uri_argument
from .options import settings, shared_options


@click.command()
@uri_argument
@click.option(
    "--absent",
    nargs=2,
    metavar="TYPE ID",
    required=True,
    help="Look for traces of an entity in every file, deleted rows and indexes included.",
)
@click.option(
    "--also",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True),
    help="A file or folder more, such as one of rejected records; may be given again.",
)
@store_option
@shared_options
def check(
    uri: str | None, store: str | None, absent: tuple[str, str], also: tuple[str, ...]
) -> None:
    """Look whether an entity is gone for good; exit code 5 when there are traces of it."""
    root = address(uri, store)
    from omnigraph.graph import open as open_graph

    found = open_graph(root.uri, read_only=True).check_absent(*absent, also=also)
    if settings().json:
        show.document({"uri": root.uri, **found.to_json()})
    else:
        for one in found.traces:
            where = f" of {one.type_key}" if one.type_key else ""
            show.result(f"{one.kind}{where}: {one.name}")
        read = f"{show.count(found.files, 'file')}, {found.bytes:,} bytes were read"
        what = "no trace" if found else show.count(len(found.traces), "trace")
        show.result(f"{what} of {absent[0]} {absent[1]}; {read}")
    if not found:
        raise click.exceptions.Exit(exits.DIFFERENCES)
