"""The branches and tags of a graph on a server."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from omnigraph.cli.options import settings
from omnigraph.records.frozen import record

from . import records
from .graph import key_headers

if TYPE_CHECKING:
    from .graph import CommandGraph


@record
class BranchPosition:
    """The commit at the head of a branch."""

    commit_id: str


@record
class ServedBranch:
    """A branch that was created or renamed, and the actor who created or renamed it."""

    branch_name: str
    actor: str | None
    snapshot: BranchPosition | None = None


class ServedBranches:
    """Create, list, rename, reset and delete branches."""

    def __init__(self, graph: "CommandGraph") -> None:
        self._graph, self._exchange = graph, graph.exchange

    def names(self) -> list[str]:
        """Return the names of all branches, sorted."""
        return self._exchange.get("branches")["branches"]  # type: ignore[no-any-return]

    def create(self, name: str, *, from_: str, commit: str | None) -> ServedBranch:
        """Create a branch and return it."""
        document = self._exchange.post("branches", body={"name": name, "from": from_, "commit": commit})
        return ServedBranch(document["name"], document["actor_id"], BranchPosition(document["graph_commit_id"]))

    def delete(self, name: str, *, force: bool) -> None:
        """Delete a branch."""
        document = self._exchange.call("DELETE", ("branches", name.strip()), {"force": force})
        self._graph.actor = document["actor_id"]

    def rename(self, name: str, new_name: str) -> ServedBranch:
        """Rename a branch and return it."""
        document = self._exchange.post("branches", name.strip(), "rename", body={"name": new_name})
        self._graph.actor = document["actor_id"]
        return ServedBranch(document["name"], document["actor_id"])

    def reset(self, name: str, *, to: str, dry_run: bool, **options: Any) -> Any:
        """Reset a branch to its state at a revision."""
        body = {"to": to, "message": options["message"], "dry_run": dry_run}
        headers = key_headers(options["idempotency_key"])
        return self._graph.run_merge(("branches", name.strip(), "reset"), body, options["if_commit"], headers)


class ServedTags:
    """List and delete tags."""

    def __init__(self, graph: "CommandGraph") -> None:
        self._graph = graph

    def __iter__(self) -> Iterator[str]:
        return (tag.name for tag in self.values())

    def values(self) -> list[records.ServedTag]:
        """Return all tags, sorted by name."""
        return [records.read_tag(document) for document in self._graph.exchange.get("tags")["tags"]]

    def delete(self, name: str) -> None:
        """Delete a tag."""
        self._graph.exchange.call("DELETE", ("tags", name.strip()), {})
        if settings().json:
            self._graph.actor = self._graph.exchange.get_from_server("whoami")["actor_id"]
