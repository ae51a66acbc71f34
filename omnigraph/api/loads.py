"""Load NDJSON, records, tables and files, as one commit on a new or existing branch.

This module also creates the target branch if it does not exist, and deletes it again if nothing is loaded into it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal

from omnigraph.api.data_files import ProgressOption, open_load_input, progress_callback
from omnigraph.api.engine_choice import Engine
from omnigraph.api.handle import Handle, report_missing_branch
from omnigraph.api.load_routing import EngineOptions, resolve_load_source, run_load
from omnigraph.api.log_events import log_operation
from omnigraph.api.results.receipt import LoadReport, Receipt, build_load_report
from omnigraph.api.write_options import AttemptCounter, WriteOptions, describe_load_request
from omnigraph.errors import UsageError
from omnigraph.history.branches import list_branches
from omnigraph.history.commit import Commit
from omnigraph.history.refs import find_ref
from omnigraph.ingest.csv_options import CsvOptions
from omnigraph.ingest.input_files import FileOptions
from omnigraph.ingest.load import LoadMode, OnError
from omnigraph.ingest.load_limits import load_limits
from omnigraph.publish.branch_lifecycle import delete_branch
from omnigraph.publish.read_set import ReadSet, UnchangedReads
from omnigraph.publish.unread_changes import RowFilter
from omnigraph.values.naive_times import naive_times_as_utc
from omnigraph.values.name_rules import strip_name
from omnigraph.values.table_key import TableKey

Format = Literal["ndjson", "csv", "parquet"]


@dataclass(frozen=True, slots=True)
class LoadInput:
    """The input to a load, and how to read it."""

    data: Any
    mode: LoadMode
    format: Format | None = None
    mapping: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    csv: CsvOptions = field(default_factory=CsvOptions)
    progress: ProgressOption = None
    max_errors: int | None = None


def check_on_error(on_error: OnError) -> OnError:
    """Return the error handling mode, or raise `UsageError` if it is unknown."""
    if on_error not in ("raise", "report"):
        raise UsageError(reason=f"on_error must be 'raise' or 'report', not {on_error!r}")
    return on_error


def check_csv_options(csv: CsvOptions | None) -> CsvOptions:
    """Return the CSV options, or the defaults if there are none. Raise `UsageError` for any other value."""
    if csv is None or isinstance(csv, CsvOptions):
        return csv or CsvOptions()
    raise UsageError(reason=f"`csv` must be a CsvOptions object, not {type(csv).__name__}")


def load(  # noqa: PLR0913 - all but the first are keywords
    handle: Handle,
    data: Any,
    *,
    mode: LoadMode,
    branch: str | None = None,
    from_: str | None = None,
    format: Format | None = None,
    mapping: Mapping[str, Mapping[str, str]] | None = None,
    csv: CsvOptions | None = None,
    on_error: OnError = "raise",
    engine: Engine = "auto",
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
    """Load NDJSON (paths, a file or bytes), records, or tables keyed by type, as one commit.

    `mode` is "append" (existing ids are errors), "merge" (entities with existing ids are replaced), "overwrite" (all
    entities of the types in the input are replaced), "patch" (only the given properties of existing entities change) or
    "delete" (the records identify entities to delete by key or `id`; nodes are deleted together with their edges). If
    the branch does not exist, it is forked from `from_`. If an edge type has no `@key`, every append or merge creates
    new edges for records without an `id`. To keep a repeated load from duplicating edges, declare `@key(src, dst)` in
    the schema, give the edges ids, or pass an `idempotency_key`.

    A mapping assigns types to tables, records, or CSV, Parquet and NDJSON files. The records in it have no envelope. A
    list combines untyped paths and such mappings into one commit, as in `load([{"Person": "people.csv"},
    "rest.ndjson"], mode="append")`. `mapping` renames columns, and `csv` specifies how to read CSV files. Settings that
    are not specified are detected for each file. An edge's endpoints may be called either `from` and `to` or `src` and
    `dst`.

    With `on_error="report"`, invalid input produces a `LoadReport` with all errors, or with the first `max_errors` if
    that is given. If `rejects` is a folder, every error is written there, regardless of `max_errors`. `dry_run` only
    checks the input. `max_row_bytes` is the maximum size of a row, including all of its values. The default is
    `OMNIGRAPH_MAX_ROW_BYTES`. If that is not set, the default is 32 MiB, and large blobs that are streamed from NDJSON
    do not count toward it.

    Paths may be folders, glob patterns or `s3://` URIs. `engine` is "local" (this process), "spark" (the session
    `spark`, or a new one) or "auto". With "auto", Spark loads Spark DataFrames, files that it is predicted to load
    faster than this process, and files for which this process does not have enough memory. The receipt's
    `engine_reason` shows why the engine was chosen. With `assume_utc`, a `datetime` or a timestamp column without a
    time zone (also in a Parquet file) is assumed to be in UTC; a load with this option always runs in this process.
    """
    on_error = check_on_error(on_error)
    engine = _require_local(engine) if assume_utc else engine
    load_options = EngineOptions(
        engine, spark, rejects=rejects, dry_run=dry_run, on_error=on_error, limits=load_limits(max_row_bytes)
    )
    options = WriteOptions(if_commit, message, actor, idempotency_key)
    source = LoadInput(data, mode, format, mapping or {}, check_csv_options(csv), progress, max_errors)
    with naive_times_as_utc(assume_utc):
        return load_data(handle, source, load_options, options, branch=branch, from_=from_)


def _require_local(engine: Engine) -> Engine:
    if engine == "spark":
        raise UsageError(reason="assume_utc requires engine 'local' or 'auto'")
    return "local" if engine == "auto" else engine


def load_data(
    handle: Handle,
    load_input: LoadInput,
    load_options: EngineOptions,
    options: WriteOptions,
    *,
    branch: str | None,
    from_: str | None,
) -> Receipt | LoadReport:
    """Load data into a branch, which is forked from `from_` if it does not exist."""
    from omnigraph.api.branches import fork_branch

    handle.require_writable("loading data")
    new_branch = branch if from_ is not None and _is_missing(handle, branch) else None
    target = fork_branch(handle, new_branch, from_) if new_branch else handle.for_branch(branch)
    try:
        outcome = _load_input(target, load_input, load_options, options, created=bool(new_branch))
    except BaseException:
        _delete_unused_branch(handle, new_branch)
        raise
    if isinstance(outcome, LoadReport) or load_options.dry_run:
        _delete_unused_branch(handle, new_branch)
    if isinstance(outcome, LoadReport) and load_input.max_errors is not None:
        return outcome.first(load_input.max_errors)
    return outcome


def _load_input(
    target: Handle, load_input: LoadInput, load_options: EngineOptions, options: WriteOptions, *, created: bool
) -> Receipt | LoadReport:
    data, form, mapping = load_input.data, load_input.format, load_input.mapping
    has_rows = any(entry.row_count for entry in target.branch_state.last_known().state.tables.values())
    file_options = FileOptions(form, mapping, load_input.csv)
    bulk, engine_reason = resolve_load_source(data, load_input.mode, file_options, load_options, has_rows=has_rows)
    if hasattr(bulk, "input_files"):
        load_options = replace(load_options, progress=progress_callback(load_input.progress))
    with open_load_input(data if bulk is None else bulk, form, mapping, load_input.progress) as source:
        outcome = load_source(target, source, load_input.mode, load_options, options)
    if not isinstance(outcome, Receipt):
        return outcome
    return replace(outcome, branch_created=created, engine=engine_reason.engine, engine_reason=engine_reason.reason)


def load_source(
    handle: Handle,
    source: Any,
    mode: LoadMode,
    load_options: EngineOptions,
    options: WriteOptions,
    *,
    records: bool = False,
) -> Receipt | LoadReport:
    """Load opened input as one commit. If `records` is true, the receipt includes the ids."""
    handle.require_writable("loading data")
    branch = handle.branch_name
    with (
        log_operation("load", branch) as event,
        report_missing_branch(handle.branch_state),
        handle.store.effects.recording() as requests,
        handle.accept_blobs(),
    ):
        strict_rows, attempts = StrictRows(handle, _require_unchanged(handle, source, mode)), AttemptCounter()
        options = handle.with_actor(options)
        event.start_phase("write")
        request = describe_load_request(mode, source) if options.idempotency_key else None
        metadata = options.commit_metadata(request)
        conditions = options.requirements(strict_rows.requirement, attempts)
        load_options = replace(load_options, require_rows=strict_rows.require)
        loaded = run_load(handle.branch_state, source, mode, load_options, metadata, conditions)
        event.requests, event.retries = len(requests), attempts.retries
        event.rows = loaded.total
        requirement = strict_rows.requirement
        commit = handle.record_write(loaded.commit, requirement)
    if loaded.problems:
        return build_load_report(loaded)
    replayed = options.idempotency_key is not None and _is_replay(loaded.commit, requirement)
    ids = {name: type_ids.to_pylist() for name, type_ids in loaded.ids.items()} if records else {}
    if replayed and loaded.commit is not None:
        ids = _recorded_ids(handle, loaded.commit, ids)
    receipt = _receipt(loaded, commit, ids, records=records, replayed=replayed)
    return replace(receipt, branch=branch, elapsed=event.elapsed_seconds())


def _recorded_ids(handle: Handle, commit: Commit, new_ids: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the ids that a repeated load wrote the first time.

    For entities without a key, the repeated load generates new ids, which are not the ids in the commit.
    """
    from omnigraph.engine.writes.recorded_outcome import read_recorded_changes

    changes = read_recorded_changes(handle.branch_state, commit) if new_ids else None
    recorded_ids = {} if changes is None else changes.ids
    return {
        name: ids if set(recorded_ids[name]) <= set(ids) else recorded_ids[name]
        for name, ids in new_ids.items()
        if name in recorded_ids
    }


def _receipt(
    loaded: Any, commit: Commit | None, ids: Mapping[str, Sequence[str]], *, records: bool, replayed: bool
) -> Receipt:
    nothing_written = records and loaded.commit is None
    return Receipt(
        commit,
        {} if nothing_written else loaded.nodes,
        {} if nothing_written else loaded.edges,
        ids=ids,
        replayed=replayed,
        steps=loaded.summary.seconds,
        written=loaded.summary.bytes,
        missing=loaded.missing,
        nulled=loaded.nulled,
    )


@dataclass(slots=True)
class StrictRows:
    """The requirement that rows are unchanged when a load commits.

    For a patch or a delete, the rows are determined while the input is read.
    """

    handle: Handle
    requirement: UnchangedReads

    def require(self, row_filters: Mapping[TableKey, RowFilter | None]) -> UnchangedReads:
        """Require that these rows have not changed since the caller read them."""
        self.requirement = self.handle.require_unchanged(row_filters)
        return self.requirement


def _require_unchanged(handle: Handle, source: Any, mode: LoadMode) -> UnchangedReads:
    """Require that the types replaced by an overwrite are unchanged, or all types if the input does not list them."""
    if mode != "overwrite":
        return handle.require_unchanged(())
    source_names = _source_type_names(source)
    if source_names is None:
        tables = handle.branch_state.refresh().state.tables
        return ReadSet(tables).require_unchanged(tables)
    keys = (key for key in handle.snapshot.tables if key.type_name.casefold() in source_names)
    return handle.require_unchanged(keys)


def _source_type_names(source: Any) -> set[str] | None:
    """Return the case-folded names of the types in the input, or None if each record specifies its own type."""
    names = source if isinstance(source, Mapping) else getattr(source, "type_names", None)
    return None if names is None else {str(name).casefold() for name in names}


def _is_replay(commit: Commit | None, requirement: UnchangedReads) -> bool:
    return commit is not None and not requirement.was_checked_for(commit)


def _is_missing(handle: Handle, branch: str | None) -> bool:
    handle.require_open()
    return branch not in list_branches(handle.store)


def _delete_unused_branch(handle: Handle, branch: str | None) -> None:
    """Delete a branch that was forked for a load that wrote nothing, unless the branch has new commits."""
    if branch is None:
        return
    head = handle.checkout(branch).snapshot.commit_id
    if head == find_ref(handle.store, strip_name(branch)).fork_commit:
        handle.require_writable("deleting a branch")
        delete_branch(handle.store, branch, current_branch=handle.branch_name)
