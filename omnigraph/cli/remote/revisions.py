"""Commits, reverts, and the versions of single entities of a graph on a server."""

from typing import TYPE_CHECKING, Any

from omnigraph.client.commit_documents import Document, read_commit
from omnigraph.errors import EntityNotFound, NotFound, TypeCheckError
from omnigraph.history.commit import Commit
from omnigraph.records.frozen import record

from .graph import key_headers

if TYPE_CHECKING:
    from .graph import CommandGraph


@record
class ServedVersion:
    """A version of an entity, and the commit that created it."""

    commit: Commit
    op: str
    changed: tuple[str, ...]
    values: Document | None
    before: Document | None
    endpoints: Document | None


@record
class ServedBlame:
    """A property, its value, and the commit that set it."""

    name: str
    value: Any
    commit: Commit | None


class ServedHistory(list[ServedVersion]):
    """The versions of an entity, newest first."""

    complete: bool = True
    gap: Any = None
    _gap_reason: str = ""

    def describe_gap(self) -> str:
        """Return why earlier versions are not listed, or an empty string if all versions are listed."""
        return self._gap_reason


class ServedRevisions:
    """Commits, reverts, cherry-picks, and the versions of single entities."""

    def __init__(self, graph: "CommandGraph") -> None:
        self._graph, self._exchange = graph, graph.exchange

    def commit(self, revision: str) -> Commit:
        """Return the commit that an id or another revision refers to."""
        return read_commit(self._exchange.get("commits", revision))

    def revert(self, commit: str, **options: Any) -> Any:
        """Undo a commit or a range of commits."""
        return self._replay("revert", commit, options)

    def cherry_pick(self, commit: str, **options: Any) -> Any:
        """Apply the changes from one commit."""
        return self._replay("cherry-pick", commit, options)

    def _replay(self, route: str, commit: str, options: dict[str, Any]) -> Any:
        condition, headers = options.pop("if_commit", None), key_headers(options.pop("idempotency_key", None))
        body = {"commit": commit, "branch": self._graph.branch_name, **options}
        return self._graph.run_merge((route,), body, condition, headers)

    def history(self, type_name: str, key: str, *, kind: str | None, limit: int | None) -> ServedHistory:
        """Return the versions of an entity."""
        try:
            document = self._read_entity(type_name, key, kind, "history", limit=limit)
        except EntityNotFound:
            return ServedHistory()  # the command has its own message for this error
        versions = ServedHistory(_read_version(version) for version in document["versions"])
        versions.complete = document["complete"]
        if "gap_commit_id" in document:
            versions.gap, versions._gap_reason = self.commit(document["gap_commit_id"]), document["gap_reason"]
        return versions

    def blame(self, type_name: str, key: str, *, kind: str | None) -> dict[str, ServedBlame]:
        """Return the commit that last set each property of an entity."""
        document = self._read_entity(type_name, key, kind, "blame")
        blames = [
            ServedBlame(entry["name"], entry["value"], entry["commit"] and read_commit(entry["commit"]))
            for entry in document["properties"]
        ]
        return {blame.name: blame for blame in blames}

    def _read_entity(self, type_name: str, key: str, kind: str | None, view: str, **parameters: Any) -> Any:
        """Request `history` or `blame`. If no kind is given, look for a node type first, and then for an edge type."""
        parameters |= self._graph.position
        try:
            return self._exchange.get("entities", kind or "node", type_name, key, view, **parameters)
        except EntityNotFound:
            raise
        except (NotFound, TypeCheckError):
            if kind is not None:
                raise
            return self._exchange.get("entities", "edge", type_name, key, view, **parameters)


def _read_version(document: Document) -> ServedVersion:
    endpoints = document.get("endpoints")
    return ServedVersion(
        read_commit(document["commit"]),
        document["op"],
        tuple(document["changed"]),
        document["properties"],
        document["before"],
        None if endpoints is None else {"src": endpoints["from"], "dst": endpoints["to"]},
    )
