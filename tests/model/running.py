"""Runs a program of branches and merges on the product and on the model, side by side.

After every step both show the same graph and the same history, and have said the same: refusals,
conflicts, outcomes. At the end every branch and every commit is read again by a new handle.
"""

import json
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
    PERSON,
    RULES,
    SCHEMA,
    START,
    Program,
    Step,
    options_of,
    play,
    strategy_of,
)
from tests.model.versions import Conflict, Entity, Graph, Merge, Row, Versions, bits, difference
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

    def foretold(self, source: str, target: str, how: str) -> Merge:
        return self.model.merge(source, target, strategy_of(how), **options_of(how))

    def merged(self, source: str, target: str, how: str) -> tuple[Any, Any]:
        """What the product says to a merge: its result, its conflicts."""
        options = options_of(how)
        try:
            result = self.main.refresh().merge(
                source,
                target,
                strategy=None if how == "none" else strategy_of(how),
                granularity=options["granularity"],
                collapse_edges=options["collapse"],
            )
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


def stored(graph: Handle, key: str) -> dict[Entity, Row]:
    """The rows of a table, by entity."""
    rows = graph.snapshot.table(key).dataset.to_table().to_pylist()
    found: dict[Entity, Row] = {(key, row.pop("id")): row for row in rows}
    assert len(found) == len(rows), f"an id twice in {key}"
    return found


def exact(graph: Graph) -> dict[Entity, Any]:
    """A graph that equals another one only if their bytes do."""
    return {one: bits(row) for one, row in graph.items()}


def changes_of(found: Any) -> dict[Entity, tuple[Row | None, Row | None]]:
    """A diff of the product as the model tells it."""
    made: dict[Entity, tuple[Row | None, Row | None]] = {}
    for one in found:
        before, after = (
            None if row is None else {**(ends or {}), **row}
            for row, ends in (
                (one.before, one.endpoints_before),
                (one.after, one.endpoints_after),
            )
        )
        made[f"{one.kind}:{one.type}", one.id] = (before, after)
        op = "insert" if before is None else "delete" if after is None else "update"
        assert one.op == op
    return made


def same_conflicts(found: Any, wanted: tuple[Conflict, ...]) -> None:
    """The product names the conflicts of the model, with their values."""
    unique = [one for one in wanted if one.kind == "unique_violation"]
    others = sorted((one.entity, one.kind) for one in wanted if one.kind != "unique_violation")
    named = [((f"{one.entity_kind}:{one.type_name}", one.entity_id), one.kind) for one in found]
    assert sorted(one for one in named if one[1] != "unique_violation") == others
    holders = {entity for entity, kind in named if kind == "unique_violation"}
    assert holders <= {entity for one in unique for entity in one.involved}
    assert all(one.involved & holders for one in unique), "two holders of a value, unnoticed"
    rows = {one.entity: one for one in wanted if one.mixed}
    for entity, one in zip((entity for entity, _ in named), found, strict=True):
        if entity in rows and one.kind == rows[entity].kind:
            told = (one.base, one.ours, one.theirs)
            known = rows[entity]
            assert [bits(row) for row in told] == [
                bits(row) for row in (known.base, known.ours, known.theirs)
            ]
            assert set(one.changed) == set(known.changed)
    places = [(one.entity_kind != "node", one.type_name, one.entity_id, one.kind) for one in found]
    assert places == sorted(places)


def records(graph: Graph) -> bytes:
    """Entities as a load takes them."""
    return "\n".join(_record(one, row) for one, row in graph.items()).encode()


def _record(one: Entity, row: Row) -> str:
    kind, _, name = one[0].partition(":")
    data = {k: v for k, v in row.items() if k not in ("src", "dst")}
    data |= {} if one[0] == PERSON else {"id": one[1]}
    if kind == "node":
        return json.dumps({"type": name, "data": data})
    return json.dumps({"edge": name, "from": row["src"], "to": row["dst"], "data": data})


def remove(graph: Handle, entity: Entity) -> Any:
    """Delete one entity."""
    name = entity[0].partition(":")[2]
    column = "name" if entity[0] == PERSON else "id"
    return graph.delete(name, where=f"{column} = $own", own=entity[1])
