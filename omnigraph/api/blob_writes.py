"""`put_blob`, which replaces a node's blob, optionally only if the blob still has the expected ETag.

The write is an ordinary update: it follows the same rules, can raise the same conflicts, and returns a receipt. If
`if_match` is given, the update also fails if the node changes between the comparison and the commit.
"""

import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Unpack

from omnigraph.api.blob_properties import BlobAddress, resolve_address
from omnigraph.api.blobs import Blob
from omnigraph.api.data_files import ProgressOption, progress_callback
from omnigraph.api.handle import Handle
from omnigraph.api.results.receipt import Receipt
from omnigraph.api.writes import WriteKeywords, update
from omnigraph.errors import BlobPreconditionFailed, EntityNotFound, InputError
from omnigraph.values.blobs import blob_source

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(\s*;\s*[\w-]+=[^;]+)*", re.ASCII)


def put_blob(  # noqa: PLR0913 - all but five are keywords
    handle: Handle,
    type_name: str,
    key: Any,
    property_name: str,
    content: Any,
    /,
    *,
    media_type: str | None = None,
    if_match: str | None = None,
    progress: ProgressOption = None,
    **options: Unpack[WriteKeywords],
) -> Receipt:
    """Set a blob on an existing node, as in `graph.put_blob("Doc", "a", "body", Path("a.pdf"))`.

    `content` is bytes, a path, a binary file, base64 text, the URI of an allowed external object, or None for NULL.
    Files are streamed, so they may be larger than memory. If `media_type` is given, it is stored in the String property
    `<property>_media_type`, which the type must declare. If `media_type` is omitted, that property is set to NULL. If
    `if_match` is given but is not the blob's current ETag, `BlobPreconditionFailed` is raised and nothing is written.
    The value `*` matches any blob that is not NULL. `progress` is called with the number of bytes read so far and the
    size of the input file. Pass True to show a progress bar.

    Raises `EntityNotFound` if the node does not exist, and the same errors as `update`.
    """
    target = handle.for_branch(options.pop("branch", None))
    snapshot = target.latest_snapshot()
    address = resolve_address(snapshot.schema.ir, type_name, key, property_name, "node")
    new_values = media_type_value(address, media_type)
    if if_match is not None:
        _require_match(target, address, if_match)
    with closing(target.new_pending_blobs(progress_callback(progress))) as pending:
        source = blob_source(content)
        new_values[property_name] = content if source is None else pending.accept(source)
        return _update_node(target, address, new_values, options)


def _update_node(
    handle: Handle, address: BlobAddress, new_values: Mapping[str, Any], options: WriteKeywords
) -> Receipt:
    receipt = update(
        handle, address.type_name, where="id = $entity", set=new_values, entity=address.entity_id, **options
    )
    if not receipt.affected_nodes and not receipt.replayed:
        raise address.not_found_error(row_exists=False)
    return receipt


def _require_match(handle: Handle, address: BlobAddress, etag: str) -> None:
    """Require the blob to have this ETag, and treat any later change to the node as a conflict."""
    snapshot = handle.latest_snapshot()
    handle.record_table_read(snapshot, address.table_key)
    try:
        Blob(handle.branch_state, snapshot, address).require_match(etag)
    except EntityNotFound as error:
        if error.property is None:
            raise
        raise BlobPreconditionFailed("the blob is NULL and therefore has no ETag") from None


def media_type_value(address: BlobAddress, media_type: str | None) -> dict[str, Any]:
    """Return the media type property and its new value as a dict, or an empty dict if there is nothing to set."""
    companion = address.media_type_property
    if media_type is None:
        return {} if companion is None else {companion: None}
    if companion is None:
        wanted = f"{address.property_name}_media_type"
        raise InputError(
            f"{address.type_name} has no property '{wanted}' for the media type",
            reason="no media type property",
            hint=f"add `{wanted}: String?` to {address.type_name}, or omit the media type",
        )
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise InputError(f"'{media_type}' is not a media type", reason="expected a value such as image/png")
    return {companion: media_type}
