"""Runs a program of branches and merges on the product and on the model.

After every step both show the same graph and the same history, and have said the same: refusals,
conflicts, outcomes. At the end every branch and every commit is read again by a new handle.
"""

import os
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

import pytest

import omnigraph
from omnigraph.errors import (
    BranchNotFound,
    ChangeSchemaBoundary,
    ClientError,
    HistoryReclaimed,
    InputError,
    MergeConflict,
    OmnigraphError,
    SchemaMismatch,
    SchemaViolation,
)
from omnigraph.history import diff
from omnigraph.storage import patch_columns
from omnigraph.storage.effects import Fault
from tests.crash.verbs import overdue
from tests.model.declared_slots import has_misfit, has_type
from tests.model.program_comparison import Compared
from tests.model.program_translation import (
    asked,
    changes_of,
    decided,
    patches,
    records,
    remove,
    same_conflicts,
    same_discards,
)
from tests.model.random_programs import (
    PERSON,
    RATES,
    SCHEMA,
    START,
    Program,
    Step,
    accepts,
    options_of,
    patched,
    play,
    reshaped,
    rules_of,
    schema_text,
    shaped,
    strategy_of,
)
from tests.model.row_shapes import Entity, Graph, Row
from tests.model.versioned_graph import Merge, Versions, bits, difference, same
from tests.rig.writes import rewrite, write

hits: Counter[str] = Counter()  # what the programs of this process came across


class Template:
    """A graph in its first state, made once and copied for every program; and its rows."""

    root: Path | None = None
    rows: ClassVar[dict[Any, dict[Entity, Row]]] = {}

    @classmethod
    def copy(cls, to: Path) -> None:
        """A fresh copy of it."""
        if cls.root is None or not cls.root.exists():
            cls.root = Path(mkdtemp()) / "start"
            made = omnigraph.init(cls.root, SCHEMA, durability="os")
            made.load(records(START), mode="append")
            made.close()
        shutil.copytree(cls.root, to, copy_function=os.link)  # files are never changed in place


def run(program: Program, *, whole: bool = True, shadow: bool = False) -> None:
    """Run a program; fails where the product and the model part.

    `whole` reads everything again at the end, the past too; `shadow` compares the quick way to tell
    changes with the slow one. Every other program compares even small tables in stretches. Patches of most rows write
    columns, as they do in large tables.
    """
    place, many, few = Path(mkdtemp()), diff._MAX_DIRECT_ROWS, patch_columns.MIN_ROWS
    diff._MAX_DIRECT_ROWS = 0 if len(program) % 2 else many
    patch_columns.MIN_ROWS = 1
    try:
        Template.copy(place / "g")
        run_at = Run(place / "g", thorough=whole)
        for step in program:
            run_at.step(step)
        if shadow:
            run_at.shadow()
        run_at.finish(whole=whole)
    finally:
        diff._MAX_DIRECT_ROWS, patch_columns.MIN_ROWS = many, few
        shutil.rmtree(place, ignore_errors=True)


class Run(Compared):
    """One program under way."""

    def __init__(self, root: Path, *, thorough: bool = True) -> None:
        super().__init__(root)
        self.thorough = thorough
        first, *rest = reversed(self.main.log())
        self.model = Versions(rules_of, first.id, {}, PERSON)
        for one in rest:
            self.model.commit("main", one.id, START)
        self.order = [one.id for one in (first, *rest)]
        self.rows = dict(Template.rows)
        self.gone = set()
        self.agree("main")
        Template.rows = Template.rows or dict(self.rows)

    def step(self, step: Step) -> None:
        """One step on both sides."""
        hits[step[0]] += 1
        getattr(self, f"_{step[0]}")(*step[1:])

    # Steps --------------------------------------------------------------------------------------

    def _put(self, branch: str, given: Any) -> None:
        if branch in self.model.heads:
            rows = shaped(given, self.model.shape(branch))
            do = lambda graph: graph.load(records(rows), mode="merge")  # noqa: E731
            self.write(("put", branch, given), do)

    def _patch(self, branch: str, given: Any) -> None:
        if branch in self.model.heads:
            rows = patched(given, self.model.shape(branch))
            self.write(("patch", branch, given), lambda graph: graph.load(patches(rows), mode="patch"))

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
        if head is None:
            return
        commit = None if past is None else head
        try:
            self.handle(source).branches.create(name, commit=commit)
        except HistoryReclaimed:
            assert head in self.gone
            del self.model.heads[name]
            return
        self.agree(name)

    def _drop(self, branch: str) -> None:
        if play(self.model, ("drop", branch), "") is not None:
            self.known.discard(branch)
            self.main.refresh().branches.delete(branch, force=True)
            assert sorted(self.main.branches) == sorted(self.model.heads)

    def _merge(self, source: str, target: str, how: str) -> None:
        if source == target or not {source, target} <= self.model.heads.keys():
            return
        wanted = self.foretold(source, target, how)
        hits[wanted.outcome] += 1
        if self.unknown(wanted):
            return
        hits[f"merge {how}"] += 1
        hits.update(one.kind for one in wanted.conflicts)
        hits.update("keyed edge clash" for one in wanted.conflicts if one.entity[0] == RATES)
        hits["keyed edge on both"] += self.agree_on_a_new_edge(source, target)
        hits["several bases"] += wanted.bases > 1
        hits.update(self.merged_slots(source, target, wanted))
        hits["doubtful"] += wanted.doubtful > 0
        hits["lost edges"] += len(wanted.lost) > 0 and not wanted.conflicts
        if wanted.outcome == "misfit" or wanted.outcome.startswith("schema conflict"):
            self.refused(source, target, how, wanted)
            return
        try:
            self.merge_both(source, target, how, wanted)
        except HistoryReclaimed:
            # The bases of several bases are nobody's any more: a merge never guesses one.
            assert self.gone
            assert wanted.bases > 1
            self.agree(target)

    def unknown(self, wanted: Merge) -> bool:
        """Whether columns took one name in a way that the model does not decide."""
        return wanted.outcome in ("unclear", "schema conflict: name taken")

    def merged_slots(self, source: str, target: str, wanted: Merge) -> list[str]:
        """The slots that a merge brought from its source although the target changed some, too."""
        if wanted.outcome != "merged" or wanted.shape is None:
            return []
        ours, theirs, merged = self.model.shape(target).slots, self.model.shape(source).slots, wanted.shape.slots
        changed = [slot for slot in merged if merged[slot] != ours[slot]]
        kept = any(merged[slot] != theirs[slot] for slot in merged)
        return [f"slot {slot}{' of two schemas' if kept else ''}" for slot in changed]

    def agree_on_a_new_edge(self, source: str, target: str) -> bool:
        """Whether both branches have an equal keyed edge that they did not have at the start."""
        ours, theirs = self.model.graph(target), self.model.graph(source)
        return any(one[0] == RATES and one not in START and theirs.get(one) == row for one, row in ours.items())

    def refused(self, source: str, target: str, how: str, wanted: Merge) -> None:
        """Schemas that cannot be put together are told, and nothing happens."""
        if wanted.outcome == "misfit":
            preview = self.main.refresh().merge(source, target, dry_run=True, **asked(how))
            assert preview.outcome == "conflict"
            same_conflicts(preview.conflicts, wanted.conflicts)
            with pytest.raises(MergeConflict) as caught:
                self.main.refresh().merge(source, target, **asked(how))
            same_conflicts(caught.value.conflicts, wanted.conflicts)
        else:
            preview = self.main.refresh().merge(source, target, dry_run=True, **asked(how))
            assert preview.outcome == "conflict"
            with pytest.raises(MergeConflict) as caught:
                self.main.refresh().merge(source, target, **asked(how))
            assert {conflict.kind for conflict in caught.value.conflicts} == {"schema_conflict"}
        self.agree(target)

    def merge_both(self, source: str, target: str, how: str, wanted: Merge) -> None:
        theirs = self.model.heads[source]
        if how in ("property", "theirs", "entity ours") or (how == "none" and self.thorough):
            self.tried(source, target, how, wanted)
        result, conflicts = self.merged(source, target, how)
        same_conflicts(conflicts, wanted.conflicts)
        if result is None:
            self.agree(target)
            return
        assert result.outcome == wanted.outcome
        assert {tuple(one) for one in result.parallel_edges} == set(wanted.parallel)
        assert [(one.key, one.id) for one in result.lost_edges] == sorted(wanted.lost)
        same_discards(result.discarded, wanted.discarded)
        if result.commit is not None:
            before = self.before(target, wanted)
            self.model.commit(target, result.commit.id, wanted.graph, theirs, wanted.shape)
            self.order.append(result.commit.id)
            assert changes_of(result.delta) == difference(before, wanted.graph)
            assert result.stats["merged_properties"] == wanted.combined
            self.credits(target, wanted)
        self.agree(target)
        again = self.main.refresh().merge(source, target)
        assert (again.outcome, again.commit) == ("already_up_to_date", None)

    def tried(self, source: str, target: str, how: str, wanted: Merge) -> None:
        """A dry run tells everything, and does nothing."""
        with self.main._handle.store.effects.recording() as done:
            result = self.main.refresh().merge(source, target, dry_run=True, **asked(how))
        assert (result.outcome, result.commit, done) == (wanted.outcome, None, [])
        same_conflicts(result.conflicts, wanted.conflicts)
        if not wanted.conflicts:
            assert changes_of(result.delta) == difference(self.before(target, wanted), wanted.graph)
            same_discards(result.discarded, wanted.discarded)

    def before(self, target: str, wanted: Merge) -> Graph:
        """What the target of a merge shows, in the shape that it gets."""
        shape = self.model.shape(target)
        return shape.fit(self.model.graph(target), wanted.shape or shape)

    def credits(self, target: str, wanted: Merge) -> None:
        """Blame credits every value of an entity about which a merge decided to the commit of the model."""
        hits["discarded"] += len(wanted.discarded) > 0
        decided = sorted({one.entity for one in wanted.discarded if one.entity in wanted.graph})
        for entity in decided[:2] if not self.gone else ():
            hits["credited"] += 1
            kind, _, name = entity[0].partition(":")
            found = self.handle(target).revisions.blame(name, entity[1], kind=kind)
            head = self.model.heads[target]
            known = {column: self.model.credited(head, entity, column) for column in wanted.graph[entity]}
            assert {column: one.commit and one.commit.id for column, one in found.items()} == known

    def foretold(self, source: str, target: str, how: str) -> Merge:
        return self.model.merge(source, target, strategy_of(how), **options_of(how))

    def merged(self, source: str, target: str, how: str) -> tuple[Any, Any]:
        """What the product says to a merge: its result, its conflicts."""
        graph = self.main.refresh()
        try:
            if how == "session":
                return decided(graph.branches.merge_session(source, target)), ()
            result = graph.merge(source, target, **asked(how))
        except MergeConflict as error:
            return None, tuple(error.conflicts)
        return result, ()

    def _rewrite(self, branch: str) -> None:
        if branch not in self.model.heads:
            return
        graph = self.handle(branch)
        made = write(graph._handle.branch_state, rewrite(), list(graph.snapshot.tables))
        if made is not None:
            self.model.commit(branch, made.id, self.model.graph(branch))
            self.order.append(made.id)
        self.agree(branch)

    def _optimize(self, branch: str) -> None:
        if branch not in self.model.heads:
            return
        for one in self.handle(branch).maintenance.optimize().commits:
            self.model.commit(branch, one.id, self.model.graph(branch))
            self.order.append(one.id)
        self.agree(branch)

    def _schema(self, branch: str | None, verb: Any) -> None:
        for one in sorted(self.model.heads) if branch is None else [branch]:
            if one in self.model.heads:
                self.reshape(one, verb)

    def reshape(self, branch: str, verb: Any) -> None:
        """Another schema of a branch: the rows stay, with other columns."""
        old = self.model.shape(branch)
        new = reshaped(old, verb)
        if new is None:
            return
        if not accepts(self.model.graph(branch), old, new):
            hits["schema refused"] += 1
            with pytest.raises(SchemaViolation):
                self.handle(branch).schema.apply(schema_text(old, new))
        else:
            done = self.handle(branch).schema.apply(schema_text(old, new))
            assert done.commit is not None
            self.model.reshape(branch, done.commit.id, new)
            self.order.append(done.commit.id)
        self.agree(branch)

    def _cleanup(self, keep: int) -> None:
        """What no branch needs goes; everything else is as before."""
        graph = self.main.refresh()
        self.gone |= self.model.commits.keys() - self.retained(keep)
        graph.maintenance.cleanup(keep=keep, older_than=0, grace=0, confirm=True)
        for branch in sorted(self.model.heads):
            self.agree(branch)

    def _fault(self, at: int, how: Any, inner: Step) -> None:
        """A store that fails in the middle: the step is done as a whole, or not at all."""
        if not self.applies(inner):
            return
        before = dict(self.model.heads)
        self.known.clear()
        try:
            self.main = self.opened()
            with self.main._handle.store.effects.failing(Fault(at, how)):
                self.attempt(inner)
            told = "done"
        except (OmnigraphError, OSError) as error:
            told = getattr(error, "effect", "unknown")
        hits[f"fault {told}"] += 1
        with overdue():
            self.main = self.opened()
        self.known.clear()
        self.settle(inner, before, told)

    def applies(self, inner: Step) -> bool:
        heads = self.model.heads
        if inner[0] == "fork":
            return inner[1] in heads and inner[2] not in heads
        if inner[0] == "merge":
            known = inner[1] != inner[2] and {inner[1], inner[2]} <= heads.keys()
            return known and not self.unknown(self.foretold(*inner[1:]))
        if inner[0] == "schema" and inner[1] in heads:
            return reshaped(self.model.shape(inner[1]), inner[2]) is not None
        return inner[1] in heads and inner[:2] != ("drop", "main")

    def attempt(self, inner: Step) -> None:
        kind, branch, *more = inner
        graph = self.main.refresh()
        if kind == "put":
            rows = shaped(more[0], self.model.shape(branch))
            self.handle(branch).load(records(rows), mode="merge")
        elif kind == "patch":
            rows = patched(more[0], self.model.shape(branch))
            self.handle(branch).load(patches(rows), mode="patch")
        elif kind == "schema":
            old = self.model.shape(branch)
            new = reshaped(old, more[0])
            assert new is not None
            self.handle(branch).schema.apply(schema_text(old, new))
        elif kind == "cut":
            remove(self.handle(branch), more[0])
        elif kind == "drop":
            graph.branches.delete(branch, force=True)
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
        known = sorted({c for head in self.model.heads.values() for c in self.model.ancestors(head)})
        old, new = (known[at % len(known)] for at in (one, other))
        was, now = self.model.commits[old], self.model.commits[new]
        wanted = difference(was.shape.fit(was.graph, now.shape), now.graph)
        wanted |= {one: (row, None) for one, row in was.graph.items() if not has_type(one[0], now.shape.slots)}
        if was.shape.misfits(was.graph, now.shape) and not self.gone:
            hits["boundary"] += 1
            with pytest.raises(ChangeSchemaBoundary):
                list(self.main.diff(old, new))
            return
        try:
            difference_found = self.main.diff(old, new)
            assert changes_of(difference_found) == wanted
            assert (difference_found.schema_change is None) == was.shape.agrees(now.shape)
        except HistoryReclaimed:
            assert {old, new} & self.gone

    def _replay(self, kind: str, place: int, branch: str, how: str) -> None:
        """Undo a commit, or take it from anywhere, in the shape that the branch has by now."""
        known = sorted({c for head in self.model.heads.values() for c in self.model.ancestors(head)})
        commit = known[place % len(known)]
        if branch not in self.model.heads or not self.model.commits[commit].parents or self.gone:
            return
        wanted = self.model.replay(kind, branch, commit, strategy_of(how))
        graph = self.handle(branch)
        act = graph.revisions.revert if kind == "revert" else graph.revisions.cherry_pick
        hits[f"replay {wanted.outcome if wanted else 'refused'}"] += 1
        if wanted is None:
            with pytest.raises(InputError, match="changed only the schema"):
                act(commit)
        elif wanted.outcome == "mismatch":
            with pytest.raises(SchemaMismatch):
                act(commit)
        elif wanted.outcome == "conflict":
            with pytest.raises(MergeConflict) as caught:
                act(commit, strategy=asked(how).get("strategy"))
            same_conflicts(caught.value.conflicts, wanted.conflicts)
        else:
            result = act(commit, strategy=asked(how).get("strategy"))
            assert result.outcome == wanted.outcome
            same_discards(result.discarded, wanted.discarded)
            if result.commit is not None:
                self.model.commit(branch, result.commit.id, wanted.graph)
                self.order.append(result.commit.id)
        self.agree(branch)

    def _trace(self, branch: str, entity: Entity) -> None:
        """The history of an entity is told in the shape of the branch; versions of merges are another matter."""
        if branch not in self.model.heads or self.gone:
            return
        head = self.model.heads[branch]
        shape = self.model.commits[head].shape
        wanted = {}
        for commit in self.model.ancestors(head):
            parents = self.model.commits[commit].parents
            rows = [self.model.row_of(one, entity, shape) for one in (commit, *parents)]
            if any(map(has_misfit, rows)):
                hits["boundary traced"] += 1
                kind, _, name = entity[0].partition(":")
                assert not self.handle(branch).revisions.history(name, entity[1], kind=kind).complete
                return
            if len(parents) == 1 and not same(rows[0], rows[1]):
                wanted[commit] = bits(rows[0])
        kind, _, name = entity[0].partition(":")
        versions = self.handle(branch).revisions.history(name, entity[1], kind=kind)
        assert versions.complete
        hits["traced"] += len(versions) > 1
        found = {
            one.commit.id: None if one.values is None else bits({**one.values, **(one.endpoints or {})})
            for one in versions
            if len(one.commit.parents) == 1
        }
        assert found == wanted

    def _at(self, place: int) -> None:
        commit = self.order[place % len(self.order)]
        for branch, head in sorted(self.model.heads.items()):
            if commit in self.model.ancestors(head):
                self.past(self.handle(branch), commit)
                return
