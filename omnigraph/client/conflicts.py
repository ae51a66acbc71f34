"""Convert the values of merge conflicts to the Python types that an embedded graph returns."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from omnigraph.errors import EntityConflict

from .handle import RemoteHandle
from .wire_values import decode_properties


def decode_conflicts(handle: RemoteHandle, conflicts: Iterable[EntityConflict]) -> tuple[EntityConflict, ...]:
    """Return conflicts with values of the types that the schema of the handle declares."""
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
