"""The state of an open graph on a server: its connection, its branch, and the commit that it is pinned to.

`RemoteGraph` and its facets hold one `RemoteHandle`. The handle resolves revisions and schemas, and runs the checks
that precede each call. It does not record what a caller reads, so a write depends on an earlier read only if
the caller passes `if_commit`.
"""

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from omnigraph.errors import GraphClosed, ReadOnlyError
from omnigraph.history.commit import Commit
from omnigraph.history.revisions import HEAD, Revision, check_revision_type
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from omnigraph.lang.schema.declared_order import with_source
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.values import clock_and_ids
from omnigraph.values.name_rules import strip_name

from .answers import read_commit
from .exchange import Exchange
from .key_order import KeyColumns, order_keys
from .unsupported import reject

_NO_DOMAIN = "0" * 26


class RemoteHandle:
    """A branch or a past commit of a graph on a server."""

    def __init__(
        self, exchange: Exchange, uri: str, branch_name: str, *, commit_id: str | None = None, read_only: bool = False
    ) -> None:
        self.exchange, self.uri, self.branch_name = exchange, uri, branch_name
        self.commit_id = commit_id
        self.opened_read_only, self.read_only = read_only, read_only or self.pinned
        self.closed = False

    @property
    def pinned(self) -> bool:
        """Whether reads use a fixed commit instead of the newest commit on the branch."""
        return self.commit_id is not None

    def describe(self) -> str:
        """Describe the graph and its position in one line."""
        position = f"branch={self.branch_name!r}" + (f", head={self.commit_id!r}" if self.pinned else "")
        return f"RemoteGraph({self.uri!r}, {position}{', read_only=True' if self.read_only else ''})"

    # Other handles ------------------------------------------------------------------------------

    def checkout(self, branch: str) -> "RemoteHandle":
        """Return a handle on another branch. Raises `BranchNotFound` if the branch does not exist."""
        self.require_open()
        name = strip_name(branch)
        self.exchange.get("branches", name)
        return self.on_branch(name)

    def on_branch(self, name: str) -> "RemoteHandle":
        """Return a handle on a branch, without checking that the branch exists."""
        return RemoteHandle(self.exchange, self.uri, name, read_only=self.opened_read_only)

    def at(self, revision: Revision) -> "RemoteHandle":
        """Return a read-only handle on a revision."""
        return self.pin(self.resolve(revision))

    def pin(self, commit_id: str) -> "RemoteHandle":
        """Return a read-only handle on a commit."""
        read_only = self.opened_read_only
        return RemoteHandle(self.exchange, self.uri, self.branch_name, commit_id=commit_id, read_only=read_only)

    def for_read(self, branch: str | None, revision: Revision | None) -> "RemoteHandle":
        """Return the handle to use for a read that has `branch` and `at` options."""
        self.require_open()
        handle = self if branch is None else self.on_branch(strip_name(branch))
        return handle if revision is None else handle.at(revision)

    # Position -----------------------------------------------------------------------------------

    @property
    def position(self) -> dict[str, str]:
        """The request members that select the branch or the commit."""
        return {"branch": self.branch_name} if self.commit_id is None else {"snapshot": self.commit_id}

    def result_target(self) -> dict[str, str | None]:
        """The branch or commit that a result was read from."""
        return {"branch": None if self.pinned else self.branch_name, "snapshot": self.commit_id}

    def resolve(self, revision: Revision) -> str:
        """Resolve a revision to a commit id. `HEAD` is the commit that this handle reads from."""
        self.require_open()
        text = write_revision(revision)
        if text == HEAD or text.startswith((f"{HEAD}~", f"{HEAD}^")):
            text = (self.commit_id or self.branch_name) + text.removeprefix(HEAD)
        document = self.exchange.get("snapshot", snapshot=text, relative_to=self.branch_name)
        return str(document["graph_commit_id"])

    def head(self) -> Commit:
        """Return the commit that reads use: the pinned commit, or the newest commit on the branch."""
        self.require_open()
        commit_id = self.commit_id or self.exchange.get("snapshot", branch=self.branch_name)["graph_commit_id"]
        return read_commit(self.exchange.get("commits", commit_id))

    def schema_document(self) -> Mapping[str, Any]:
        """Return the schema at this handle's branch or commit, as the server sends it."""
        self.require_open()
        document: Mapping[str, Any] = self.exchange.get("schema", **self.position)
        return document

    def schema_ir(self) -> SchemaIR:
        """Return the compiled schema. Its ids are those of a new graph, but keys have the same column order."""
        return read_schema_ir(self.schema_document())

    @staticmethod
    def pause_before_retry(attempt: int) -> None:
        """Wait for a random time; its upper bound starts at 4 ms and doubles with each attempt, up to 500 ms."""
        time.sleep(min(0.5, 0.002 * 2**attempt) * clock_and_ids.random_fraction())

    # Checks before a call -----------------------------------------------------------------------

    def require_open(self) -> None:
        """Raise `GraphClosed` if the handle is closed."""
        if self.closed:
            raise GraphClosed(f"this handle on {self.uri} is closed")

    def require_branch(self, action: str) -> None:
        """Raise `ReadOnlyError` if the handle is pinned, and therefore has no branch to write to."""
        self.require_open()
        if self.pinned:
            message = f"{action} is not allowed: the handle is at commit {self.commit_id}, not on a branch"
            raise ReadOnlyError(message, what=action)

    def require_writable(self, action: str, *, dry_run: bool = False) -> None:
        """Raise `ReadOnlyError` if the handle is pinned or, unless `dry_run` is set, was opened read-only."""
        self.require_branch(action)
        if self.read_only and not dry_run:
            raise ReadOnlyError(what=action)

    def require_opened_writable(self, action: str) -> None:
        """Raise `ReadOnlyError` if the graph was opened read-only. A handle that is pinned to a commit is accepted."""
        self.require_open()
        if self.opened_read_only:
            raise ReadOnlyError(what=action)

    @staticmethod
    def reject_actor(actor: str | None) -> None:
        """Raise `NotSupportedRemotely` if a call specifies an actor, because the token determines the actor."""
        if actor is not None:
            reject("acting", what="the option `actor`")


def read_schema_ir(document: Mapping[str, Any]) -> SchemaIR:
    """Return the compiled schema of a server's response. Older servers do not send the order of keys."""
    keys = document.get("keys", ())
    return compile_ir(document["schema_source"], tuple((key["kind"], key["type"], *key["columns"]) for key in keys))


@lru_cache(maxsize=64)
def compile_ir(source: str, keys: tuple[KeyColumns, ...] = ()) -> SchemaIR:
    """Compile the text of a schema. `keys` contains the columns of keys, in the order of their values in an id."""
    return order_keys(with_source(new_identity(compile_schema(source, "<schema>"), _NO_DOMAIN), source), keys)


def write_revision(revision: Revision) -> str:
    """Return a revision as text. A duration is subtracted from this machine's current time.

    >>> write_revision(3), write_revision(" v1 ")
    ('3', 'v1')
    """
    check_revision_type(revision)
    if isinstance(revision, timedelta):
        revision = clock_and_ids.now() - abs(revision)
    if isinstance(revision, datetime):
        return revision.isoformat()
    return str(revision).strip()
