"""The methods of `RemoteGraph` that write data. Each call makes one commit or has no effect."""

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, Unpack

from omnigraph.api.builders.prepared_queries import QuerySource
from omnigraph.api.data_files import ProgressOption
from omnigraph.api.loads import check_csv_options
from omnigraph.api.queries import Params, QueryCall, combine_arguments
from omnigraph.api.results.receipt import LoadReport, Receipt
from omnigraph.api.write_options import WriteOptions
from omnigraph.api.writes import RecordKeywords, WriteKeywords
from omnigraph.ingest.input_files import FileOptions
from omnigraph.values.option_text import check_option_text

from . import blobs, loads, writes
from .handle import RemoteHandle
from .load_requests import LoadSettings
from .transactions import RemoteTransaction
from .unsupported import reject_if
from .writes import write_branch

_WRITE_OPTIONS = ("if_commit", "message", "actor", "idempotency_key")


class RemoteWrites:
    """Writes to a graph on a server; `RemoteGraph` adds the other methods."""

    _handle: RemoteHandle

    def mutate(  # noqa: PLR0913 - all but the first are keywords
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> Receipt:
        """Run a mutation in one commit. If nothing matches, no commit is made; see `Graph.mutate`."""
        call = QueryCall(source, name, combine_arguments(params, values), assume_utc=assume_utc)
        options = WriteOptions(if_commit, message, actor, idempotency_key)
        return writes.run_mutation(self._handle, call, branch, options)

    def insert(self, type_name: str, /, *records: Any, **options: Unpack[RecordKeywords]) -> Receipt:
        """Add entities; see `Graph.insert`."""
        return writes.write_records(self._handle, "insert", type_name, records, options)

    def upsert(self, type_name: str, /, *records: Any, **options: Unpack[RecordKeywords]) -> Receipt:
        """Add entities, or update those with the same key or `id`; see `Graph.upsert`."""
        return writes.write_records(self._handle, "upsert", type_name, records, options)

    def patch(self, type_name: str, /, *records: Any, **options: Unpack[RecordKeywords]) -> Receipt:
        """Update existing entities; see `Graph.patch`."""
        return writes.write_records(self._handle, "patch", type_name, records, options)

    def connect_nodes(
        self, edge_type: str, ends: Iterable[tuple[Any, ...]], /, **options: Unpack[RecordKeywords]
    ) -> Receipt:
        """Add edges, given as `(from, to)` or `(from, to, properties)`; see `Graph.connect_nodes`."""
        return writes.connect_nodes(self._handle, edge_type, ends, options)

    def update(  # noqa: PLR0913 - all but the first are keywords
        self,
        type_name: str,
        /,
        *,
        where: str,
        set: Mapping[str, Any],
        params: Params = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> Receipt:
        """Set properties on the entities that match a predicate; see `Graph.update`."""
        call = QueryCall("", None, combine_arguments(params, values), assume_utc=assume_utc)
        options = WriteOptions(if_commit, message, actor, idempotency_key)
        return writes.update_entities(self._handle, type_name, where, set, call, branch, options)

    def delete(  # noqa: PLR0913 - all but the first are keywords
        self,
        type_name: str,
        /,
        *,
        where: str,
        params: Params = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> Receipt:
        """Delete edges, or nodes together with their edges; see `Graph.delete`."""
        call = QueryCall("", None, combine_arguments(params, values), assume_utc=assume_utc)
        options = WriteOptions(if_commit, message, actor, idempotency_key)
        return writes.delete_entities(self._handle, type_name, where, call, branch, options)

    def put_blob(  # noqa: PLR0913 - all but four are keywords
        self,
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
        """Replace a node's blob; see `Graph.put_blob`."""
        name = (type_name, key, property_name)
        write_options = WriteOptions(*(options.get(option) for option in _WRITE_OPTIONS))  # type: ignore[arg-type]
        conditions = (media_type, if_match, options.get("branch"))
        return blobs.put_blob(self._handle, name, content, *conditions, write_options, progress)

    def load(  # noqa: PLR0913 - all but the first are keywords
        self,
        data: Any,
        *,
        mode: Any,
        branch: str | None = None,
        from_: str | None = None,
        format: Any = None,
        mapping: Mapping[str, Mapping[str, str]] | None = None,
        csv: Any = None,
        on_error: Any = "raise",
        engine: Any = "auto",
        spark: Any = None,
        rejects: str | PathLike[str] | None = None,
        max_errors: int | None = None,
        dry_run: bool = False,
        progress: ProgressOption = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        assume_utc: bool = False,
        max_row_bytes: int | None = None,
    ) -> Receipt | LoadReport:
        """Load files, records, or tables by type, as one commit; see `Graph.load`.

        Files are read on this machine and sent to the server, which checks them. Input that exceeds the server's limit
        for a load is sent in parts to a temporary branch, and all parts become visible at the same time.
        """
        reject_if(engine == "spark" or spark is not None, "engine='spark'")
        self._handle.reject_actor(actor)
        for name, text in (("if_commit", if_commit), ("message", message), ("idempotency_key", idempotency_key)):
            check_option_text(text, name)
        settings = LoadSettings(
            branch=write_branch(self._handle, branch),
            mode=mode,
            from_=from_,
            dry_run=dry_run,
            assume_utc=assume_utc,
            max_row_bytes=max_row_bytes,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
        )
        file_options = FileOptions(format, mapping or {}, check_csv_options(csv))
        options = loads.ClientLoadOptions(on_error, max_errors, rejects, progress)
        return loads.load_data(self._handle, data, file_options, settings, options)

    def transaction(
        self,
        *,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Combine several writes into one commit; see `Graph.transaction`.

        The server checks each step immediately, and all steps are sent again at the end of the block.
        """
        options = WriteOptions(if_commit, message, actor, idempotency_key)
        return RemoteTransaction(self._handle, branch, options)
