"""`graph.tags` on a server."""

from collections.abc import Iterator
from contextlib import suppress

from omnigraph.errors import NotFound
from omnigraph.history.revisions import Revision
from omnigraph.history.tags import Tag
from omnigraph.values.name_rules import strip_name
from omnigraph.values.option_text import check_option_text

from .answers import read_tag
from .deletions import delete_ref
from .facet import RemoteFacet
from .handle import RemoteHandle


class RemoteTags(RemoteFacet):
    """The tags of a graph on a server."""

    __slots__ = ()

    def values(self) -> list[Tag]:
        """Return all tags, sorted by name."""
        return [read_tag(document) for document in self._handle.exchange.get("tags")["tags"]]

    def names(self) -> list[str]:
        """Return the names of all tags, sorted."""
        return [tag.name for tag in self.values()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.strip() in self.names()

    def __getitem__(self, name: str) -> Tag:
        """Return a tag by name. Raises `NotFound`, which is a `KeyError`, if there is no such tag."""
        return read_tag(self._handle.exchange.get("tags", strip_name(name, "tag")))

    def get(self, name: str) -> Tag | None:
        """Return a tag by name, or None."""
        with suppress(NotFound):
            return self[name]
        return None

    def create(self, name: str, point: Revision | None = None, *, message: str | None = None) -> Tag:
        """Tag a revision, by default the commit that the graph reads from."""
        return create_tag(self._handle, name, point, message)

    def delete(self, name: str) -> None:
        """Delete a tag."""
        self._handle.require_writable("deleting a tag")
        delete_ref(self._handle.exchange, ("tags", strip_name(name, "tag")), {})


def create_tag(handle: RemoteHandle, name: str, point: Revision | None, message: str | None) -> Tag:
    """Tag a revision, by default the commit that the handle reads from."""
    handle.require_opened_writable("creating a tag")
    check_option_text(message, "message")
    body = {
        "name": name,
        "revision": handle.commit_id if point is None else handle.resolve(point),
        "branch": handle.branch_name,
        "message": message,
    }
    return read_tag(handle.exchange.post("tags", body=body))
