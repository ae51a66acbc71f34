"""Commits and snapshots."""

from itertools import islice

from omnigraph.api.graph import Graph
from omnigraph.errors import CommitNotFound, InputError
from omnigraph.history.snapshot import Snapshot
from omnigraph.server.call import ServerCall
from omnigraph.server.models.answers import SnapshotDatasetOutput, SnapshotOutput
from omnigraph.server.models.history import CommitListOutput
from omnigraph.server.wire.answer import Answer, json_answer
from omnigraph.server.wire.conditions import make_etag, matches_etag
from omnigraph.storage.layout import MAIN, STAMP
from omnigraph.values.clock_and_ids import is_ulid
from omnigraph.values.table_key import TableKey

from .documents import commit_output

_MAX_LIST = 1_000_000


def snapshot(call: ServerCall) -> Answer:
    """Return the tables of a branch or a revision."""
    state = _graph_of(call).refresh().snapshot
    etag = make_etag(state.commit_id, "snapshot", state.manifest_version, call.uses_old_names)
    if matches_etag(call.headers.get("if-none-match"), etag):
        return Answer(b"", status=304, headers={"ETag": etag})
    document = SnapshotOutput(
        graph_branch=state.branch,
        graph_commit_id=state.commit_id,
        graph_manifest_version=state.manifest_version,
        internal_schema_version=STAMP,
        datasets=[_dataset_output(state, key, uses_old_names=call.uses_old_names) for key in sorted(state.tables)],
    )
    if call.uses_old_names:
        document.branch, document.manifest_version = document.graph_branch, document.graph_manifest_version
        document.tables = document.datasets
    return json_answer(document, headers={"ETag": etag})


def _graph_of(call: ServerCall) -> Graph:
    """Return the graph at the requested branch or revision."""
    values = call.query_values
    if "relative_to" not in values:
        return call.graph_for_read(values.get("branch"), values.get("snapshot"))
    if "snapshot" not in values or "branch" in values:
        message = "`relative_to` requires `snapshot` and cannot be combined with `branch`"
        raise InputError(message, reason="invalid parameters")
    return call.graph_for_read(values["relative_to"]).refresh().at(values["snapshot"])


def _dataset_output(state: Snapshot, key: TableKey, *, uses_old_names: bool) -> SnapshotDatasetOutput:
    entry = state.tables[key]
    dataset = SnapshotDatasetOutput(
        entity_kind=key.kind,
        type_name=key.type_name,
        dataset_path=entry.location,
        published_dataset_version=entry.version,
        native_dataset_branch=entry.branch,
        entity_count=entry.row_count,
    )
    if uses_old_names:
        dataset.table_key, dataset.table_path = str(key), entry.location
        dataset.table_version, dataset.table_branch = entry.version, entry.branch
        dataset.row_count = entry.row_count
    return dataset


def list_commits(call: ServerCall) -> Answer:
    """List the commits on a branch, newest first."""
    values = call.query_values
    limit, before = values.get("limit"), values.get("before")
    if limit is not None and not 1 <= limit <= _MAX_LIST:
        raise InputError(f"limit must be between 1 and {_MAX_LIST}", reason="invalid value")
    graph = call.graph_for_read()
    logged = graph.log(
        values.get("branch") or MAIN,
        actor=values.get("actor"),
        type=values.get("type"),
        all=bool(values.get("all")),
    )
    log = iter(logged)
    if before is not None:
        for commit in log:
            if commit.id == before:
                break
        else:
            raise CommitNotFound(commit=before)
    commits = list(islice(log, None if limit is None else limit + 1))
    is_cut = limit is not None and len(commits) > limit
    shown, with_types = commits[:limit], bool(values.get("types"))
    document = CommitListOutput(commits=[commit_output(commit, call, with_types=with_types) for commit in shown])
    if values.get("refs"):
        document.refs = {commit_id: list(names) for commit_id, names in logged.ref_names().items()}
    if is_cut:
        document.next_cursor = shown[-1].id
    return json_answer(document)


def get_commit(call: ServerCall) -> Answer:
    """Return one commit, given its id or another revision, such as `HEAD~1`."""
    revision = call.path_values["commit_id"]
    try:
        commit = call.graph_for_read().refresh().revisions.commit(revision)
    except InputError:
        if is_ulid(revision):
            raise
        raise CommitNotFound(commit=revision) from None
    etag = make_etag(commit.id, "commit", call.uses_old_names)
    if matches_etag(call.headers.get("if-none-match"), etag):
        return Answer(b"", status=304, headers={"ETag": etag})
    return json_answer(commit_output(commit, call, with_types=True), headers={"ETag": etag})
