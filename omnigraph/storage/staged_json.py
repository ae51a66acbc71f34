"""Convert staged changes to and from JSON, so that another process can commit them if their writer dies.

This module defines the JSON representation of staged operations. It never writes anything itself.
"""

import json
from collections.abc import Mapping
from typing import Any

from lance import FragmentMetadata, LanceOperation

from .checksums import FileChecksum
from .table import FragmentFingerprint, StagedChange, Table


def staged_to_json(staged: StagedChange) -> dict[str, Any]:
    """Return a staged change as JSON-compatible data."""
    touched_json = [
        [fingerprint.fragment_id, list(fingerprint.data_paths), fingerprint.deletion_entry]
        for fingerprint in staged.touched_fragments
    ]
    return {
        "location": staged.location,
        "fields": staged.schema_fingerprint,
        "touched": touched_json,
        "rows": staged.row_delta,
        "files": list(staged.written_files),
        "checksums": {file_name: checksum.to_json() for file_name, checksum in staged.checksums.items()},
        **_operation_to_json(staged.operation),
    }


def staged_from_json(members: Mapping[str, Any], table: Table) -> StagedChange:
    """Restore a staged change from JSON-compatible data, for the given version of its table."""
    touched_fragments = tuple(
        FragmentFingerprint(fragment_id, tuple(data_paths), deletion_entry)
        for fragment_id, data_paths, deletion_entry in members["touched"]
    )
    return StagedChange(
        members["location"],
        _operation_from_json(members, table),
        members["fields"],
        touched_fragments,
        members["rows"],
        tuple(members["files"]),
        checksums={
            file_name: FileChecksum.from_json(checksum_json)
            for file_name, checksum_json in members.get("checksums", {}).items()
        },
    )


def _operation_to_json(operation: Any) -> dict[str, Any]:
    if isinstance(operation, LanceOperation.Append):
        return {"kind": "append", "new": _fragments_to_json(operation.fragments)}
    if isinstance(operation, LanceOperation.Overwrite):
        return {"kind": "overwrite", "new": _fragments_to_json(operation.fragments)}
    if isinstance(operation, LanceOperation.Rewrite):
        groups = operation.groups
        return {
            "kind": "rewrite",
            "groups": [
                [_fragments_to_json(rewrite_group.old_fragments), _fragments_to_json(rewrite_group.new_fragments)]
                for rewrite_group in groups
            ],
        }
    return {
        "kind": "update",
        "removed": list(operation.removed_fragment_ids),
        "updated": _fragments_to_json(operation.updated_fragments),
        "new": _fragments_to_json(operation.new_fragments),
        **({"modified_fields": list(operation.fields_modified)} if operation.fields_modified else {}),
    }


def _operation_from_json(members: Mapping[str, Any], table: Table) -> Any:
    if members["kind"] == "rewrite":
        return LanceOperation.Rewrite([_rewrite_group_from_json(*group) for group in members["groups"]], [])
    new_fragments = [_fragment_from_json(fragment_json) for fragment_json in members["new"]]
    if members["kind"] == "append":
        return LanceOperation.Append(new_fragments)
    if members["kind"] == "overwrite":
        return LanceOperation.Overwrite(table.dataset.lance_schema, new_fragments)
    return LanceOperation.Update(
        removed_fragment_ids=list(members["removed"]),
        updated_fragments=[_fragment_from_json(fragment_json) for fragment_json in members["updated"]],
        new_fragments=new_fragments,
        fields_modified=list(members.get("modified_fields", ())),
        update_mode="rewrite_columns" if members.get("modified_fields") else "",
    )


def _rewrite_group_from_json(old_json: list[Any], new_json: list[Any]) -> Any:
    return LanceOperation.RewriteGroup(
        [_fragment_from_json(fragment_json) for fragment_json in old_json],
        [_fragment_from_json(fragment_json) for fragment_json in new_json],
    )


def _fragments_to_json(fragments: Any) -> list[Any]:
    return [fragment.to_json() for fragment in fragments]


def _fragment_from_json(fragment_json: Any) -> FragmentMetadata:
    return FragmentMetadata.from_json(json.dumps(fragment_json))
