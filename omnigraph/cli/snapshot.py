"""`omnigraph snapshot`: show a branch's tables and their versions."""

from typing import TYPE_CHECKING, Any

import click

from omnigraph.values.table_key import TableKey

from . import show
from .address import GraphAddress, graph_arguments, open_snapshot, resolve_target
from .options import settings, shared_options
from .server_target import ServerTarget

if TYPE_CHECKING:
    from omnigraph.history.snapshot import Snapshot


@click.command()
@click.option("--branch", help="Branch to read; defaults to main unless --at is given")
@click.option(
    "--at",
    "point",
    metavar="REVISION",
    help="Commit, tag, branch, version, time or other revision, such as '2 hours ago' or main~3",
)
@graph_arguments()
@shared_options
def snapshot(address: GraphAddress, branch: str | None, point: str | None) -> None:
    """Show the tables on a branch, now or at a past revision: types, versions and sizes."""
    root = resolve_target(address)
    opened_snapshot: Any = open_snapshot(root, branch, point).snapshot
    if settings().json:
        is_remote = isinstance(root, ServerTarget)
        show.document(opened_snapshot.document if is_remote else _snapshot_document(opened_snapshot))
        return
    position = f"{opened_snapshot.commit_id}, version {opened_snapshot.manifest_version}"
    show.result(f"branch {opened_snapshot.branch} at {position}")
    for type_key, entry in sorted(opened_snapshot.tables.items()):
        show.result(f"  {type_key}: version {entry.version}, {show.count(entry.row_count, 'row')}")


def _snapshot_document(opened_snapshot: "Snapshot") -> dict[str, Any]:
    from omnigraph.storage.layout import STAMP

    return {
        "graph_branch": opened_snapshot.branch,
        "graph_commit_id": opened_snapshot.commit_id,
        "graph_manifest_version": opened_snapshot.manifest_version,
        "internal_schema_version": STAMP,
        "datasets": [_dataset_document(opened_snapshot, type_key) for type_key in sorted(opened_snapshot.tables)],
    }


def _dataset_document(opened_snapshot: "Snapshot", type_key: TableKey) -> dict[str, Any]:
    """Describe one type: the published version, the version that plain Lance tools see, and index coverage."""
    from omnigraph.storage.column_index import index_coverage, kinds_by_index_key
    from omnigraph.storage.table_head import list_attached_versions

    entry, table = opened_snapshot.tables[type_key], opened_snapshot.table(type_key)
    rows_by_fragment = {fragment.fragment_id: fragment.count_rows() for fragment in table.dataset.get_fragments()}
    index_kinds = kinds_by_index_key(table)
    return {
        "entity_kind": type_key.kind,
        "type_name": type_key.type_name,
        "dataset_path": entry.location,
        "published_dataset_version": entry.version,
        "native_dataset_branch": entry.branch,
        "entity_count": entry.row_count,
        "lance_version": str(entry.lance_version),  # too large for a JSON number
        "lance_head_version": max(list_attached_versions(opened_snapshot.store, entry.location), default=None),
        "fragment_count": len(rows_by_fragment),
        "index_coverage": {
            column: {
                "kind": index_kinds[column],
                "covered_rows": sum(rows_by_fragment.get(fragment_id, 0) for fragment_id in covered_fragments),
            }
            for column, covered_fragments in sorted(index_coverage(table).items())
        },
    }
