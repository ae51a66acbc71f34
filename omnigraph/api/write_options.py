"""Options that every write accepts: actor, message, precondition and idempotency key.

This module converts a caller's options to commit metadata, and to the requirements that the write protocol checks on
every attempt. It never writes anything itself.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from omnigraph.api.request_digest import digest_request
from omnigraph.errors import Cancelled
from omnigraph.publish.read_set import UnchangedReads
from omnigraph.publish.requirements import ExpectedHead, Requirement
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.blob_placeholders import content_digest
from omnigraph.values.cancellation import STOP_EVENT
from omnigraph.values.option_text import check_option_text

_PLAIN_TYPES = (str, bytes, int, float, date)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options that every write method accepts."""

    if_commit: str | None = None
    message: str | None = None
    actor: str | None = None
    idempotency_key: str | None = None

    def commit_metadata(self, request: object = None) -> CommitMetadata:
        """Return the commit's metadata. If there is an idempotency key, include the digest of the request.

        The digest distinguishes a repeated request from a different request with the same key.
        """
        for option_name in ("message", "actor", "idempotency_key"):
            check_option_text(getattr(self, option_name), option_name)
        key = self.idempotency_key
        digest = None if key is None else digest_request(request)
        return CommitMetadata(self.actor, self.message, key, digest)

    def requirements(
        self, unchanged_reads: UnchangedReads, attempt_counter: "AttemptCounter"
    ) -> tuple[Requirement, ...]:
        """Return the requirements that every attempt checks, starting with the caller's own precondition."""
        head_requirement = () if self.if_commit is None else (ExpectedHead(self.if_commit),)
        return (attempt_counter, *head_requirement, unchanged_reads)


@dataclass(slots=True)
class AttemptCounter:
    """A requirement that counts the attempts at a write, and stops the write if the caller is no longer waiting."""

    count: int = 0
    stop_event: threading.Event | None = field(default_factory=STOP_EVENT.get)

    def to_json(self) -> list[Any]:
        """Return an empty stored form, because only the process that runs the write can check this requirement."""
        return ["watch", []]

    def check(self, txn: WriteTxn) -> None:
        """Count an attempt, and raise `Cancelled` if the caller is no longer waiting."""
        self.count += 1
        if self.stop_event is not None and self.stop_event.is_set():
            raise Cancelled(f"the write to {txn.branch} was cancelled; nothing was changed")

    @property
    def retries(self) -> int:
        """The number of times that the write was retried after a conflict."""
        return max(0, self.count - 1)


def describe_load_request(mode: str, source: object) -> object:
    """Return the data that identifies a load: its mode, and its records by type.

    Records in files or DataFrames are not included, because they would have to be read first. For these, only the mode
    and the names of the types, if they are given, identify the load.

    >>> describe_load_request("append", {"Person": [{"name": "ann"}]})
    ('append', [('Person', [[('name', "'ann'")]])])
    """
    content_digest_text = getattr(source, "content_digest", None)
    if isinstance(content_digest_text, str):
        return mode, content_digest_text
    if not isinstance(source, Mapping):
        type_names = getattr(source, "type_names", None)
        return mode if type_names is None else (mode, [(type_name, "") for type_name in sorted(type_names)])
    return mode, [(type_name, describe_plain_value(source[type_name])) for type_name in sorted(source, key=str)]


def describe_plain_value(value: object) -> object:
    """Return a description of plain data that is the same in every process, or "" for anything else.

    >>> describe_plain_value({"b": [1.5, None], "a": "x"})
    [('a', "'x'"), ('b', ['1.5', 'None'])]
    """
    if isinstance(value, Mapping):
        return [(member_name, describe_plain_value(value[member_name])) for member_name in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [describe_plain_value(item) for item in value]
    if isinstance(value, bytes) and (digest := content_digest(value)) is not None:
        return f"sha256:{digest}"
    if value is None or isinstance(value, _PLAIN_TYPES):
        return repr(value)
    if hasattr(value, "to_batches"):
        return f"sha256:{_digest_table(value)}"
    # Convert arrays to lists, because the repr of a long array omits the middle elements.
    to_list = getattr(value, "tolist", None)
    return describe_plain_value(to_list()) if to_list is not None else ""


def _digest_table(table: Any) -> str:
    """Return the SHA-256 of an Arrow table's rows, regardless of how the rows are split into batches."""
    from hashlib import sha256

    import pyarrow as pa

    digest = sha256()
    plain_table = table.replace_schema_metadata(None).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain_table.schema) as writer:
        writer.write_table(plain_table)
    digest.update(sink.getvalue())
    return digest.hexdigest()
