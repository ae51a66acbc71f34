"""The branching part of a graph handle: compare states, merge branches.

Each call is one comparison or one merge below; a merge ends in one publish, or in no effect.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from omnigraph.comparison import Diff, Names, compare_snapshots
from omnigraph.errors import InputError, OmnigraphError
from omnigraph.events import operation
from omnigraph.handle import Handle
from omnigraph.history import branches
from omnigraph.history.bases import common_base
from omnigraph.history.line import Line
from omnigraph.history.points import find_point
from omnigraph.history.snapshot import Snapshot
from omnigraph.merges import MergeResult, MergeSession, result_of
from omnigraph.merging.limits import MergeLimits
from omnigraph.merging.merge import Merged, Request, merge, open_merge
from omnigraph.merging.sides import Granularity
from omnigraph.merging.strategy import Strategy
from omnigraph.merging.work import Options
from omnigraph.naming import clean
from omnigraph.terms import Terms, actor_of

State = str | int | datetime | timedelta | Handle | Snapshot | None


def _away(engine: str, spark: Any) -> Any:
    """Where the joins of a large merge run; asked for late, since few handles ever merge."""
    from omnigraph.pipeline.merge import merge_engine

    return merge_engine(engine, spark)  # type: ignore[arg-type]


class Branching(Handle):
    """Everything that puts two states of a graph side by side."""

    def diff(
        self,
        a: State,
        b: State = None,
        *,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> Diff:
        """What changed from `a` to `b`, entity by entity; without `b` to what this handle shows.

        Each is a branch, a commit id, a version, a moment, `HEAD~3`, or a handle. `main..dev` are
        both in one word; `main...dev` is what `dev` changed since it left `main`.

        Raises `ChangeSchemaBoundary` where a type has other properties in the two states, and
        `HistoryReclaimed` where cleanup has removed one of them.
        """
        self._open()
        old, new = self._pair(a, b)
        return compare_snapshots(old, new, types, kinds, ops)

    def merge(  # noqa: PLR0913 - all but two are named
        self,
        source: str | None = None,
        into: str | None = None,
        *,
        message: str | None = None,
        actor: str | None = None,
        delete_branch: bool = False,
        if_commit: str | None = None,
        strategy: Strategy = None,
        granularity: Granularity = "entity",
        collapse_edges: bool = False,
        dry_run: bool = False,
        limits: MergeLimits | None = None,
        engine: Literal["auto", "spark", "local"] = "auto",
        spark: Any = None,
    ) -> MergeResult:
        """Merge a branch into another: one commit with two parents.

        Without `into` the target is the branch of this handle, without `source` the source is; a
        merge that names neither is refused, and so is one on a view of a past commit or a tag.
        What only one side changed is taken; what both changed differently is a conflict, and all
        of them are raised as one `MergeConflict`, or given back in a `dry_run`. `strategy` decides
        them: `ours` (the target) or `theirs` (the source), a dict of these by kind of conflict or
        by type, or a function of the conflict that gives one of them, values, or None. With
        `granularity="property"` changes of different properties of one entity go together.
        `collapse_edges` keeps one of two equal edges that both sides added. `engine` is "local",
        in this process, "spark", on the session `spark` or on one of its own, or "auto": Spark when
        both sides together changed millions of rows; the result is the same.

        Raises `MergeConflict`, `SchemaMismatch`, `ReadSetConflict` when the target moved meanwhile,
        `PreconditionFailed`, `ReadOnlyError`.
        """
        away = _away(engine, spark)
        bounds = limits or MergeLimits()
        options = Options(granularity_of(granularity), collapse_edges, bounds, away)
        terms = self._merge_terms(message, actor)
        asked = Request(options, strategy, if_commit, dry_run, terms.signature())
        self._check_target("a merge")
        if not dry_run:
            self._writable("a merge")
        theirs, ours = self._lines(source, into)
        with operation("merge", ours.name) as event:
            found = merge(theirs, ours, asked)
            result = self._merged(found)
            event.facts["outcome_of_merge"] = found.outcome
        if delete_branch and not dry_run:
            return self._without_branch(result, theirs)
        return result

    def merge_session(  # noqa: PLR0913 - all but two are named
        self,
        source: str | None = None,
        into: str | None = None,
        *,
        granularity: Granularity = "entity",
        collapse_edges: bool = False,
        message: str | None = None,
        actor: str | None = None,
        engine: Literal["auto", "spark", "local"] = "auto",
        spark: Any = None,
    ) -> MergeSession:
        """A merge to be looked at and decided conflict by conflict before it is committed.

        Source and target are those of `merge`.
        """
        self._writable("a merge")
        theirs, ours = self._lines(source, into)
        away = _away(engine, spark)
        options = Options(granularity_of(granularity), collapse_edges, elsewhere=away)
        asked = Request(options, signature=self._merge_terms(message, actor).signature())
        return MergeSession(open_merge(theirs, ours), asked, self._merged)

    # Inside -------------------------------------------------------------------------------------

    def _merged(self, found: Merged) -> MergeResult:
        if found.commit is not None and found.frame.target.ulid == self._line.ulid:
            self.refresh()
        return result_of(replace(found, commit=self._given_out(found.commit)))

    def _merge_terms(self, message: str | None, actor: str | None) -> Terms:
        return Terms(message=message, actor=actor_of(actor) if actor else self.actor)

    def _lines(self, source: str | None, into: str | None) -> tuple[Line, Line]:
        """Source and target: the branch of this handle stands in for the name that is omitted."""
        return self._line_named(source), self._line_named(into)

    def _line_named(self, name: str | None) -> Line:
        self._open()
        if name is None or clean(name) == self.branch_name:
            return self._line
        return branches.open_line(self._store, name)

    def _without_branch(self, result: MergeResult, source: Line) -> MergeResult:
        """Delete the merged branch; if that fails, the merge has still been done."""
        try:
            here, head = self.branch_name, result.source
            branches.delete_branch(self._store, source.name, bound=here, head=head)
        except OmnigraphError as error:
            return replace(result, branch_delete_error=str(error))
        return replace(result, branch_deleted=True)

    def _pair(self, a: State, b: State) -> tuple[Snapshot, Snapshot]:
        if isinstance(a, str) and ".." in a and b is None:
            first, dots, second = a.partition("..." if "..." in a else "..")
            old, new = self._shown(first or None), self._shown(second or None)
            return (common_base(new, old), new) if dots == "..." else (old, new)
        return self._shown(a), self._shown(b)

    def _shown(self, what: State) -> Snapshot:
        if what is None:
            return self._newest()
        if isinstance(what, Snapshot):
            return what
        if isinstance(what, Handle):
            return what._newest()
        return find_point(self._store, self._line, self._newest(), what)


def granularity_of(text: Granularity) -> Granularity:
    """A word for how finely a merge looks, if it is one."""
    if text not in ("entity", "property"):
        raise InputError(f"'{text}' is no granularity", reason="expected 'entity' or 'property'")
    return text
