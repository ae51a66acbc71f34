"""Convert a server's merge conflicts to those of an embedded graph, and the caller's decisions to the wire format."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from omnigraph.errors import EntityConflict, InputError
from omnigraph.merging.merged_schema import SCHEMA_CONFLICT
from omnigraph.merging.strategy import ConflictAnswer
from omnigraph.values.blobs import BlobDigest

from .handle import RemoteHandle
from .property_values import PropertyTypes, encode_properties, record_types
from .wire_values import decode_properties

_SIDES = ("ours", "theirs")


def decode_conflicts(handle: RemoteHandle, conflicts: Iterable[EntityConflict]) -> tuple[EntityConflict, ...]:
    """Return the conflicts, with their values converted from JSON to the Python types of the handle's schema."""
    conflicts = tuple(conflicts)
    if not any(conflict.base or conflict.ours or conflict.theirs for conflict in conflicts):
        return conflicts
    catalog = handle.schema_ir().catalog
    decoded = []
    for conflict in conflicts:
        find_type = catalog.edge if conflict.entity_kind == "edge" else catalog.node
        decode = partial(decode_properties, find_type(conflict.type_name))
        base, ours, theirs = decode(conflict.base), decode(conflict.ours), decode(conflict.theirs)
        decoded.append(replace(conflict, base=base, ours=ours, theirs=theirs))
    return tuple(decoded)


def is_schema_conflict(conflict: EntityConflict) -> bool:
    """Return whether a conflict is about the schema."""
    return conflict.kind == SCHEMA_CONFLICT


def write_decision(handle: RemoteHandle, conflict: EntityConflict, choice: ConflictAnswer) -> dict[str, Any]:
    """Return a decision in the format that the server expects."""
    resolution = {"type_name": conflict.type_name, "kind": conflict.kind, "entity_id": conflict.entity_id}
    if conflict.entity_kind in ("node", "edge"):
        resolution["entity_kind"] = conflict.entity_kind
    if isinstance(choice, Mapping):
        if is_schema_conflict(conflict):
            message = f"a {SCHEMA_CONFLICT} cannot be resolved with values"
            raise InputError(message, reason="use 'ours' or 'theirs'")
        return resolution | {"values": _encode_values(handle, conflict, choice)}
    if choice not in _SIDES:
        raise InputError(
            f"unknown conflict resolution '{choice}'",
            reason="expected 'ours' (the target), 'theirs' (the source), or a dict of values",
        )
    return resolution | {"choice": choice}


def _encode_values(handle: RemoteHandle, conflict: EntityConflict, values: Mapping[str, Any]) -> dict[str, Any]:
    digests = {name: value.to_json() for name, value in values.items() if isinstance(value, BlobDigest)}
    others = {name: value for name, value in values.items() if name not in digests}

    def find_types() -> PropertyTypes:
        catalog = handle.schema_ir().catalog
        find_type = catalog.edge if conflict.entity_kind == "edge" else catalog.node
        return record_types(find_type(conflict.type_name))

    return encode_properties(find_types, others) | digests
