"""Runs a program of branches and merges on the product and on the model, side by side.

After every step both show the same graph and the same history, and have said the same: refusals,
conflicts, outcomes. At the end every branch and every commit is read again by a new handle.
"""

import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import omnigraph
from omnigraph.errors import BranchNotFound, ClientError, MergeConflict, OmnigraphError
from omnigraph.graph import Graph as Handle
from omnigraph.storage.effects import Fault
from tests.crash.verbs import overdue
from tests.model.programs import (
    RULES,
    SCHEMA,
    START,
    Program,
    Step,
    options_of,
    play,
    strategy_of,
)
from tests.model.spoken import (
    asked,
    changes_of,
    decided,
    exact,
    records,
    remove,
    same_conflicts,
    stored,
)
from tests.model.versions import Entity, Merge, Row, Versions, difference
from tests.rig.writes import rewrite, write

hits: Counter[str] = Counter()  # what the programs of this process came across


class Template:
    """A graph in its first state, made once and copied for every program."""

    root: Path | None = None

    @classmethod
    def copy(cls, to: Path) -> None:
        """A fresh copy of it."""
        if cls.root is None or not cls.root.exists():
            cls.root = Path(mkdtemp()) / "start"
            made = omnigraph.init(cls.root, SCHEMA, durability="os")
            made.load(records(START), mode="append")
            made.close()
        shutil.copytree(cls.root, to)


def run(program: Program, *, whole: bool = True) -> None:
    """Run a program; fails where the product and the model part.

    `whole` reads the past again at the end, else only the branches.
    """
    place = Path(mkdtemp())
    try:
        Template.copy(place / "g")
        run_at = Run(place / "g")
        for step in program:
            run_at.step(step)
        run_at.finish(whole=whole)
    finally:
        shutil.rmtree(place, ignore_errors=True)


class Run:
    """One program under way."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.main = self.opened()
        first, *rest = reversed(self.main.log())
        self.model = Versions(RULES, first.id, {})
        for one in rest:
            self.model.commit("main", one.id, START)
        self.order = [one.id for one in (first, *rest)]
        self.rows: dict[Any, dict[Entity, Row]] = {}
        self.agree("main")

    def opened(self) -> Handle:
        return omnigraph.open(self.root, durability="os")

    def step(self, step: Step) -> None:
        """One step on both sides."""
        hits[step[0]] += 1
        getattr(self, f"_{step[0]}")(*step[1:])

    def handle(self, branch: str) -> Handle:
        return self.main.refresh() if branch == "main" else self.main.checkout(branch)

    # Steps --------------------------------------------------------------------------------------

    def _put(self, branch: str, given: Any) -> None:
        rows = {tuple(one): dict(row) for one, row in given}
        self.write(("put", branch, given), lambda graph: graph.load(records(rows), mode="merge"))

    def _cut(self, branch: str, entity: Entity) -> None:
        self.write(("cut", branch, entity), lambda graph: remove(graph, entity))

    def write(self, step: Step, do: Any) -> None:
        """A write to one branch: both refuse it, or it is one commit on both."""
        branch = step[1]
        if branch not in self.model.heads:
            return
        graph, before = self.handle(branch), self.model.heads[branch]
        refusal = None
        try:
            do(graph)
        except ClientError as error:
            refusal = error
        if refusal is not None:
            hits["refused"] += 1
            told = play(self.model, step, "refused")
            assert (told, refusal.effect) == ("refused", "none"), f"only the product: {refusal}"
        head = graph.refresh().head.id
        if head != before:
            assert play(self.model, step, head) == "done", "only the model refuses"
            self.order.append(head)
        else:
            self.unchanged(step)
        self.agree(branch)

    def unchanged(self, step: Step) -> None:
        """The product made no commit: the model refuses the step, or it changes nothing."""
        branch = step[1]
        before, graph = self.model.heads[branch], self.model.graph(branch)
        if play(self.model, step, "nothing") == "done":
            assert not difference(graph, self.model.graph(branch)), "only the product refuses"
            self.model.heads[branch] = before
            del self.model.commits["nothing"]

    def _fork(self, source: str, name: str, past: int | None) -> None:
        head = play(self.model, ("fork", source, name, past), "")
        if head is not None:
            commit = None if past is None else head
            self.handle(source).branches.create(name, commit=commit)
            self.agree(name)

    def _drop(self, branch: str) -> None:
        if play(self.model, ("drop", branch), "") is not None:
            self.main.refresh().branches.delete(branch)
            assert sorted(self.main.branches) == sorted(self.model.heads)

    def _merge(self, source: str, target: str, how: str) -> None:
        if source == target or not {source, target} <= self.model.heads.keys():
            return
        theirs = self.model.heads[source]
        wanted = self.foretold(source, target, how)
        hits[wanted.outcome] += 1
        hits[f"merge {how}"] += 1
        hits.update(one.kind for one in wanted.conflicts)
        hits["several bases"] += wanted.bases > 1
        hits["doubtful"] += wanted.doubtful > 0
        if how in ("none", "property"):
            self.tried(source, target, how, wanted)
        result, conflicts = self.merged(source, target, how)
        same_conflicts(conflicts, wanted.conflicts)
        if result is None:
            self.agree(target)
            return
        assert result.outcome == wanted.outcome
        assert {tuple(one) for one in result.parallel_edges} == set(wanted.parallel)
        if result.commit is not None:
            before = self.model.graph(target)
            self.model.commit(target, result.commit.id, wanted.graph, theirs)
            self.order.append(result.commit.id)
            assert changes_of(result.delta) == difference(before, wanted.graph)
            assert result.stats["merged_properties"] == wanted.combined
        self.agree(target)
        again = self.main.refresh().merge(source, target)
        assert (again.outcome, again.commit) == ("already_up_to_date", None)

    def tried(self, source: str, target: str, how: str, wanted: Merge) -> None:
        """A dry run tells everything, and does nothing."""
        with self.main._store.effects.recorded() as done:
            result = self.main.refresh().merge(source, target, dry_run=True, **asked(how))
        assert (result.outcome, result.commit, done) == (wanted.outcome, None, [])
        same_conflicts(result.conflicts, wanted.conflicts)
        if not wanted.conflicts:
            assert changes_of(result.delta) == difference(self.model.graph(target), wanted.graph)

    def foretold(self, source: str, target: str, how: str) -> Merge:
        return self.model.merge(source, target, strategy_of(how), **options_of(how))

    def merged(self, source: str, target: str, how: str) -> tuple[Any, Any]:
        """What the product says to a merge: its result, its conflicts."""
        graph = self.main.refresh()
        try:
            if how == "session":
                return decided(graph.merge_session(source, target)), ()
            result = graph.merge(source, target, **asked(how))
        except MergeConflict as error:
            return None, tuple(error.conflicts)
        return result, ()

    def _rewrite(self, branch: str) -> None:
        if branch not in self.model.heads:
            return
        graph = self.handle(branch)
        made = write(graph._line, rewrite(), list(graph.snapshot.tables))
        if made is not None:
            self.model.commit(branch, made.id, self.model.graph(branch))
            self.order.append(made.id)
        self.agree(branch)

    def _reopen(self) -> None:
        self.main.close()
        self.main = self.opened()

    def _fault(self, at: int, how: Any, inner: Step) -> None:
        """A store that fails in the middle: the step is done as a whole, or not at all."""
        if not self.applies(inner):
            return
        before = dict(self.model.heads)
        try:
            self.main = self.opened()
            with self.main._store.effects.failing(Fault(at, how)):
                self.attempt(inner)
            told = "done"
        except (OmnigraphError, OSError) as error:
            told = getattr(error, "effect", "unknown")
        hits[f"fault {told}"] += 1
        with overdue():
            self.main = self.opened()
        self.settle(inner, before, told)

    def applies(self, inner: Step) -> bool:
        heads = self.model.heads
        if inner[0] == "fork":
            return inner[1] in heads and inner[2] not in heads
        if inner[0] == "merge":
            return inner[1] != inner[2] and {inner[1], inner[2]} <= heads.keys()
        return inner[1] in heads and inner[:2] != ("drop", "main")

    def attempt(self, inner: Step) -> None:
        kind, branch, *more = inner
        graph = self.main.refresh()
        if kind == "put":
            rows: Any = {tuple(one): dict(row) for one, row in more[0]}
            self.handle(branch).load(records(rows), mode="merge")
        elif kind == "cut":
            remove(self.handle(branch), more[0])
        elif kind == "drop":
            graph.branches.delete(branch)
        elif kind == "fork":
            graph.branches.create(more[0], from_=branch)
        else:
            self.merged(branch, more[0], more[1])

    def there(self, branch: str) -> bool:
        """Whether a branch is there; who opens one that is half deleted deletes it."""
        with suppress(BranchNotFound):
            self.main.checkout(branch)
        return branch in self.main.branches

    def settle(self, inner: Step, before: dict[str, str], told: str) -> None:
        """Let the model follow what has become of a step that may have failed."""
        kind, branch, *more = inner
        target = more[0] if kind in ("merge", "fork") else branch
        if kind in ("drop", "fork"):
            if self.there(target) != (target in before):
                assert told != "none"
                play(self.model, (*inner[:3], None) if kind == "fork" else inner, "")
            assert sorted(self.main.branches) == sorted(self.model.heads)
            return
        new = [one for one in self.handle(target).log() if one.id not in self.model.commits]
        own = [one for one in new if one.parents[:1] == (before[target],)]
        assert len(new) == len(own) <= 1, new
        for one in own:
            assert told != "none", "it said that nothing happened"
            self.order.append(one.id)
            if one.operation == "refused":
                self.model.commit(target, one.id, self.model.graph(target))
            else:
                assert play(self.model, inner, one.id) is not None
                assert self.model.heads[target] == one.id
        self.agree(target)

    def _diff(self, one: int, other: int) -> None:
        """What the product says about two commits, applied to the first, gives the second."""
        known = sorted(
            {c for head in self.model.heads.values() for c in self.model.ancestors(head)}
        )
        old, new = (known[at % len(known)] for at in (one, other))
        wanted = difference(self.model.commits[old].graph, self.model.commits[new].graph)
        assert changes_of(self.main.diff(old, new)) == wanted

    def _at(self, place: int) -> None:
        commit = self.order[place % len(self.order)]
        for branch, head in sorted(self.model.heads.items()):
            if commit in self.model.ancestors(head):
                past = self.handle(branch).at(commit)
                assert self.shown(past) == exact(self.model.commits[commit].graph)
                return

    # What is compared ---------------------------------------------------------------------------

    def agree(self, branch: str) -> Handle:
        """A branch shows the graph and the history of the model."""
        graph = self.handle(branch)
        assert graph.head.id == self.model.heads[branch]
        wanted = self.model.graph(branch)
        assert self.shown(graph) == exact(wanted), branch
        found = {one.id: one.parents for one in graph.log()}
        known = self.model.ancestors(self.model.heads[branch])
        assert found == {one: self.model.commits[one].parents for one in known}
        return graph

    def shown(self, graph: Handle) -> dict[Entity, Any]:
        """Every entity; a table version that was read before is not read again."""
        every: dict[Entity, Row] = {}
        for key, entry in graph.snapshot.tables.items():
            place = (entry.location, entry.lance_version)
            if place not in self.rows:
                self.rows[place] = stored(graph, key)
            assert entry.rows == len(self.rows[place])
            every |= self.rows[place]
        return exact(every)

    def finish(self, *, whole: bool) -> None:
        """Everything is readable for somebody who knows nothing."""
        self._reopen()
        self.rows.clear()
        assert sorted(self.main.branches) == sorted(self.model.heads)
        seen: set[str] = set()
        for branch, head in self.model.heads.items():
            graph = self.agree(branch)
            for commit in self.model.ancestors(head) - seen if whole else ():
                past = graph.at(commit)
                assert self.shown(past) == exact(self.model.commits[commit].graph)
                seen.add(commit)
        self.main.close()
