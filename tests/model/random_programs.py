"""Random programs of branches and merges, and their reduction when they fail.

Owns the form of a program (a list of steps, each a tuple of plain values), how one is thought up,
and how a failing one is shrunk and printed. A step about a branch that is not there does nothing,
so any part of a program is a program.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any

from tests.model.declared_slots import GRADES, VERBS, changed_slots, has_type, slot_text, written
from tests.model.row_shapes import Entity, Graph, Row, Shape
from tests.model.versioned_graph import Rules, Versions, broken, without

Step = tuple[Any, ...]
Program = tuple[Step, ...]

SCHEMA = """
node Person {
  name: String
  age: I32?
  nick: String?
  score: F64?
  size: I32?
  level: enum(low, mid)?
  @key(name)
  @unique(nick)
  @range(age, 0..99)
}
node Team { title: String? }
edge Knows: Person -> Person { since: I32? }
edge Leads: Person -> Team @card(1..2)
edge Likes: Person -> Person { @unique(src, dst) }
edge Rates: Person -> Person { kind: String  stars: I32?  @key(src, dst, kind) }
"""
PERSON, TEAM, KNOWS, LEADS, LIKES = (*("node:Person", "node:Team"), *("edge:Knows", "edge:Leads", "edge:Likes"))
RATES = "edge:Rates"
KEYED = (PERSON, RATES, GRADES)  # types whose ids derive from keys
ENDS = {
    **{KNOWS: (PERSON, PERSON), LEADS: (PERSON, TEAM), LIKES: (PERSON, PERSON)},
    **{RATES: (PERSON, PERSON), GRADES: (PERSON, TEAM)},
}
START: Graph = {
    (PERSON, "a"): {"name": "a", "age": 1, "nick": "A", "score": 0.0, "size": None, "level": None},
    (PERSON, "b"): {"name": "b", "age": 2, "nick": None, "score": None, "size": 7, "level": None},
    (PERSON, "c"): {"name": "c", "age": None, "nick": None, "score": 1.5, "size": None, "level": "low"},
    (TEAM, "s"): {"title": "x"},
    (TEAM, "t"): {"title": None},
    (KNOWS, "k1"): {"src": "a", "dst": "b", "since": 1},
    (LEADS, "l1"): {"src": "a", "dst": "s"},
    (LEADS, "l2"): {"src": "a", "dst": "t"},
    (LIKES, "i1"): {"src": "b", "dst": "c"},
    (RATES, '["b","a","x"]'): {"src": "b", "dst": "a", "kind": "x", "stars": 1},
}


def rules_of(shape: Shape) -> Rules:
    """What a valid graph of a shape is."""
    slots = shape.slots
    size = slots["size.name"]
    required = [(PERSON, size)] if slots["size.required"] else []
    required += [(RATES, "stars")] if slots["stars.required"] else []
    return Rules(
        unique={
            PERSON: (("nick",), (size,)) if slots["size.unique"] else (("nick",),),
            LIKES: (("src", "dst"),),
            KNOWS: (("src", "since"),) if slots["knows.unique"] else (),
        },
        ends=ENDS,
        card={LEADS: (1, 2), **({KNOWS: slots["knows.card"]} if slots["knows.card"] else {})},
        bounds={
            (PERSON, "age"): (0, 99),
            **({(PERSON, size): slots["size.range"]} if slots["size.range"] else {}),
        },
        required=frozenset(required),
        choices={(PERSON, "level"): slots["level.values"]},
        checks={(TEAM, "title"): slots["title.checks"]},
    )


_IDS = {
    PERSON: ("a", "b", "c", "d"),
    TEAM: ("s", "t"),
    KNOWS: ("k1", "k2", "k3"),
    LEADS: ("l1", "l2", "l3"),
    LIKES: ("i1", "i2"),
}
STRATEGIES = (
    *("none", "none", "ours", "theirs", "session", "rows", "values", "wrong", "mixed", "collapse"),
    *("entity none", "entity ours", "entity theirs", "entity values"),  # of whole entities
)
_KINDS = (
    *("put",) * 14,
    *("cut",) * 4,
    *("fork",) * 3,
    *("merge",) * 12,
    *("drop", "rewrite", "rewrite", "reopen", "fault", "fault", "diff", "at"),
    *("schema", "reshape", "reshape", "reshape", "optimize", "cleanup"),
    *("slot", "slot", "patch", "patch", "patch"),
    *("replay", "replay", "trace"),
)
_COLUMNS = ("more", "other")  # that a schema may add
_RANK = "rank"  # a required column that a schema may add, with one of two defaults
_BEGIN = ("fork", "put", "put")  # what programs begin with, or else with one of these:
_CROSSED = ("cross_fork", "cross_main", "cross_other", "cross_keep", "cross_one", "cross_two")
_SHAPED = (*("shape_add", "value_main", "cross_fork", "shape_rename"), *("value_p", "value_main", "cross_look"))
_EVOLVED = ("cross_fork", "reshape", "reshape", "value_main", "value_p", "cross_merge", "reshape", "cross_merge")
_DROPPED = (
    *("shape_add", "value_main", "cross_fork", "value_p", "shape_main_drop", "cross_merge"),
    *("trace", "replay", "value_p", "cross_merge"),
)
_WOVEN = (
    *("cross_fork", "shape_main_add", "shape_main_add", "shape_p_add", "value_main", "value_p", "cross_keep"),
    *("cross_one", "cross_two", "shape_p_drop", "value_main", "cross_merge"),
)
_RULED = (
    *("cross_fork", "put_main", "slot_main", "slot_p", "put_main", "put_p", "patch_main", "patch_p", "cross_merge"),
    *("put_p", "slot_p", "cross_merge"),
)
_RULED_CROSSED = (
    *("cross_fork", "slot_main", "slot_p", "put_main", "put_p", "cross_keep", "cross_one", "cross_two"),
    *("slot_main", "put_p", "cross_merge"),
)
_WIDENED = (  # to different types, with values that do not fit the other one
    *("cross_fork", "wide_main", "wide_p", "patch_main", "patch_p", "patch_main", "cross_keep", "cross_one"),
    *("cross_two", "patch_p", "patch_main", "cross_merge", "cross_back"),
)
_FILLED = ("cross_fork", "shape_main_filla", "shape_p_fillb")
_CLEANED = ("cross_fork", "cross_main", "cross_other", "cleanup", "cross_merge")
_CLASHED = ("cross_fork", "nick_main", "nick_p", "cross_merge")
_EDITED = ("cross_fork", "edit_main", "edit_p", "cross_merge")
_RATED = ("cross_fork", "rate_main", "rate_p", "cross_merge")


class Author:
    """Thinks up programs, on a model of its own, so that most steps do something."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.model = Versions(rules_of, "c00", START, PERSON)
        self.count = 0
        self.slot = ""  # the one that a step changed last

    def program(self, size: int) -> Program:
        """So many steps; with the first ones two branches go apart, or merge each other."""
        begin: tuple[str, ...] = _BEGIN
        if size > 2 * len(_BEGIN) and self.dice.random() < 0.5:
            begin = self.dice.choice(
                (_CROSSED, _CROSSED, _SHAPED, _EVOLVED, _EVOLVED, _CLEANED, _CLASHED, _EDITED, _EDITED, _RATED)
            )
        return self._program(begin, size)

    def schema_program(self, size: int) -> Program:
        """So many steps; with the first ones the schemas of two branches go apart and are merged."""
        begin = (
            _SHAPED,
            _EVOLVED,
            _DROPPED,
            _WOVEN,
            _WOVEN,
            *(_RULED,) * 5,
            *(_RULED_CROSSED,) * 2,
            _WIDENED,
            _WIDENED,
        )
        return self._program(self.dice.choice(begin), size)

    def filled_program(self, size: int) -> Program:
        """So many steps; with the first ones two branches add the same required column with other defaults."""
        kinds = ("value_main", "value_p", "put", "put", "put", "cut", "fork")
        middle = self.dice.choices(kinds, k=max(1, size - len(_FILLED) - 2))
        return self._program((*_FILLED, *middle, "cross_merge", "cross_merge"), size)

    def _program(self, begin: tuple[str, ...], size: int) -> Program:
        steps: list[Step] = []
        for kind in (*begin, *self.dice.choices(_KINDS, k=size))[:size]:
            step = self._step(kind)
            steps.append(step)
            self._imagine(step)
        return tuple(steps)

    def _step(self, kind: str) -> Step:
        if kind == "fault":
            inner = self._step(self.dice.choice(_FAULTY))
            return ("fault", self.dice.randint(1, _EFFECTS[inner[0]]), self.dice.choice(("before", "after")), inner)
        if kind.startswith("cross"):
            return self._cross(kind)
        word, _, branch = kind.partition("_")
        edits = {"nick": self._named, "edit": self._edited, "value": self._valued, "rate": self._rated}
        edits |= {"slot": self._slot, "wide": self._wide, "put": self._put, "patch": self._patch}
        if word in edits and branch:
            return edits[word](branch)
        if kind.startswith("shape"):
            *branches, verb = kind.split("_")[1:]
            return "schema", branches[0] if branches else None, verb
        return getattr(self, f"_{kind}")()  # type: ignore[no-any-return]

    def _cross(self, kind: str) -> Step:
        """Two branches go apart, and each takes what the other was then: two best ancestors.

        Sometimes both change the same, so that these ancestors contradict each other.
        """
        how = self.dice.choice(("ours", "theirs"))
        steps: dict[str, Step] = {
            "cross_fork": ("fork", "main", "p", None),
            "cross_keep": ("fork", "main", "q", None),
            "cross_one": ("merge", "p", "main", how),
            "cross_two": ("merge", "q", "p", how),
            "cross_merge": ("merge", "p", "main", self.dice.choice(STRATEGIES)),
            "cross_back": ("merge", "main", "p", self.dice.choice(STRATEGIES)),
            "cross_look": ("merge", "p", "main", self.dice.choice(("none", "entity none"))),
        }
        if kind in steps:
            return steps[kind]
        branch = "main" if kind == "cross_main" else "p"
        known = self.model.graph(branch).get((PERSON, "a"))
        if known is None or self.dice.random() < 0.5:
            return self._put(branch)
        row = {**known, "age": 5 if branch == "p" else 6}
        return "put", branch, (((PERSON, "a"), tuple(row.items())),)

    def _named(self, branch: str) -> Step:
        """A name that another one gets elsewhere, though it must be unique."""
        own = "b" if branch == "main" else "c"
        row = {**self.model.graph(branch)[PERSON, own], "nick": "B"}
        return "put", branch, (((PERSON, own), tuple(row.items())),)

    def _edited(self, branch: str) -> Step:
        """Some values of one entity, of which another branch sets others, or the same ones."""
        values = {"age": 10, "nick": "C", "score": 4.5} if branch == "main" else {"age": 20, "nick": "D", "score": 5.5}
        names = self.dice.sample(sorted(values), self.dice.randint(1, 3))
        row = {**self.model.graph(branch)[PERSON, "a"], **{name: values[name] for name in names}}
        return "put", branch, (((PERSON, "a"), tuple(row.items())),)

    def _valued(self, branch: str) -> Step:
        """A value in a column that a schema added, whatever it is called by now."""
        known = self.model.graph(branch).get((PERSON, "a"), START[PERSON, "a"])
        row = {**known, **dict.fromkeys(self.model.shape(branch).names, self.dice.choice("uvw"))}
        return "put", branch, (((PERSON, "a"), tuple(row.items())),)

    def _rated(self, branch: str) -> Step:
        """An edge whose key another branch has, too; its other value may differ."""
        row: Row = {"src": "a", "dst": "c", "kind": "x", "stars": self.dice.choice((1, 1, 2))}
        return "put", branch, ((rated(row), tuple(row.items())),)

    def _branch(self) -> str:
        return self.dice.choice(sorted(self.model.heads))

    def _fork(self) -> Step:
        name = self.dice.choice(("p", "q", "r", "s"))
        past = self.dice.randrange(len(self.model.commits)) if self.dice.random() < 0.15 else None
        return "fork", self._branch(), name, past

    def _merge(self) -> Step:
        """Seldom one that was done already."""
        for _ in range(6):
            source, target = self._branch(), self._branch()
            known = self.model.ancestors(self.model.heads[target])
            if self.model.heads[source] not in known or self.dice.random() < 0.05:
                break
        return "merge", source, target, self.dice.choice(STRATEGIES)

    def _drop(self) -> Step:
        return "drop", self._branch()

    def _rewrite(self) -> Step:
        return "rewrite", self._branch()

    def _reopen(self) -> Step:
        return ("reopen",)

    def _optimize(self) -> Step:
        return "optimize", self._branch()

    def _cleanup(self) -> Step:
        return "cleanup", self.dice.randint(1, 3)

    def _schema(self) -> Step:
        """Mostly the same for all branches, in their order, so that they still go together."""
        everywhere = self.dice.random() < 0.75
        branch = None if everywhere else self._branch()
        return "schema", branch, self.dice.choice(("add", "add", "rename", "drop"))

    def _reshape(self) -> Step:
        return "schema", self._branch(), self.dice.choice(("add", "add", "rename", "drop"))

    def _slot(self, branch: str | None = None) -> Step:
        """Often the same slot again, so that two branches change it; what is refused is thought over a few times."""
        branch = branch or self._branch()
        again = [verb for verb in VERBS if verb[1] == self.slot]
        shape = self.model.shape(branch)
        for _ in range(6):
            verb = self.dice.choice(again if again and self.dice.random() < 0.4 else VERBS)
            new = reshaped(shape, verb)
            if new is not None and accepts(self.model.graph(branch), shape, new):
                break
        self.slot = verb[1]
        return "schema", branch, verb

    def _wide(self, branch: str) -> Step:
        """A wider type of a number, of which another branch has another one."""
        return "schema", branch, ("set", "size.type", "F64" if branch == "main" else "I64")

    def _patch(self, branch: str | None = None) -> Step:
        """Some values of one, some or all entities of a type; seldom of one that is not there."""
        branch, dice = branch or self._branch(), self.dice
        graph, shape = self.model.graph(branch), self.model.shape(branch)
        for _ in range(6):
            key = dice.choice((PERSON, PERSON, KNOWS, RATES, TEAM, GRADES))
            every = sorted(one for one in graph if one[0] == key) or [(PERSON, "a")]
            many = every if dice.random() < 0.4 else dice.sample(every, dice.randint(1, min(2, len(every))))
            names = dice.sample(_PATCHED[many[0][0]], dice.randint(1, min(2, len(_PATCHED[many[0][0]]))))
            found = {one: {name: self._value(name, shape) for name in names} for one in many}
            if dice.random() < 0.03:
                found[PERSON, "z"] = {"age": 1}
            new = {**graph, **{one: {**graph[one], **row} for one, row in found.items() if one in graph}}
            if not list(broken(self.model.rules(branch), graph, new)):
                break
        return "patch", branch, tuple((one, tuple(row.items())) for one, row in found.items())

    def _value(self, name: str, shape: Shape) -> Any:
        """A value for a column, as the schema has it by now."""
        slots, dice = shape.slots, self.dice
        if name in ("size", "since", "stars"):
            more = {"I32": (), "I64": (1 << 40, (1 << 53) + 1), "F64": (1.5, -0.0, 3.0)}
            return dice.choice((None, 1, 2, 7, 30, *more[slots[f"{name}.type"]]))
        choices = {
            "age": (None, 1, 2, 3),
            "nick": (None, None, "A", "B"),
            "score": _SCORES,
            "level": (None, *sorted(slots["level.values"])),
            "title": (None, "", "x", "y", "xy"),
            "mark": (None, 1, 2),
        }
        return dice.choice(choices[name])

    def _diff(self) -> Step:
        many = len(self.model.commits)
        return "diff", self.dice.randrange(many), self.dice.randrange(many)

    def _replay(self) -> Step:
        kind = self.dice.choice(("revert", "revert", "pick"))
        how = self.dice.choice(("none", "ours", "theirs", "rows"))
        return "replay", kind, self.dice.randrange(len(self.model.commits)), self._branch(), how

    def _trace(self) -> Step:
        branch = self._branch()
        return "trace", branch, self.dice.choice(sorted(self.model.graph(branch)) or [(PERSON, "a")])

    def _at(self) -> Step:
        return "at", self.dice.randrange(len(self.model.commits))

    def _cut(self) -> Step:
        branch = self._branch()
        graph = self.model.graph(branch)
        return "cut", branch, self.dice.choice(sorted(graph)) if graph else (PERSON, "a")

    def _put(self, branch: str | None = None) -> Step:
        """One to three entities; what would be refused is thought over a few times."""
        branch = branch or self._branch()
        old = self.model.graph(branch)
        for _ in range(6):
            found = dict(self._entity(old, branch) for _ in range(self.dice.choice((1, 1, 2, 3))))
            if not list(
                broken(self.model.rules(branch), old, {**old, **shaped(found.items(), self.model.shape(branch))})
            ):
                break
        return "put", branch, tuple((one, tuple(row.items())) for one, row in found.items())

    def _entity(self, graph: Graph, branch: str) -> tuple[Entity, Row]:
        dice, shape = self.dice, self.model.shape(branch)
        grades = (GRADES, GRADES) if shape.slots["grades"] else ()
        key = dice.choice((PERSON, PERSON, PERSON, TEAM, KNOWS, KNOWS, LEADS, LIKES, RATES, *grades))
        if key in (RATES, GRADES):
            ends = {"src": dice.choice("ab"), "dst": dice.choice("abc" if key == RATES else "st")}
            name = "stars" if key == RATES else "mark"
            keyed: Row = {**ends, "kind": dice.choice("xy"), name: self._value(name, shape)}
            return (rated(keyed) if key == RATES else graded(keyed)), keyed
        own = dice.choice(_IDS[key])
        if key == PERSON:
            fresh: Row = {"name": own, **{name: self._value(name, shape) for name in _PATCHED[PERSON]}}
            fresh = {**fresh, **{name: dice.choice((None, "u", "v")) for name in _COLUMNS}}
            known = graph.get((key, own))
            other = [name for name in known or () if name in _COLUMNS]
            name = dice.choice((*_PATCHED[PERSON], *other))  # of a known one a single value
            if known is None:
                return (key, own), fresh
            column = shape.slots["size.name"] if name == "size" else name
            return (key, own), {**known, column: fresh[name]}
        if key == TEAM:
            return (key, own), {"title": self._value("title", shape)}
        source, target = ENDS[key]
        row: dict[str, Any] = {"src": dice.choice(_IDS[source]), "dst": dice.choice(_IDS[target])}
        return (key, own), {**row, "since": self._value("since", shape)} if key == KNOWS else row

    def _imagine(self, step: Step) -> None:
        """What a step makes of the model, as far as later steps want to know."""
        self.count += 1
        play(self.model, step, f"c{self.count:02d}")


_PATCHED = {  # columns that a patch may name
    PERSON: ("age", "nick", "score", "size", "level"),
    **{KNOWS: ("since",), RATES: ("stars",), TEAM: ("title",), GRADES: ("mark",)},
}
_EFFECTS = {"put": 6, "cut": 6, "patch": 6, "merge": 9, "fork": 4, "drop": 4, "schema": 9}  # about as many
_FAULTY = ("put", "cut", "patch", "merge", "merge", "fork", "drop", "reshape")
_SCORES = (None, 0.0, -0.0, 1.5)


def play(model: Versions, step: Step, made: str) -> Any:
    """Do a step to a model; what it says: conflicts, refusals, or None when it does not apply."""
    return getattr(_Player(model, made), step[0])(*step[1:])


class _Player:
    """The steps that change a model."""

    def __init__(self, model: Versions, made: str) -> None:
        self.model = model
        self.made = made

    def put(self, branch: str, given: Sequence[Any]) -> str | None:
        if branch not in self.model.heads:
            return None
        rows = shaped(given, self.model.shape(branch))
        if not all(has_type(key, self.model.shape(branch).slots) for key, _ in rows):
            return "refused"
        return self._write(branch, lambda old: {**old, **rows})

    def patch(self, branch: str, given: Sequence[Any]) -> str | None:
        """Values of entities that are there; nothing happens if one of them is not."""
        if branch not in self.model.heads:
            return None
        rows = patched(given, self.model.shape(branch))
        if not rows.keys() <= self.model.graph(branch).keys():
            return "refused"
        return self._write(branch, lambda old: {**old, **{one: {**old[one], **row} for one, row in rows.items()}})

    def schema(self, branch: str | None, verb: Any) -> str | None:
        if branch is None:
            for one in sorted(self.model.heads):
                _Player(self.model, f"{self.made}-{one}").schema(one, verb)
            return "done"
        new = reshaped(self.model.shape(branch), verb) if branch in self.model.heads else None
        if new is None:
            return None
        if not accepts(self.model.graph(branch), self.model.shape(branch), new):
            return "refused"
        self.model.reshape(branch, self.made, new)
        return "done"

    def cut(self, branch: str, entity: Entity) -> str | None:
        return self._write(branch, lambda old: without(old, tuple(entity), self.model.rules(branch)))  # type: ignore[arg-type]

    def _write(self, branch: str, change: Callable[[Graph], Any]) -> str | None:
        if branch not in self.model.heads:
            return None
        old = self.model.graph(branch)
        new = change(old)
        if list(broken(self.model.rules(branch), old, new)):
            return "refused"
        self.model.commit(branch, self.made, new)
        return "done"

    def fork(self, source: str, name: str, past: int | None) -> str | None:
        if source not in self.model.heads or name in self.model.heads:
            return None
        head = self.model.heads[source]
        if past is not None:
            line = sorted(self.model.ancestors(head))
            head = line[past % len(line)]
        self.model.heads[name] = head
        return head

    def drop(self, branch: str) -> str | None:
        if branch == "main" or self.model.heads.pop(branch, None) is None:
            return None
        return "done"

    def merge(self, source: str, target: str, how: str) -> Any:
        if source == target or not {source, target} <= self.model.heads.keys():
            return None
        found = self.model.merge(source, target, strategy_of(how), **options_of(how))
        if found.outcome in ("merged", "fast_forward"):
            self.model.commit(target, self.made, found.graph, self.model.heads[source], found.shape)
        return found

    def fault(self, _at: int, _how: str, inner: Step) -> Any:
        return play(self.model, inner, self.made)

    def rewrite(self, *_: Any) -> None:
        """Nothing that a reader sees."""

    reopen = diff = at = optimize = cleanup = trace = rewrite

    def replay(self, kind: str, place: int, branch: str, how: str) -> Any:
        """A commit is found by its place among all that are known."""
        known = sorted({c for head in self.model.heads.values() for c in self.model.ancestors(head)})
        commit = known[place % len(known)]
        if branch not in self.model.heads or not self.model.commits[commit].parents:
            return None
        found = self.model.replay(kind, branch, commit, strategy_of(how))
        if found is not None and found.outcome == "merged":
            self.model.commit(branch, self.made, found.graph)
        return found


def rated(row: Row) -> Entity:
    """A keyed edge by its key, without the product."""
    return RATES, json.dumps([row["src"], row["dst"], row["kind"]], separators=(",", ":"))


def graded(row: Row) -> Entity:
    """An edge of the type that a branch may add, by its key."""
    return GRADES, json.dumps([row["src"], row["kind"]], separators=(",", ":"))


def shaped(given: Iterable[Any], shape: Shape) -> dict[Entity, Row]:
    """Rows as they are written: with the columns that there are by then, and no others."""
    found: dict[Entity, Row] = {}
    for (key, own), row in given:
        values = dict(written(key, dict(row), shape.slots))
        extra = {name: values.pop(name, None) for name in (*_COLUMNS, _RANK)}
        here = {name: extra[name] or shape.fill_of(name) for name in shape.names} if key == PERSON else {}
        found[key, own] = {**values, **here}
    return found


def patched(given: Sequence[Any], shape: Shape) -> dict[Entity, Row]:
    """Values as a patch writes them."""
    return {(key, own): written(key, dict(row), shape.slots, whole=False) for (key, own), row in given}


def accepts(graph: Graph, old: Shape, new: Shape) -> bool:
    """Whether the rows of a branch obey another schema."""
    fitted = old.fit(graph, new)
    return not list(broken(rules_of(new), fitted, fitted))


def reshaped(shape: Shape, verb: Any) -> Shape | None:
    """What a step of a schema makes of a shape; None when there is nothing to do."""
    if not isinstance(verb, str):
        slots = changed_slots(shape.slots, verb)
        return None if slots is None else shape.with_slots(slots)
    free = [name for name in _COLUMNS if name not in shape.names]
    if verb == "add":
        return shape.added(free[0]) if free else None
    if verb.startswith("fill"):
        return None if _RANK in shape.names else shape.added(_RANK, verb[-1])
    plain = [name for name in shape.names if name != _RANK]
    if verb == "drop":
        return shape.dropped(plain[0]) if plain else None
    return shape.renamed(plain[0], free[0]) if free and plain else None


def schema_text(old: Shape, new: Shape) -> str:
    """The schema of a shape, as it follows from another one."""
    was = dict(old.columns)
    lines = []
    for at, name in new.columns:
        moved = at in was and was[at] != name
        origin = f' @rename_from("{was[at]}")' if moved else ""
        fill = new.fill_of(name)
        lines.append(f"  {name}: String?{origin}\n" if fill is None else f'  {name}: String @default("{fill}")\n')
    text = SCHEMA.replace("  score: F64?\n", "  score: F64?\n" + "".join(lines))
    return slot_text(text, old.slots, new.slots)


def options_of(how: str) -> dict[str, Any]:
    """The options of a merge by its word."""
    whole = {"granularity": "entity"} if how.startswith("entity ") else {}
    return {**whole, "collapse": how == "collapse"}


def strategy_of(how: str) -> Callable[[Any], Any]:
    """How a merge decides conflicts, by its word; for a conflict of the model or the product."""
    rows = ("divergent_insert", "divergent_update", "delete_vs_update")
    how = how.removeprefix("entity ")

    def answer(one: Any) -> Any:
        if how in ("ours", "theirs", "session"):
            return "theirs" if how == "session" else how
        if how == "rows" and one.kind in rows:
            return "theirs"
        if how == "mixed":
            return "theirs" if one.kind in rows else "ours"
        person = "Person" in (getattr(one, "type_name", None) or one.entity[0])
        if how in ("values", "wrong") and person and one.kind in rows[:2]:
            return {"age": 55 if how == "values" else 100}
        return None

    return answer


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program that still fails, from which no step can be taken."""
    size = max(1, len(program) // 2)
    while True:
        for smaller in _parts(program, size):
            if fails(smaller):
                program = smaller
                break
        else:
            if size == 1:
                return program
            size //= 2


def _parts(program: Program, size: int) -> Iterator[Program]:
    for at in range(len(program) - size, -1, -1):
        yield program[:at] + program[at + size :]
    for at, step in enumerate(program):
        if size == 1 and step[0] == "fault":
            yield (*program[:at], step[3], *program[at + 1 :])
        if size == 1 and step[0] == "put" and len(step[2]) > 1:
            for one in range(len(step[2])):
                less = (*step[:2], step[2][:one] + step[2][one + 1 :])
                yield (*program[:at], less, *program[at + 1 :])


def script(program: Program) -> str:
    """A program as text that runs it again."""
    steps = "\n".join(f"    {step!r}," for step in program)
    return f"from tests.model.program_runner import run\n\nrun((\n{steps}\n))\n"
