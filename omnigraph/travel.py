"""The part of a graph handle that goes through time: the past, tags, revert, cherry-pick, blame.

Each call is one look at the log, or one publish below. Looking back never changes anything.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, Self

from omnigraph.branching import Branching, granularity_of
from omnigraph.commits import CommitLog
from omnigraph.errors import BranchNotFound, EntityNotFound
from omnigraph.events import operation
from omnigraph.history import branches, tags
from omnigraph.history.commit import Commit
from omnigraph.history.log import in_order
from omnigraph.history.points import Named, find_commit_named, find_point
from omnigraph.history.snapshot import Snapshot, of_state
from omnigraph.history.tags import Tag
from omnigraph.history.trace import Blamed, EntityHistory, Trace
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.merges import MergeResult
from omnigraph.merging.merge import Request
from omnigraph.merging.replay import Way, replay
from omnigraph.merging.sides import Granularity
from omnigraph.merging.strategy import Strategy
from omnigraph.merging.work import Options
from omnigraph.naming import require_text, shorten_name
from omnigraph.rowtext import node_id


class Travel(Branching):
    """Everything about other moments than now."""

    def at(self, point: Named) -> Self:
        """A read-only handle on the past.

        A commit id, a manifest version, a moment with its zone (also as ISO text), a span of time
        before now, a tag, a branch, or `HEAD~3` and `main~2`: so many commits before what this
        handle or a branch shows. A tag comes before a branch of the same name.
        """
        self._open()
        shown = find_point(self._store, self._line, self._snapshot, point)
        return type(self)(self._store, self._line, actor=self.actor, pinned=shown)

    def pin(self) -> Self:
        """A read-only handle on what there is now: many reads of one state."""
        return type(self)(self._store, self._line, actor=self.actor, pinned=self._newest())

    def log(
        self,
        branch: str | None = None,
        *,
        limit: int | None = None,
        since: datetime | None = None,
        actor: str | None = None,
        type: str | None = None,
        all: bool = False,
    ) -> CommitLog:
        """The commits a head stands on, newest first; of this handle, of another branch, or `all`.

        In a notebook it is a picture; `print(graph.log().draw())` draws it as text.
        """
        self._open()
        if type is not None:
            require_text(type, "type")
        commits = self._every() if all else self._below(branch)
        kept = (
            one
            for one in commits
            if (actor is None or one.actor == actor)
            and (since is None or one.published >= since)
            and (type is None or type in {key.partition(":")[2] for key in one.tables})
        )
        found = (replace(one, graph=self) for one in islice(kept, limit))
        return CommitLog(found, self._commit_names)

    def commit(self, commit_id: str) -> Commit:
        """One commit: of this branch first, else of any; also a tag, a branch, `HEAD~3`."""
        self._open()
        found = find_commit_named(self._store, self._line, self._snapshot, commit_id)
        return replace(found, graph=self)

    # One entity ---------------------------------------------------------------------------------

    def history(
        self, type_name: str, key: Any, /, *, kind: str | None = None, limit: int | None = None
    ) -> EntityHistory:
        """Every version of one entity, newest first: which commit made it, and its values.

        A node is named by its key, an edge, or a node without key, by its id. Versions from merged
        branches are told with the commits that made them. Where a cleanup took the past it ends,
        and `.gap` is the commit before which nothing is known.
        """
        return self._trace(type_name, key, kind).versions(limit)

    def blame(self, type_name: str, key: Any, /, *, kind: str | None = None) -> dict[str, Blamed]:
        """Who last gave each property of an entity its value, by the name of the property."""
        return self._trace(type_name, key, kind).blame()

    # Tags ---------------------------------------------------------------------------------------

    def tag(self, name: str, point: Named | None = None, *, message: str | None = None) -> Tag:
        """Give a commit a name that stays, whatever happens to its branch: this one by default."""
        if not self._fixed:
            self._writable("a tag")
        self._open()
        commit_id = self._snapshot.commit_id if point is None else self.at(point).head.id
        known = commit_id if point is not None or self._fixed else None
        return tags.create_tag(
            self._store, name, self._line, commit_id=known, actor=self.actor, message=message
        )

    def tags(self) -> list[Tag]:
        """All tags, by name."""
        self._open()
        return tags.list_tags(self._store)

    def untag(self, name: str) -> None:
        """Take a tag away; its commit stays as long as anything else keeps it."""
        self._writable("taking a tag away")
        tags.delete_tag(self._store, name)

    # One commit again ---------------------------------------------------------------------------

    def revert(  # noqa: PLR0913 - all but the first are named
        self,
        commit: Named,
        *,
        mainline: int | None = None,
        branch: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        strategy: Strategy = None,
        granularity: Granularity = "entity",
        dry_run: bool = False,
    ) -> MergeResult:
        """Take back what a commit changed, as a new commit; everything since stays.

        What was changed again since is a conflict, as in a merge: `ours` keeps what is there now,
        `theirs` takes what was before the commit. A merge is taken back relative to its first
        parent, or to the one that `mainline` counts.

        Raises `MergeConflict`, `ReadSetConflict` when the branch moved meanwhile, `ReadOnlyError`.
        """
        asked = Request(Options(granularity_of(granularity)), strategy, if_commit, dry_run)
        return self._replay("revert", commit, branch, mainline, asked, (message, actor))

    def cherry_pick(  # noqa: PLR0913 - all but the first are named
        self,
        commit: Named,
        into: str | None = None,
        *,
        mainline: int | None = None,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        strategy: Strategy = None,
        granularity: Granularity = "entity",
        dry_run: bool = False,
    ) -> MergeResult:
        """Make the changes of one commit again on a branch, this one by default.

        Conflicts are those of a merge: `ours` is the branch, `theirs` the commit.

        Raises `MergeConflict`, `ReadSetConflict` when the branch moved meanwhile, `ReadOnlyError`.
        """
        asked = Request(Options(granularity_of(granularity)), strategy, if_commit, dry_run)
        return self._replay("cherry_pick", commit, into, mainline, asked, (message, actor))

    # Inside -------------------------------------------------------------------------------------

    def _replay(
        self,
        way: Way,
        commit: Named,
        branch: str | None,
        mainline: int | None,
        asked: Request,
        signed: tuple[str | None, str | None],
    ) -> MergeResult:
        verb = f"a {way.replace('_', '-')}"
        self._check_target(verb)
        if not asked.dry_run:
            self._writable(verb)
        target = self._line_named(branch)
        near, line = self._newest(), self._line
        if way == "revert" and target is not line:  # HEAD is that of the branch
            near, line = of_state(self._store, target, target.base()), target
        shown = find_point(self._store, line, near, commit)
        message, actor = signed
        terms = self._merge_terms(message or _said(way, shown.commit), actor)
        asked = replace(asked, signature=terms.signature())
        with operation(way, target.name):
            return self._merged(replay(way, target, shown, asked, mainline))

    def _trace(self, type_name: str, key: Any, kind: str | None) -> Trace:
        shown = self._newest()
        require_text(type_name, "type")
        keys = [f"{one}:{type_name}" for one in ("node", "edge") if kind in (None, one)]
        found = next((one for one in keys if one in shown.tables), None)
        if found is None:
            known = [one.partition(":")[2] for one in shown.tables]
            hint = did_you_mean(type_name, known)
            raise EntityNotFound(f"there is no type {shorten_name(type_name)} here", hint=hint)
        node = found.startswith("node:")
        return Trace(shown, found, node_id(shown.schema.ir, type_name, key) if node else str(key))

    def _below(self, branch: str | None) -> Iterator[Commit]:
        shown = self._snapshot
        if branch is not None:
            line = branches.open_line(self._store, branch)
            shown = of_state(self._store, line, line.base())
        return shown.log.newest_first(shown.commit_id)

    def _every(self) -> list[Commit]:
        found: dict[str, Commit] = {}
        for shown in self._heads().values():
            found |= shown.log.ancestors(shown.commit_id)
        return in_order(found.values())

    def _heads(self) -> dict[str, Snapshot]:
        """What every branch shows now."""
        found = {}
        for name in branches.list_branches(self._store):
            with suppress(BranchNotFound):  # deleted since it was listed
                line = branches.open_line(self._store, name)
                found[name] = of_state(self._store, line, line.base())
        return found

    def _commit_names(self) -> dict[str, tuple[str, ...]]:
        """The branches that end in a commit, and its tags."""
        found: dict[str, tuple[str, ...]] = {}
        named = [(shown.commit_id, name) for name, shown in self._heads().items()]
        named += [(one.commit_id, f"tag: {one.name}") for one in tags.list_tags(self._store)]
        for commit_id, name in named:
            found[commit_id] = (*found.get(commit_id, ()), name)
        return found


def _said(way: Way, commit: Commit) -> str | None:
    """What a commit says that repeats or takes back another."""
    if way == "cherry_pick":
        return commit.message
    return f'Revert "{commit.message}"' if commit.message else f"Revert {commit.id}"
