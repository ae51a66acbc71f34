"""Staged changes as JSON, so that another process can commit them after their writer is gone.

Owns the JSON form of staged operations. Never writes anything itself.
"""

import json
from collections.abc import Mapping
from typing import Any

from lance import FragmentMetadata, LanceOperation

from .checksums import FileChecksum
from .table import Mark, Staged, Table


def staged_to_json(staged: Staged) -> dict[str, Any]:
    """Return a staged change as plain data."""
    touched = [[one.fragment, list(one.files), one.deletions] for one in staged.touched]
    return {
        "location": staged.location,
        "fields": staged.fields,
        "touched": touched,
        "rows": staged.rows,
        "files": list(staged.files),
        "checksums": {name: checksum.to_json() for name, checksum in staged.checksums.items()},
        **_operation_to_json(staged.operation),
    }


def staged_from_json(facts: Mapping[str, Any], table: Table) -> Staged:
    """Restore a staged change from plain data, for a version of its table."""
    touched = tuple(Mark(number, tuple(files), gone) for number, files, gone in facts["touched"])
    return Staged(
        facts["location"],
        _operation_from_json(facts, table),
        facts["fields"],
        touched,
        facts["rows"],
        tuple(facts["files"]),
        checksums={k: FileChecksum.from_json(v) for k, v in facts.get("checksums", {}).items()},
    )


def _operation_to_json(operation: Any) -> dict[str, Any]:
    if isinstance(operation, LanceOperation.Append):
        return {"kind": "append", "new": _fragments(operation.fragments)}
    if isinstance(operation, LanceOperation.Overwrite):
        return {"kind": "overwrite", "new": _fragments(operation.fragments)}
    if isinstance(operation, LanceOperation.Rewrite):
        groups = operation.groups
        return {
            "kind": "rewrite",
            "groups": [
                [_fragments(one.old_fragments), _fragments(one.new_fragments)] for one in groups
            ],
        }
    return {
        "kind": "update",
        "removed": list(operation.removed_fragment_ids),
        "updated": _fragments(operation.updated_fragments),
        "new": _fragments(operation.new_fragments),
    }


def _operation_from_json(facts: Mapping[str, Any], table: Table) -> Any:
    if facts["kind"] == "rewrite":
        return LanceOperation.Rewrite([_group(*group) for group in facts["groups"]], [])
    new = [_fragment(one) for one in facts["new"]]
    if facts["kind"] == "append":
        return LanceOperation.Append(new)
    if facts["kind"] == "overwrite":
        return LanceOperation.Overwrite(table.dataset.lance_schema, new)
    return LanceOperation.Update(
        removed_fragment_ids=list(facts["removed"]),
        updated_fragments=[_fragment(one) for one in facts["updated"]],
        new_fragments=new,
        update_mode="",
    )


def _group(old: list[Any], new: list[Any]) -> Any:
    return LanceOperation.RewriteGroup(
        [_fragment(one) for one in old], [_fragment(one) for one in new]
    )


def _fragments(found: Any) -> list[Any]:
    return [one.to_json() for one in found]


def _fragment(facts: Any) -> FragmentMetadata:
    return FragmentMetadata.from_json(json.dumps(facts))
