"""`omnigraph snapshot`: the tables of a branch and their versions."""

from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import address, shown_at, store_option, uri_argument
from .options import settings, shared_options

if TYPE_CHECKING:
    from omnigraph.history.snapshot import Snapshot


@click.command()
@uri_argument
@click.option("--branch", help="Branch; main unless --at is given")
@click.option(
    "--at", "point", metavar="REVISION", help="Commit, tag, version, timestamp, or main~3"
)
@store_option
@shared_options
def snapshot(uri: str | None, branch: str | None, point: str | None, store: str | None) -> None:
    """Show the tables of the newest or a past state of a branch: types, versions and sizes."""
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
        "datasets": [_dataset(found, key) for key in sorted(found.tables)],
    }


def _dataset(found: "Snapshot", key: str) -> dict[str, Any]:
    """Describe one type: published version, version that plain Lance tools see, index coverage."""
    from omnigraph.storage.head import attached_versions
    from omnigraph.storage.index import covered, kinds_of

    entry, table = found.tables[key], found.table(key)
    rows = {one.fragment_id: one.count_rows() for one in table.dataset.get_fragments()}
    kinds = kinds_of(table)
    return {
        "entity_kind": key.partition(":")[0],
        "type_name": key.partition(":")[2],
        "dataset_path": entry.location,
        "published_dataset_version": entry.version,
        "native_dataset_branch": entry.branch,
        "entity_count": entry.rows,
        "lance_version": str(entry.lance_version),  # too large for a JSON number
        "lance_head_version": max(attached_versions(found.store, entry.location), default=None),
        "fragment_count": len(rows),
        "index_coverage": {
            name: {
                "kind": kinds[name],
                "covered_rows": sum(rows.get(fragment_id, 0) for fragment_id in held),
            }
            for name, held in sorted(covered(table).items())
        },
    }
