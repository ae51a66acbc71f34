"""A versioned graph as dictionaries: branches, commits with parents, diffs, and merges.

An oracle for merges, so it knows nothing of the product: neither its code nor how it stores,
finds or compares anything. Every question is answered by looking at all entities.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from tests.model.declared_slots import Misfit, has_misfit, has_type, narrows
from tests.model.row_shapes import Entity, Graph, Identity, Row, Shape, ShapeConflictError, base_shape_of, merged_shape

Side = Literal["ours", "theirs"]
Answer = Side | Mapping[str, Any] | None


@dataclass(frozen=True)
class Rules:
    """What a valid graph is: unique columns, ends and numbers of edges, and what values may be, by type and column."""

    unique: Mapping[str, tuple[tuple[str, ...], ...]]
    ends: Mapping[str, tuple[str, str]]
    card: Mapping[str, tuple[int, int]]
    bounds: Mapping[tuple[str, str], tuple[int, int]]
    required: frozenset[tuple[str, str]] = frozenset()
    choices: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    checks: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)


class Broken(NamedTuple):
    """A rule that a graph breaks: which, about which entity, and all that it is about.

    `columns` are those of the entities of this type that it is about.
    """

    kind: str
    entity: Entity
    involved: frozenset[Entity]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Conflict:
    """What stands against a merge; values only where the rows themselves contradict."""

    kind: str
    entity: Entity
    involved: frozenset[Entity] = frozenset()
    base: Row | None = None
    ours: Row | None = None
    theirs: Row | None = None
    changed: tuple[str, ...] = ()
    of_rows: bool = False


class Discarded(NamedTuple):
    """An edit of a side that a merge did not keep: of a value, or of the whole entity."""

    entity: Entity
    side: Side
    what: str
    value: Any


@dataclass(frozen=True)
class Commit:
    """A graph, the commits it stands on, and the shape of its rows."""

    id: str
    parents: tuple[str, ...]
    graph: Graph
    shape: Shape
    schema_only: bool = False


@dataclass(frozen=True)
class Merge:
    """What a merge does: the graph it makes, or the conflicts; equal edges that both added.

    `combined` counts values put together, `bases` the best common ancestors, `doubtful` entities
    about which these contradict each other, `lost` edges that went with a node which is kept,
    `discarded` every edit that is not in the graph.
    """

    outcome: str
    graph: Graph
    conflicts: tuple[Conflict, ...] = ()
    parallel: tuple[tuple[str, str, str], ...] = ()
    combined: int = 0
    bases: int = 1
    doubtful: int = 0
    lost: tuple[Entity, ...] = ()
    discarded: tuple[Discarded, ...] = ()
    shape: Shape | None = None


def bits(row: Row | None) -> Any:
    """A row so that it equals another one only if their bytes do: -0.0 is not 0.0."""
    if row is None:
        return None
    return {k: ("f", v.hex()) if isinstance(v, float) else (type(v), v) for k, v in row.items()}


def same(one: Row | None, other: Row | None) -> bool:
    """Whether two entities are the same."""
    return bool(bits(one) == bits(other))


def differing(one: Row, other: Row) -> tuple[str, ...]:
    """The names of the values that differ."""
    return tuple(name for name in one if not same({"": one[name]}, {"": other[name]}))


def difference(old: Graph, new: Graph) -> dict[Entity, tuple[Row | None, Row | None]]:
    """What changed: each entity before and after."""
    every = {*old, *new}
    return {one: (old.get(one), new.get(one)) for one in sorted(every) if not same(old.get(one), new.get(one))}


def without(graph: Graph, gone: Entity, rules: Rules) -> dict[Entity, Row]:
    """A graph without an entity; the edges of a node go with it."""
    return {one: row for one, row in graph.items() if one != gone and gone not in ends_of(rules, one, row)}


def ends_of(rules: Rules, one: Entity, row: Row) -> tuple[Entity, ...]:
    """The nodes of an edge."""
    kinds = rules.ends.get(one[0])
    return ((kinds[0], row["src"]), (kinds[1], row["dst"])) if kinds else ()


def broken(rules: Rules, old: Graph, new: Graph) -> Iterator[Broken]:
    """Every rule that a graph breaks that was made from another, valid one."""
    touched = difference(old, new)
    for one, row in new.items():
        for name in sorted(_wrong_values(rules, one[0], row)):
            yield Broken("value_constraint_violation", one, frozenset({one}), (name,))
    yield from _not_unique(rules, new)
    for one, row in new.items():
        for name, end in zip(("src", "dst"), ends_of(rules, one, row), strict=False):
            if end not in new:
                yield Broken("orphan_edge", one, frozenset({one, end}), (name,))
    yield from _miscounted(rules, old, new, touched)


def _wrong_values(rules: Rules, own: str, row: Row) -> list[str]:
    """The columns of a row whose values break a rule, once for each rule."""
    wrong = [name for key, name in rules.required if key == own and row[name] is None]
    given = {name: value for name, value in row.items() if value is not None}
    for (key, name), (low, high) in rules.bounds.items():
        wrong += [name] if key == own and name in given and not low <= given[name] <= high else []
    for (key, name), values in rules.choices.items():
        wrong += [name] if key == own and name in given and given[name] not in values else []
    for (key, name), patterns in rules.checks.items():
        missed = [pattern for pattern in patterns if key == own and not re.search(pattern, given.get(name, ""))]
        wrong += [name] * len(missed) if name in given else []
    return wrong


def _not_unique(rules: Rules, graph: Graph) -> Iterator[Broken]:
    for key, groups in rules.unique.items():
        for columns in groups:
            holders: dict[Any, list[Entity]] = {}
            for one, row in graph.items():
                if one[0] == key and all(row[name] is not None for name in columns):
                    holders.setdefault(tuple(row[name] for name in columns), []).append(one)
            for many in holders.values():
                if len(many) > 1:
                    yield Broken("unique_violation", min(many), frozenset(many), columns)


def _miscounted(rules: Rules, old: Graph, new: Graph, touched: Iterable[Entity]) -> Iterator[Broken]:
    """Sources with edges, and those whose edges changed, unless they went in the same step."""
    for key, (low, high) in rules.card.items():
        kind = rules.ends[key][0]
        rows = [old.get(one) or {} for one in touched if one[0] == key]
        rows += [new.get(one) or {} for one in touched if one[0] == key]
        sources = {row["src"] for row in rows if row}
        counts = Counter(row["src"] for one, row in new.items() if one[0] == key)
        for source in sorted(sources | counts.keys()):
            if (kind, source) in old and (kind, source) not in new:
                continue
            if not low <= counts[source] <= high:
                yield Broken("cardinality_violation", (key, source), frozenset(), ("src",))


class Versions:
    """Branches and commits; ids of commits are given by whoever made them."""

    def __init__(self, rules: Callable[[Shape], Rules], first: str, graph: Graph, extended: str = "") -> None:
        self.rules_of = rules
        self.commits = {first: Commit(first, (), graph, Shape(extended))}
        self.heads = {"main": first}

    def graph(self, branch: str) -> Graph:
        """What a branch shows."""
        return self.commits[self.heads[branch]].graph

    def shape(self, branch: str) -> Shape:
        """The shape of the rows of a branch."""
        return self.commits[self.heads[branch]].shape

    def rules(self, branch: str) -> Rules:
        """What a valid graph is on a branch."""
        return self.rules_of(self.shape(branch))

    def commit(
        self, branch: str, made: str, graph: Graph, merged: str | None = None, shape: Shape | None = None
    ) -> None:
        """A new head of a branch."""
        parents = (self.heads[branch],) if merged is None else (self.heads[branch], merged)
        self.commits[made] = Commit(made, parents, graph, shape or self.shape(branch))
        self.heads[branch] = made

    def reshape(self, branch: str, made: str, shape: Shape) -> None:
        """A new head of a branch, whose rows have another shape."""
        old = self.commits[self.heads[branch]]
        self.commits[made] = Commit(made, (old.id,), old.shape.fit(old.graph, shape), shape, schema_only=True)
        self.heads[branch] = made

    def row_of(self, commit: str, one: Entity, shape: Shape) -> Row | None:
        """An entity as a commit has it, in some shape."""
        known = self.commits[commit]
        row = known.graph.get(one)
        return None if row is None or not has_type(one[0], shape.slots) else known.shape.fit_row(one, row, shape)

    def ancestors(self, commit: str) -> set[str]:
        """A commit and all it stands on."""
        seen: set[str] = set()
        waiting = [commit]
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting += self.commits[one].parents
        return seen

    def bases(self, one: set[str], other: set[str]) -> list[str]:
        """The common ancestors that are ancestors of no other one, in order."""
        shared = one & other
        below = {b for a in shared for b in self.ancestors(a) - {a}}
        return sorted(shared - below)

    def base_of(
        self, bases: list[str], one: Entity, shape: Shape, granularity: str, known: Shape | None = None
    ) -> tuple[Row | None, bool]:
        """An entity in the merge of some commits, and whether they contradict each other, or cannot be told.

        `known` is the shape of the merge of the bases: a base that dropped one of its columns did not change values.
        """
        value = self.row_of(bases[0], one, shape)
        doubt = has_misfit(value)
        below = self.ancestors(bases[0])
        for name in bases[1:]:
            own = self.ancestors(name)
            base, unsure = self.base_of(self.bases(below, own), one, shape, granularity, known)
            other = self.row_of(name, one, shape)
            doubt |= has_misfit(other)
            if name == bases[1]:
                value = self._with_dropped(bases[0], value, base, shape, known)
            other = self._with_dropped(name, other, base, shape, known)
            if not same(value, other):
                changed = not same(base, value), not same(base, other)
                mixed = mixed_row(base, value, other) if granularity == "property" and not unsure else None
                doubt |= unsure or (all(changed) and mixed is None)
                value = mixed or (other if changed == (False, True) else value)
            below |= own
        return value, doubt

    def _with_dropped(
        self, commit: str, row: Row | None, base: Row | None, shape: Shape, known: Shape | None
    ) -> Row | None:
        """A row of a commit with the values of the base in columns that the commit no longer has."""
        if row is None or base is None or known is None:
            return row
        gone = known.numbers - self.commits[commit].shape.numbers
        return {**row, **{name: base[name] for at, name in shape.columns if at in gone and name in row}}

    def credited(self, commit: str, one: Entity, name: str, shape: Shape | None = None) -> str:
        """The commit that gave an entity the value that it has at another one.

        It is the merge that decided about the value: if a side changed it and the merge has another
        one, or if both sides changed it to different ones.
        """
        shape, parents = shape or self.commits[commit].shape, self.commits[commit].parents
        if len(parents) > 1 and self._decided(commit, one, name, shape):
            return commit
        value = value_in(self.row_of(commit, one, shape), name)
        if any(has_misfit(self.row_of(parent, one, shape)) for parent in parents):
            return commit
        for parent in parents:
            if self._has_column(parent, one, name, shape) and value_in(self.row_of(parent, one, shape), name) == value:
                return self.credited(parent, one, name, shape)
        return commit

    def _has_column(self, commit: str, one: Entity, name: str, shape: Shape) -> bool:
        """Whether a column of a shape was there at a commit; the commit that adds one gives it its first value."""
        added = [identity for identity, own in shape.columns if own == name and one[0] == shape.key]
        return self.commits[commit].shape.numbers.issuperset(added)

    def _decided(self, commit: str, one: Entity, name: str, shape: Shape) -> bool:
        parents = self.commits[commit].parents
        bases = self.bases(*(self.ancestors(parent) for parent in parents))
        if any(has_misfit(self.row_of(state, one, shape)) for state in (*bases, *parents)):
            return False
        was = [value_in(self.row_of(base, one, shape), name) for base in bases]
        now = value_in(self.row_of(commit, one, shape), name)
        ours, theirs = (value_in(self.row_of(parent, one, shape), name) for parent in parents)
        edits = {side for side in (ours, theirs) if side not in was}
        return any(edit not in (now, ABSENT) for edit in edits) or (len(edits) > 1 and now in edits)

    def merge(
        self,
        source: str,
        target: str,
        strategy: Callable[[Conflict], Answer] = lambda _: None,
        *,
        granularity: str = "property",
        collapse: bool = False,
    ) -> Merge:
        """The merge of a branch into another."""
        mine, other = self.ancestors(self.heads[target]), self.ancestors(self.heads[source])
        if self.heads[source] in mine:
            return Merge("already_up_to_date", self.graph(target))
        bases = self.bases(mine, other)
        if bases == [self.heads[target]]:
            return Merge("fast_forward", self.graph(source), shape=self.shape(source))
        ours, theirs, shape = self.graph(target), self.graph(source), self.shape(target)
        lost: tuple[Discarded, ...] = ()
        base: Shape | None = None
        if not self.shape(source).agrees(shape) or self._narrowed(bases, shape):
            try:
                base = self.base_shape(bases, (shape, self.shape(source)))
            except ShapeConflictError:
                return Merge("unclear", self.graph(target))
            edits = [*self._edits(bases[0], base, target, source), *self._edits(bases[0], base, source, target)]
            added = [edit for one in (target, source) for edit in self._additions(bases[0], base, one)]
            try:
                shape = self._merged_shape(base, source, target, strategy, {edit[0] for edit in edits})
            except ShapeConflictError as conflict:
                return Merge(f"schema conflict: {conflict.kind}", self.graph(target))
            sides: tuple[tuple[str, Side], ...] = ((target, "ours"), (source, "theirs"))
            lost = tuple(
                Discarded(entity, side, name, value)
                for branch, side in sides
                for at, kept_on, entity, name, value in (*edits, *added)
                if kept_on == branch and at not in shape.numbers
            )
            unfit = [
                Conflict("value_constraint_violation", entity)
                for branch, _ in sides
                for entity in self.shape(branch).misfits(self.graph(branch), shape)
            ]
            if unfit:
                return Merge("misfit", self.graph(target), tuple(unfit))
            ours, theirs = (self._fitted(name, bases, base, shape, granularity) for name, _ in sides)
        work = _Work(self, bases, ours, theirs, shape, granularity, collapse, base)
        found = work.settled(strategy)
        return replace(found, shape=shape, discarded=(*lost, *found.discarded))

    def replay(
        self, kind: str, branch: str, commit: str, strategy: Callable[[Conflict], Answer] = lambda _: None
    ) -> Merge | None:
        """What a revert or a cherry-pick of a commit does; None if the commit changed only the shape."""
        parent, shape = self.commits[commit].parents[0], self.shape(branch)
        if self.commits[commit].schema_only:
            return None
        base, changed = (commit, parent) if kind == "revert" else (parent, commit)
        if self._untold(base, changed, shape):
            return Merge("mismatch", self.graph(branch))
        theirs = self.commits[changed].shape.fit(self.commits[changed].graph, shape)
        found = _Work(self, [base], self.graph(branch), theirs, shape, "property", False).settled(strategy)
        if found.outcome == "merged" and not difference(self.graph(branch), found.graph):
            return None if self._reshapes_only(parent, commit) else replace(found, outcome="already_up_to_date")
        return found

    def _reshapes_only(self, parent: str, commit: str) -> bool:
        """Whether a commit, a merge perhaps, changed nothing but the shape."""
        old, new = self.commits[parent], self.commits[commit]
        same_shape = old.shape.agrees(new.shape)
        return not same_shape and not difference(old.shape.fit(old.graph, new.shape), new.graph)

    def _untold(self, base: str, changed: str, shape: Shape) -> bool:
        """Whether two commits differ in an entity that a shape cannot tell."""
        old, new = self.commits[base].graph, self.commits[changed].graph
        for one in {*old, *new}:
            if not has_type(one[0], shape.slots):
                differs = not same(old.get(one), new.get(one))
                rows: list[Row | None] = [{"": Misfit(one)}]
            else:
                rows = [self.row_of(state, one, shape) for state in (base, changed)]
                differs = not same(rows[0], rows[-1])
            if differs and any(map(has_misfit, rows)):
                return True
        return False

    def _narrowed(self, bases: list[str], shape: Shape) -> bool:
        return any(narrows(self.commits[base].shape.slots, shape.slots) for base in bases)

    def base_shape(self, bases: list[str], sides: tuple[Shape, Shape]) -> Shape:
        """The shape of the merge of some commits; raises if this model does not know it."""
        shape, below = self.commits[bases[0]].shape, self.ancestors(bases[0])
        for name in bases[1:]:
            own, other = self.ancestors(name), self.commits[name].shape
            if not shape.agrees(other):
                shape = base_shape_of(self.base_shape(self.bases(below, own), sides), shape, other, sides)
            below |= own
        return shape

    def _edits(
        self, first_base: str, base: Shape, keeper: str, dropper: str
    ) -> Iterator[tuple[Identity, str, Entity, str, Any]]:
        """Values that a branch wrote since the base into columns that the other branch dropped."""
        kept, known = self.shape(keeper), self.commits[first_base].shape.numbers & base.numbers
        for at, name in kept.columns:
            if at in known and at not in self.shape(dropper).numbers:
                yield from self._written(first_base, keeper, at, name)

    def _additions(self, first_base: str, base: Shape, keeper: str) -> Iterator[tuple[Identity, str, Entity, str, Any]]:
        """Values that a branch wrote into columns that it added."""
        for at, name in self.shape(keeper).columns:
            if at not in base.numbers:
                yield from self._written(first_base, keeper, at, name)

    def _written(
        self, first_base: str, keeper: str, at: Identity, name: str
    ) -> Iterator[tuple[Identity, str, Entity, str, Any]]:
        kept = self.shape(keeper)
        for one, row in self.graph(keeper).items():
            if one[0] != kept.key:
                continue
            was = self.row_of(first_base, one, kept)
            if (was is None and row[name] is not None) or (was is not None and name in differing(was, row)):
                yield at, keeper, one, name, row[name]

    def _fitted(self, branch: str, bases: list[str], base: Shape, shape: Shape, granularity: str) -> Graph:
        """The graph of a branch in the merged shape: columns that only it dropped have the values of the base.

        Where the branch wrote nothing into a new column of rows from before, the merged shape says what is there.
        """
        own = self.shape(branch)
        graph = self._refilled(own.fit(self.graph(branch), shape), bases, base, own, shape, granularity)
        dropped = [name for at, name in shape.columns if at in base.numbers and at not in own.numbers]
        if not dropped:
            return graph
        fitted = dict(graph)
        for one, row in graph.items():
            if one[0] == shape.key:
                was, doubt = self.base_of(bases, one, shape, granularity, base)
                fitted[one] = {**row, **{name: None if was is None or doubt else was[name] for name in dropped}}
        return fitted

    def _refilled(
        self, graph: Graph, bases: list[str], base: Shape, own: Shape, shape: Shape, granularity: str
    ) -> Graph:
        before = {at for name in bases for at in self.commits[name].shape.numbers}
        changed = {name: own.fill_of(name) for at, name in shape.columns if at in own.numbers and at not in before}
        changed = {name: fill for name, fill in changed.items() if fill != shape.fill_of(name)}
        refilled = dict(graph)
        for one, row in graph.items() if changed else ():
            was, doubt = self.base_of(bases, one, shape, granularity, base)
            if one[0] == shape.key and was is not None and not doubt:
                names = [name for name, fill in changed.items() if row[name] == fill]
                refilled[one] = {**row, **{name: shape.fill_of(name) for name in names}}
        return refilled

    def _merged_shape(
        self,
        base: Shape,
        source: str,
        target: str,
        strategy: Callable[[Conflict], Answer],
        edited: set[Identity],
    ) -> Shape:
        def decide() -> str | None:
            answer = strategy(Conflict("schema_conflict", ("node:Person.column", "")))
            return answer if isinstance(answer, str) else None

        return merged_shape(base, self.shape(target), self.shape(source), decide, edited)


ABSENT = "absent"


def value_in(row: Row | None, name: str) -> str:
    """A value so that it can be compared; no entity has none."""
    return ABSENT if row is None else repr(bits({"": row[name]}))


def mixed_row(base: Row | None, ours: Row | None, theirs: Row | None) -> Row | None:
    """The values that only one side changed, and those of neither; None if a value clashes or a row lacks."""
    if base is None or ours is None or theirs is None:
        return None
    mine, other = differing(base, ours), differing(base, theirs)
    if {*mine} & {*other} & {*differing(ours, theirs)}:
        return None
    return {name: (theirs if name in other else ours)[name] for name in ours}


@dataclass
class _Work:
    """One merge: what each entity becomes, and what is decided about some."""

    versions: Versions
    bases: list[str]
    ours: Graph
    theirs: Graph
    shape: Shape
    granularity: str
    collapse: bool
    virtual: Shape | None = None  # the shape of the merged bases
    decided: dict[Entity, Answer] = field(default_factory=dict)
    chosen: dict[Entity, dict[str, Side]] = field(default_factory=dict)  # sides by value

    def __post_init__(self) -> None:
        self.rules = self.versions.rules_of(self.shape)
        every = {*self.ours, *self.theirs}
        every |= {one for base in self.bases for one in self.versions.commits[base].graph}
        how = (self.shape, self.granularity, self.virtual)
        found = {one: self.versions.base_of(self.bases, one, *how) for one in sorted(every)}
        self.doubtful = {one for one, (_, doubt) in found.items() if doubt}
        self.base = {one: row for one, (row, doubt) in found.items() if row is not None and not doubt}
        self.every = sorted(every)
        self.contested: dict[Entity, Conflict] = {}
        self.taken: dict[Entity, Row | None] = {}
        self.combined = 0
        for one in self.every:
            self._classify(one)
        self.parallel = tuple(self._parallel())

    def settled(self, strategy: Callable[[Conflict], Answer]) -> Merge:
        """Judge, decide, judge again, until nothing more is decided."""
        for _ in range(17):
            graph, conflicts = self._judge()
            before = repr((self.decided, self.chosen))
            for one in conflicts:
                self._decide(one, strategy(one))
            if repr((self.decided, self.chosen)) == before:
                break
        outcome = "conflict" if conflicts else "merged"
        many, doubtful, lost = len(self.bases), len(self.doubtful), tuple(self._lost(graph))
        gone = tuple(self._discarded(graph))
        return Merge(outcome, graph, conflicts, self.parallel, self.combined, many, doubtful, lost, gone)

    def _discarded(self, graph: Graph) -> Iterator[Discarded]:
        """Every edit of a side that is not in the graph, decided or not."""
        sides: tuple[tuple[Side, Graph], ...] = (("ours", self.ours), ("theirs", self.theirs))
        for one in self.every:
            if one in self._dropped():
                continue
            base, result = self.base.get(one), graph.get(one)
            for side, rows in sides:
                row = rows.get(one)
                if row is None:
                    if result is not None and (base is not None or one in self.doubtful):
                        yield Discarded(one, side, "deletion", None)
                    continue
                edited = row if base is None else differing(base, row)
                if result is None and edited:
                    yield Discarded(one, side, "entity", row)
                for name in edited if result is not None else ():
                    if name in differing(row, result or {}):
                        yield Discarded(one, side, name, row[name])

    def _dropped(self) -> set[Entity]:
        return {(key, theirs) for key, _, theirs in self.parallel} if self.collapse else set()

    def _lost(self, graph: Graph) -> Iterator[Entity]:
        """Edges that one side removed with a node, and nobody else, when both nodes are there."""
        for one, row in self.base.items():
            ends = ends_of(self.rules, one, row)
            without_it = [side for side in (self.ours, self.theirs) if one not in side]
            if not ends or len(without_it) != 1 or one in graph or one in self.decided:
                continue
            taken = any(end in self.base and end not in without_it[0] for end in ends)
            if taken and all(end in graph for end in ends):
                yield one

    def _decide(self, one: Conflict, answer: Answer) -> None:
        if answer is None:
            return
        if isinstance(answer, Mapping):
            row = self._mixed(one.entity) or self.ours.get(one.entity) or self.theirs[one.entity]
            self.decided.setdefault(one.entity, {**row, **answer})
            return
        for entity in one.involved - self.decided.keys():
            columns = one.changed if entity[0] == one.entity[0] else ()
            if columns and self._mixed(entity) is not None:
                sides = self.chosen.setdefault(entity, {})
                sides |= {name: answer for name in columns if name not in sides}
            elif entity not in self.chosen:
                self.decided[entity] = answer

    def _mixed(self, one: Entity) -> Row | None:
        """An entity whose values go together one by one: chosen ones, those of one side, or ours."""
        base, ours, theirs = (side.get(one) for side in (self.base, self.ours, self.theirs))
        if self.granularity != "property" or base is None or ours is None or theirs is None:
            return None
        mine, sides = differing(base, ours), self.chosen.get(one, {})
        usual = {name: "ours" if name in mine else "theirs" for name in ours}
        return {name: (ours if side == "ours" else theirs)[name] for name, side in {**usual, **sides}.items()}

    def _judge(self) -> tuple[Graph, tuple[Conflict, ...]]:
        dropped = self._dropped()
        found = {one: self._result(one) for one in self.every if one not in dropped}
        graph = {one: row for one, row in found.items() if row is not None}
        open_ = [one for one in self.contested.values() if self._open(one)]
        rules = self.rules
        return graph, (*open_, *(self._rule(one) for one in broken(rules, self.ours, graph)))

    def _open(self, one: Conflict) -> bool:
        sides = self.chosen.get(one.entity)
        return one.entity not in self.decided and (sides is None or not {*one.changed} <= sides.keys())

    def _rule(self, one: Broken) -> Conflict:
        if one.kind != "cardinality_violation":
            return Conflict(one.kind, one.entity, one.involved, changed=one.columns)
        key, source = one.entity
        edges = (entity for entity in self.every if entity[0] == key)
        involved = {entity for entity in edges if self._touches(entity, source)}
        return Conflict(one.kind, one.entity, frozenset(involved), changed=one.columns)

    def _touches(self, entity: Entity, source: str) -> bool:
        rows = [side.get(entity) for side in (self.base, self.ours, self.theirs)]
        changed = not (same(rows[0], rows[1]) and same(rows[0], rows[2]))
        return changed and any(row is not None and row["src"] == source for row in rows)

    def _result(self, one: Entity) -> Row | None:
        said = self.decided.get(one)
        if isinstance(said, Mapping):
            return said
        if said is None:
            return self._mixed(one) if one in self.chosen else self.taken[one]
        return (self.ours if said == "ours" else self.theirs).get(one)

    def _classify(self, one: Entity) -> None:
        base, ours, theirs = (side.get(one) for side in (self.base, self.ours, self.theirs))
        self.taken[one] = ours
        if same(ours, theirs):
            return
        if one in self.doubtful:
            kind = "divergent_update" if ours and theirs else "delete_vs_update"
        elif same(base, ours):
            self.taken[one] = theirs
            return
        elif same(base, theirs):
            return
        elif base is None:
            kind = "divergent_insert"
        else:
            kind = "divergent_update" if ours and theirs else "delete_vs_update"
        changed = differing(ours, theirs) if ours and theirs else ()
        if kind == "delete_vs_update" and base:
            changed = differing(base, ours or theirs or {})
        found = Conflict(kind, one, frozenset({one}), base, ours, theirs, changed, of_rows=True)
        if self.granularity == "property" and base and ours and theirs:
            self._combine(one, found)
        else:
            self.contested[one] = found

    def _combine(self, one: Entity, found: Conflict) -> None:
        """Values that only one side changed go together; the others clash."""
        base, ours, theirs = found.base or {}, found.ours or {}, found.theirs or {}
        mine, other = set(differing(base, ours)), set(differing(base, theirs))
        clash = tuple(name for name in differing(ours, theirs) if name in mine & other)
        if clash:
            self.contested[one] = replace(found, changed=clash)
            return
        self.taken[one] = self._mixed(one)
        self.combined += len(other - mine)

    def _parallel(self) -> Iterator[tuple[str, str, str]]:
        """Equal edges with other ids that both sides added, the first ids first."""
        added = [one for one in self.every if one not in self.base and one[0] in self.rules.ends]
        mine = [one for one in added if one in self.ours and one not in self.theirs]
        other = [one for one in added if one in self.theirs and one not in self.ours]
        taken: set[Entity] = set()
        for one in mine:
            for two in other:
                alike = one[0] == two[0] and same(self.ours[one], self.theirs[two])
                if alike and two not in taken:
                    taken.add(two)
                    yield one[0], one[1], two[1]
                    break
