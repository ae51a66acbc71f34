"""`graph.tags`: permanent names for commits, as a mapping from names to tags."""

from collections.abc import Iterator

from omnigraph.api.facet import Facet
from omnigraph.errors import NotFound
from omnigraph.history import tags
from omnigraph.history.revisions import Revision
from omnigraph.history.tags import Tag
from omnigraph.values.option_text import check_option_text


class Tags(Facet):
    """A graph's tags. Iterate over the names of tags, or look up, create or delete a tag.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key }") as graph:
    ...     tag = graph.tags.create("v1", message="the first release")
    ...     list(graph.tags), graph.tags["v1"].message, graph.tags.get("v2")
    (['v1'], 'the first release', None)
    """

    __slots__ = ()

    def values(self) -> list[Tag]:
        """Return all tags, sorted by name."""
        self._handle.require_open()
        return tags.list_tags(self._handle.store)

    def names(self) -> list[str]:
        """Return all tag names in sorted order."""
        return [tag.name for tag in self.values()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.values())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> Tag:
        """Return the tag with the given name. Raise `NotFound`, which is a `KeyError`, if it does not exist."""
        self._handle.require_open()
        return tags.find_tag(self._handle.store, name)

    def get(self, name: str) -> Tag | None:
        """Return the tag with the given name, or None if it does not exist."""
        try:
            return self[name]
        except NotFound:
            return None

    def create(self, name: str, point: Revision | None = None, *, message: str | None = None) -> Tag:
        """Tag a commit, by default the one that the graph reads from.

        `point` is any revision that `graph.at` accepts. The commit stays readable as long as the
        tag exists, even if its branch is deleted.
        """
        from omnigraph.publish import tag_lifecycle

        check_option_text(message, "message")
        handle = self._handle
        if not handle.pinned:
            handle.require_writable("creating a tag")
        handle.require_open()
        snapshot = handle.snapshot if point is None else handle.at(point).snapshot
        exact_commit = snapshot.commit_id if point is not None or handle.pinned else None
        return tag_lifecycle.create_tag(
            handle.store, name, handle.branch_state, commit_id=exact_commit, actor=handle.actor, message=message
        )

    def delete(self, name: str) -> None:
        """Delete a tag. Its commit is kept as long as a branch or another tag needs it."""
        from omnigraph.publish import tag_lifecycle

        self._handle.require_writable("deleting a tag")
        tag_lifecycle.delete_tag(self._handle.store, name)
