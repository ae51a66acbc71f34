"""`omnigraph snapshot`: which tables a branch shows, at which versions."""

from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import address, shown_at, store_option, uri_argument
from .options import settings, shared_options

if TYPE_CHECKING:
    from omnigraph.history.snapshot import Snapshot


@click.command()
@uri_argument
@click.option("--branch", help="The branch; main unless a point is given.")
@click.option(
    "--at", "point", metavar="POINT", help="A commit, a tag, a version, a moment, or main~3."
)
@store_option
@shared_options
def snapshot(uri: str | None, branch: str | None, point: str | None, store: str | None) -> None:
    """Show the newest state of a branch, or a past one: its types, their versions and sizes."""
    root = address(uri, store)
    found = shown_at(root.uri, branch, point).snapshot
    if settings().json:
        show.document(_document(found))
        return
    show.result(f"branch {found.branch} at {found.commit_id}, version {found.manifest_version}")
    for key, entry in sorted(found.tables.items()):
        show.result(f"  {key}: version {entry.version}, {show.count(entry.rows, 'row')}")


def _document(found: "Snapshot") -> dict[str, Any]:
    from omnigraph.storage.layout import STAMP

    return {
        "graph_branch": found.branch,
        "graph_commit_id": found.commit_id,
        "graph_manifest_version": found.manifest_version,
        "internal_schema_version": STAMP,
        "datasets": [
            {
                "entity_kind": key.partition(":")[0],
                "type_name": key.partition(":")[2],
                "dataset_path": entry.location,
                "published_dataset_version": entry.version,
                "native_dataset_branch": entry.branch,
                "entity_count": entry.rows,
            }
            for key, entry in sorted(found.tables.items())
        ],
    }
