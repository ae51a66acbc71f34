"""A graph on a server, with the methods that commands call.

Each method sends one request, or a few if one response does not contain everything that a command prints. Tokens are
sent only by `omnigraph.client`. A method or option that the server does not support raises `NotSupportedRemotely`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from omnigraph.api.results.receipt import Receipt
from omnigraph.cli.options import Invocation, settings
from omnigraph.cli.server_target import ServedHandle, ServerTarget
from omnigraph.client.commit_documents import read_commit
from omnigraph.client.exchange import NDJSON, Exchange
from omnigraph.client.locations import parse_graph_address
from omnigraph.client.retries import ONLY_READS
from omnigraph.errors import NotSupportedRemotely, UsageError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.history.commit import Commit

from . import records
from .source_errors import with_source

if TYPE_CHECKING:
    from .maintenance import ServedMaintenance

ARROW = "application/vnd.apache.arrow.stream"


def open_served_graph(target: ServerTarget, *, branch: str = "main", **options: Any) -> "CommandGraph":
    """Return a branch of a graph on a server, without sending a request."""
    if options.get("external_blobs"):
        raise not_supported("--external-blobs", "the server decides which external blobs are allowed")
    _reject_actor()
    exchange = Exchange(parse_graph_address(target.uri), token=target.token, policy=ONLY_READS)
    click.get_current_context().call_on_close(exchange.close)
    return CommandGraph(exchange, branch, uri=target.uri)


def not_supported(what: str, hint: str | None = None) -> NotSupportedRemotely:
    """Return the error for an operation that the server does not support."""
    command = click.get_current_context().command_path
    local_hint = f"run `{command}` on the machine that has the graph's files, with a path or s3://bucket/prefix"
    return NotSupportedRemotely(f"{what} is not available on a server", what=what, hint=hint or local_hint)


def _reject_actor() -> None:
    """Raise an error if `--as` was given; an actor from the configuration is ignored."""
    context = click.get_current_context()
    invocation = context.find_object(Invocation)
    is_flag = context.get_parameter_source("actor") == click.core.ParameterSource.COMMANDLINE
    if is_flag or (invocation is not None and "actor" in invocation.scope_flags):
        raise UsageError(reason="--as cannot be used with a server: the token determines the actor")


class CommandGraph(ServedHandle):
    """A branch or a past revision of a graph on a server. `actor` is None until the first write."""

    def __init__(self, exchange: Exchange, branch: str, revision: str | None = None, *, uri: str = "") -> None:
        self.exchange, self.branch_name, self.revision, self.uri = exchange, branch, revision, uri
        self.actor: str | None = None

    def at(self, revision: str) -> "CommandGraph":
        """Return the graph at a past revision."""
        return CommandGraph(self.exchange, self.branch_name, revision, uri=self.uri)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The limits that writes have exceeded, each with a recommended command."""
        return tuple(map(str, self.exchange.limit_warnings))

    @property
    def position(self) -> dict[str, str]:
        """The parameters that select the branch or the revision."""
        return {"branch": self.branch_name} if self.revision is None else {"snapshot": self.revision}

    @property
    def head(self) -> Commit:
        """The commit that reads use."""
        commit_id = self.exchange.get("snapshot", **self.position)["graph_commit_id"]
        return read_commit(self.exchange.get("commits", commit_id))

    # Reads --------------------------------------------------------------------------------------

    def query(self, source: SourceText, *, name: str | None, params: Any, timeout: float | None) -> Any:
        """Run a read query."""
        body = self._query_body(source, name, params) | {"timeout": timeout}
        with with_source(source):
            return records.read_result(self.exchange.post("query", body=body, is_read=True))

    def query_arrow(self, source: SourceText, *, name: str | None, params: Any, timeout: float | None) -> Any:
        """Run a read query and return the rows as Arrow, for files in binary formats."""
        body = self._query_body(source, name, params) | {"timeout": timeout}
        with with_source(source):
            return self._read_arrow(("query",), body)

    def _read_arrow(self, segments: tuple[str, ...], body: Mapping[str, Any]) -> Any:
        reply = self.exchange.fetch("POST", segments, {}, json_body=body, headers={"Accept": ARROW}, is_read=True)
        import pyarrow as pa

        from omnigraph.api.results.result import Result

        with pa.ipc.open_stream(reply.read()) as reader:
            return Result(reader.read_all(), commit_id=reply.headers.get("Omnigraph-Snapshot-Id"))

    def stored_queries(self) -> list[Any]:
        """Return the queries that are stored on the server, sorted by name."""
        entries: list[Any] = self.exchange.get("queries")["queries"]
        return entries

    def stored_query(self, name: str, params: Any, *, is_mutation: bool) -> Any:
        """Run a query that is stored on the server."""
        body = self._stored_query_body(params, is_mutation=is_mutation)
        document = self.exchange.post("queries", name, body=body, is_read=not is_mutation)
        return self._read_change(document) if is_mutation else records.read_result(document)

    def stored_query_arrow(self, name: str, params: Any) -> Any:
        """Run a read query that is stored on the server, and return the rows as Arrow."""
        return self._read_arrow(("queries", name), self._stored_query_body(params, is_mutation=False))

    def _stored_query_body(self, params: Any, *, is_mutation: bool) -> dict[str, Any]:
        return {"params": params, "expect_mutation": is_mutation} | self.position

    def explain(self, source: SourceText, *, name: str | None, params: Any, analyze: bool) -> "ServedQueryPlan":
        """Return the plan of a query."""
        body = self._query_body(source, name, params) | {"analyze": analyze}
        with with_source(source):
            document = self.exchange.post("explain", body=body, is_read=True)
        return ServedQueryPlan(document)

    def _query_body(self, source: SourceText, name: str | None, params: Any) -> dict[str, Any]:
        return {"query": source.text, "name": name, "params": params or None} | self.position

    def export_chunks(self, types: Any, *, iso_dates: bool, since: str | None) -> tuple[Iterator[bytes], str | None]:
        """Return the export of a revision in chunks, and the id of the exported commit."""
        body: dict[str, Any] = {"type_names": list(types or ()), "iso_dates": iso_dates, **self.position}
        if since is not None:
            body["since"] = since
        reply = self.exchange.stream("POST", ("export",), {}, json_body=body, headers={"Accept": NDJSON}, is_read=True)
        return reply.chunks(), reply.headers.get("Omnigraph-Snapshot-Id")

    def export_file(self, path: str, file_format: Any, types: Any, *, since: str | None) -> tuple[int, str]:
        """Write the entities of a type to a file; return their number and the id of the exported commit."""
        from omnigraph.client.exports import export_to_file

        commit_id = self.head.id
        position = {"snapshot": commit_id}
        return export_to_file(self.exchange, position, path, file_format, types, since=since), commit_id

    def log(self, **criteria: Any) -> Any:
        """Return the commits of a branch, newest first."""
        from omnigraph.api.results.commit_log import CommitLog

        document = self.exchange.get(
            "commits",
            branch=self.branch_name,
            types=settings().json,
            refs=not settings().json,
            **criteria,
        )
        names = {commit_id: tuple(labels) for commit_id, labels in document.get("refs", {}).items()}
        return CommitLog(map(read_commit, document["commits"]), lambda: names)

    # Writes -------------------------------------------------------------------------------------

    def mutate(self, source: SourceText, *, name: str | None, params: Any, **options: Any) -> Receipt:
        """Run a mutation as one commit."""
        body = {
            "query": source.text,
            "name": name,
            "params": params or None,
            "branch": self.branch_name,
            "message": options.get("message"),
        }
        headers = key_headers(options.get("idempotency_key"))
        with with_source(source):
            document = self.exchange.post("mutate", body=body, condition=options.get("if_commit"), headers=headers)
        return self._read_change(document)

    def _read_change(self, document: Mapping[str, Any]) -> Receipt:
        self.actor = document["actor_id"]
        return Receipt(
            self.complete_commit(document["commit"]),
            {"": document["affected_nodes"]},
            {"": document["affected_edges"]},
            branch=document["branch"],
            ids=document.get("ids", {}),
            query_name=document["query_name"],
        )

    def load(self, data: Any, **options: Any) -> Any:
        """Load files as one commit."""
        from .loading import load_files

        return load_files(self, data, options)

    def merge(self, source: str, into: str, **options: Any) -> records.ServedMerge:
        """Merge a branch or another revision into a branch, or preview the merge."""
        options.pop("engine")
        is_preview, condition = options.pop("dry_run"), options.pop("if_commit", None)
        headers = key_headers(None if is_preview else options["idempotency_key"])
        body = {"source": source, "target": into, **options, "idempotency_key": None}
        segments = ("branches", "merge", *(("preview",) if is_preview else ()))
        return self.run_merge(segments, body, None if is_preview else condition, headers)

    def run_merge(
        self, segments: tuple[str, ...], body: Mapping[str, Any], condition: str | None, headers: Mapping[str, str]
    ) -> records.ServedMerge:
        """Send a merge request and return the effect of the merge."""
        document = self.exchange.post(*segments, body=body, condition=condition, headers=headers)
        self.actor = document["actor_id"]
        return records.read_merge(document, self.complete_commit(document["commit"]))

    def tag(self, name: str, revision: str | None, *, message: str | None) -> records.ServedTag:
        """Tag a revision, or the head of the branch."""
        body = {"name": name, "revision": revision, "branch": self.branch_name, "message": message}
        tag = records.read_tag(self.exchange.post("tags", body=body))
        self.actor = tag.actor
        return tag

    def complete_commit(self, document: Mapping[str, Any] | None) -> Commit | None:
        """Return the commit in a response. With --json, also request the types that the commit changed."""
        if document is None:
            return None
        commit = read_commit(document)
        if not settings().json:
            return commit
        return replace(commit, tables=read_commit(self.exchange.get("commits", commit.id)).tables)

    # Facets -------------------------------------------------------------------------------------

    @property
    def branches(self) -> Any:
        """The branches."""
        from .refs import ServedBranches

        return ServedBranches(self)

    @property
    def tags(self) -> Any:
        """The tags."""
        from .refs import ServedTags

        return ServedTags(self)

    @property
    def revisions(self) -> Any:
        """Commits, and the versions of single entities."""
        from .revisions import ServedRevisions

        return ServedRevisions(self)

    @property
    def changes(self) -> Any:
        """The change feed."""
        from .changes import ServedChanges

        return ServedChanges(self)

    @property
    def maintenance(self) -> "ServedMaintenance":
        """Maintenance jobs, and the status of the graph."""
        from .maintenance import ServedMaintenance

        return ServedMaintenance(self)

    @property
    def schema(self) -> Any:
        """The schema."""
        from .schema import ServedSchema

        return ServedSchema(self)

    @property
    def snapshot(self) -> Any:
        """The tables at the revision."""
        from .schema import read_snapshot

        return read_snapshot(self.exchange.get("snapshot", **self.position))

    def diff(self, old_revision: str, new_revision: str | None, **filters: Any) -> Any:
        """Compare two revisions."""
        from .changes import diff_revisions

        return diff_revisions(self, old_revision, new_revision, filters)

    def blob(self, type_name: str, key: str, property_name: str, *, kind: str | None = None) -> Any:
        """Open a blob."""
        from .blobs import open_blob

        return open_blob(self, (type_name, key, property_name), kind)

    def put_blob(self, type_name: str, key: str, property_name: str, content: Any, **options: Any) -> Receipt:
        """Replace the blob of a node."""
        from .blobs import put_blob

        document = put_blob(self, (type_name, key, property_name), content, options)
        return self._read_change(document)


class ServedQueryPlan:
    """The plan of a query, as text and as JSON."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def __str__(self) -> str:
        return str(self._document["plan"])

    def to_json(self) -> Any:
        """Return the plan as JSON."""
        return self._document["details"]


def key_headers(idempotency_key: str | None) -> dict[str, str]:
    """Return the header that prevents a repeated request from being applied twice."""
    return {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
