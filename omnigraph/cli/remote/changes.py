"""The change feed, the changes in one commit, and differences between revisions of a graph on a server."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.client.baselines import RemoteBaseline
from omnigraph.client.commit_documents import Document
from omnigraph.history.commit import Commit
from omnigraph.records.frozen import record

from . import records

if TYPE_CHECKING:
    from .graph import CommandGraph

_ALL_CHANGES = 2**31 - 1
_LONG_POLL_SECONDS = 30.0


@record
class ServedBlock:
    """A commit and its changes."""

    graph: Any
    document: Document
    cursor: str | None = None

    @property
    def commit(self) -> Commit:
        """The commit that made the changes."""
        return self.graph.revisions.commit(self.document["cause"]["graph_commit_id"])  # type: ignore[no-any-return]

    @property
    def changes(self) -> Sequence[records.ServedChange]:
        """The changes."""
        return [records.read_change(change) for change in self.document["changes"]]

    @property
    def schema_change(self) -> Any:
        """The schema change, or None."""
        return records.read_schema_change(self.document)

    def to_json(self) -> Document:
        """Return the block exactly as the server sent it."""
        return self.document


@record
class ServedPage:
    """A page of the changes in one commit."""

    document: Document

    @property
    def changes(self) -> Sequence[records.ServedChange]:
        """The changes."""
        return [records.read_change(change) for change in self.document["changes"]]

    @property
    def documents(self) -> Sequence[Document]:
        """The changes, exactly as the server sent them."""
        return self.document["changes"]  # type: ignore[no-any-return]

    @property
    def part(self) -> "ServedPage":
        """The page itself, which contains the changes as JSON."""
        return self

    @property
    def schema_change(self) -> Any:
        """The schema change, or None."""
        return records.read_schema_change(self.document)

    @property
    def next_page_token(self) -> str | None:
        """The token of the next page, or None."""
        return self.document.get("next_page_token")

    def to_json(self) -> Document:
        """Return the page exactly as the server sent it."""
        return self.document


class ServedFeed:
    """The commits after a position, oldest first. `cursor` is None until the last commit has been read."""

    def __init__(self, graph: "CommandGraph", position: Mapping[str, Any], filters: Mapping[str, Any]) -> None:
        self._graph, self._position, self._filters = graph, dict(position), dict(filters)
        self.cursor: str | None = None
        self.caught_up = False
        self.at_start = True

    def take(self, limit: int) -> Iterator[ServedBlock]:
        """Yield whole commits. Each page has at most `limit` changes; a commit may span several pages."""
        pending: dict[str, Any] | None = None
        while True:
            page = self._read_page(limit)
            for block in page["blocks"]:
                if pending is not None and pending["cause"] != block["cause"]:
                    yield self._finish(pending)
                    pending = None
                pending = block if pending is None else pending | {"changes": pending["changes"] + block["changes"]}
            if "next_page_token" not in page:
                break
            self._position = {"page_token": page["next_page_token"]}
        self.cursor, self.caught_up = page["cursor"], page["caught_up"]
        if pending is not None:
            yield self._finish(pending)

    def _finish(self, document: Document) -> ServedBlock:
        self.at_start = False
        return ServedBlock(self._graph, document, self.cursor)

    def _read_page(self, limit: int, wait: float | None = None) -> Any:
        return self._graph.exchange.get(
            "changes", branch=self._graph.branch_name, limit=limit, wait=wait, **self._position, **self._filters
        )


class ServedChanges:
    """The change feed of a branch."""

    def __init__(self, graph: "CommandGraph") -> None:
        self._graph = graph

    def feed(self, start: str | None, *, cursor: str | None, **filters: Any) -> ServedFeed:
        """Return the feed after a position."""
        return ServedFeed(self._graph, {"start": start, "cursor": cursor}, filter_parameters(filters))

    def follow(self, start: str | None, *, cursor: str | None, poll: float, **filters: Any) -> Iterator[ServedBlock]:
        """Yield commits forever; the server responds as soon as there is a new commit."""
        position: dict[str, Any] = {"start": start, "cursor": cursor}
        parameters = filter_parameters(filters) | {"branch": self._graph.branch_name, "limit": 1}
        while True:
            feed = ServedFeed(self._graph, position, filter_parameters(filters))
            blocks = list(feed.take(1))
            for block in blocks:
                yield ServedBlock(self._graph, block.document, feed.cursor)
            if not blocks:
                self._graph.exchange.get("changes", wait=_LONG_POLL_SECONDS, cursor=feed.cursor, **parameters)
            position = {"cursor": feed.cursor}

    def commit_pages(self, revision: str, *, page_token: str | None, limit: int, **filters: Any) -> Any:
        """Yield the changes in one commit, page by page."""
        commit_id = self._graph.revisions.commit(revision).id
        while True:
            page = ServedPage(
                self._graph.exchange.get(
                    "commits", commit_id, "changes", page_token=page_token, limit=limit, **filter_parameters(filters)
                )
            )
            yield page
            page_token = page.next_page_token
            if page_token is None:
                return

    def baseline(self, out: str, **filters: Any) -> Any:
        """Write all entities on the branch to a file, followed by the cursor from which the change feed continues."""
        captured = RemoteBaseline(self._graph.exchange, self._graph.branch_name, filter_parameters(filters))
        captured.write(out)
        return captured


class ServedDiff:
    """The differences between two revisions."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.from_commit, self.to_commit = document["from_commit_id"], document["to_commit_id"]
        self.schema_change = records.read_schema_change(document)

    def __iter__(self) -> Iterator[records.ServedChange]:
        return map(records.read_change, self.document["feed_changes"])

    def __bool__(self) -> bool:
        return bool(self.document["feed_changes"]) or self.schema_change is not None

    def summary(self) -> Any:
        """Return the number of changes, in total and by type."""
        return self.document["summary"]

    def change_documents(self) -> Iterator[Document]:
        """Yield the changes as JSON."""
        return iter(self.document["feed_changes"])


def diff_revisions(graph: "CommandGraph", old_revision: str, new_revision: str | None, filters: Any) -> ServedDiff:
    """Compare two revisions."""
    parameters = {"from": old_revision, "to": new_revision, "limit": _ALL_CHANGES, "images": "feed"}
    return ServedDiff(graph.exchange.call("GET", ("diff",), parameters | filter_parameters(filters)))


def filter_parameters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of a command as URL parameters."""
    return {"type": filters.get("types"), "kind": filters.get("kinds"), "op": filters.get("ops")}
