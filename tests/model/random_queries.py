"""Random reads as text: every production of the language except search, mostly valid.

The writer remembers which variables it bound to which types, so that the checker refuses few of
its queries. What a query means is not known here.
"""

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .random_expressions import expression
from .random_graphs import DAYS, ENDS, MOMENTS, PEOPLE, PROPERTIES, TEXTS

KINDS = {
    "label": "text",
    "name": "text",
    "mood": "text",
    "n": "number",
    "age": "number",
    "big": "number",
    "size": "number",
    "single": "number",
    "double": "number",
    "k": "number",
    "flag": "truth",
    "born": "day",
    "since": "day",
    "at": "moment",
    "tags": "texts",
    "nums": "numbers",
    "id": "text",
    "from": "text",
    "to": "text",
}
SCALARS = ("text", "number", "truth", "day", "moment")
WALKS = {  # edge words by the types they join, in the order of writing
    ("Person", "Person"): ["knows", "likes", "knows|likes", "likes|knows"],
    ("Person", "Firm"): ["worksAt", "in", "in|worksAt", "worksAt|employs"],
    ("Firm", "Person"): ["employs", "employs|worksAt"],
    ("Firm", "Firm"): ["contains"],
}
PARAMETERS: dict[str, tuple[str, Any]] = {
    "text": ("String", "a"),
    "maybe": ("String?", None),
    "number": ("I64", 1),
    "small": ("I32?", None),
    "real": ("F64 = 0.5", None),
    "truth": ("Bool", True),
    "day": ("Date", "2020-01-01"),
    "moment": ("DateTime", "2020-01-01T00:00:00Z"),
    "texts": ("[String]", ["a", "b"]),
    "numbers": ("[I64]?", [0, 1]),
    "few": ("U32", 2),
    "vector": ("Vector(2)", [0, 1]),
}
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]


@dataclass
class Written:
    """A query text and the values of its parameters."""

    text: str
    given: dict[str, Any]


@dataclass
class Writer:
    """Writes one query."""

    dice: Random
    nodes: dict[str, str] = field(default_factory=dict)
    edges: dict[str, list[str]] = field(default_factory=dict)
    paths: dict[str, bool] = field(default_factory=dict)  # paths, and whether they have a cost
    maybe: set[str] = field(default_factory=set)
    used: dict[str, None] = field(default_factory=dict)
    count: int = 0
    nesting: int = 0

    def query(self) -> Written:
        """A whole query; values that are left out are null or the default."""
        body = self.union() if self.dice.random() < 0.15 else f"{self.match()}\nreturn {self.result()}"
        head = ", ".join(f"${name}: {PARAMETERS[name][0]}" for name in self.used)
        note = self.dice.choice(["", '@description("by chance") ', '@instruction("run it") '])
        given = {n: PARAMETERS[n][1] for n in self.used if PARAMETERS[n][1] is not None}
        return Written(f"query q({head}) {note}{{ {body} }}", given)

    def match(self) -> str:
        """The clauses of a match; variables of an earlier part of a union are forgotten."""
        self.nodes, self.edges, self.maybe = {}, {}, set()
        clauses = [self.opening(), *(self.clause(2) for _ in range(self.dice.randint(0, 4)))]
        return f"match {{ {'  '.join(clauses)} }}"

    def union(self) -> str:
        """Two or three parts that return the same columns, then an order and bounds for the whole."""
        names = self.dice.sample(["label", "n", "id", "whole", "rows"], self.dice.randint(1, 3))
        kind = self.dice.choice(["Person", "Firm"])
        parts = [self.union_part(names, kind) for _ in range(self.dice.choice([2, 2, 3]))]
        body = f"\n{self.dice.choice(['union', 'union all'])} ".join(parts)
        if self.dice.random() < 0.5:
            ways = ["", " asc", " desc"]
            keys = [
                f"{name}{self.dice.choice(ways)}" for name in self.dice.sample(names, self.dice.randint(1, len(names)))
            ]
            body += f" order {{ {', '.join(keys)} }}"
        return body + self.bounds()

    def union_part(self, names: list[str], kind: str) -> str:
        """One part; a column is a property of any node, a whole node of one type, or a count of rows."""
        match = self.match()
        whole = [name for name, one in self.nodes.items() if one == kind]
        if not whole:
            whole = [self.fresh()]
            match = f"{match[:-1]} ${whole[0]}: {kind} }}"
        nodes = [*whole, *(name for name in self.nodes if name not in whole)]
        values = {name: f"${self.dice.choice(nodes)}.{name}" for name in ("label", "n", "id")}
        values |= {"whole": f"${whole[0]}", "rows": "count(*)"}
        columns = ", ".join(f"{values[name]} as {name}" for name in names)
        distinct = "distinct " if self.dice.random() < 0.2 else ""
        return f"{match} return {distinct}{{ {columns} }}"

    # Clauses ------------------------------------------------------------------------------------

    def opening(self) -> str:
        """The first clause: a binding, or a traversal without one."""
        return self.binding() if self.dice.random() < 0.85 else self.traversal()

    def clause(self, depth: int) -> str:
        """One more clause."""
        kinds = "bbttttttffp" + "no" * depth
        match self.dice.choice(kinds):
            case "b":
                return self.binding()
            case "t":
                return self.traversal()
            case "p":
                return self.pair()
            case "n":
                return f"not {{ {self.block(depth)} }}"
            case "o":
                return self.optional(depth)
        return self.filter(2) if self.fields() else self.binding()

    def filter(self, depth: int) -> str:
        """A condition as a clause; after another one it must not begin with a minus."""
        found = self.condition(depth)
        return f"({found})" if found.startswith("-") else found

    def block(self, depth: int) -> str:
        """Clauses that speak of the outside; what they bind is forgotten afterward."""
        nodes, edges, maybe, paths = dict(self.nodes), dict(self.edges), set(self.maybe), dict(self.paths)
        inner = [self.linked(), *(self.clause(depth - 1) for _ in range(self.dice.randint(0, 2)))]
        self.nodes, self.edges, self.maybe, self.paths = nodes, edges, maybe, paths
        return "  ".join(inner)

    def optional(self, depth: int) -> str:
        """Clauses whose variables may be missing afterward."""
        nodes, edges = set(self.nodes), set(self.edges)
        inner = [self.linked(), *(self.clause(depth - 1) for _ in range(self.dice.randint(0, 1)))]
        self.maybe |= (self.nodes.keys() - nodes) | (self.edges.keys() - edges)
        return f"optional {{ {'  '.join(inner)} }}"

    def linked(self) -> str:
        """A clause with a variable from outside."""
        if self.nodes and self.dice.random() < 0.75:
            return self.traversal(self.dice.choice(sorted(self.nodes)))
        return self.filter(1) if self.fields() else self.binding()

    def binding(self) -> str:
        """`$a: Person { age: 1 }`, sometimes of a variable that is bound already."""
        name, kind = self.fresh(), self.dice.choice(["Person", "Person", "Firm", "Named"])
        known = [one for one in self.nodes if one not in self.maybe]
        if known and self.dice.random() < 0.25:
            name = self.dice.choice(sorted(known))
            kind = self.nodes[name]
        self.nodes.setdefault(name, kind)
        return f"${name}: {kind}{self.inline(kind)}"

    def inline(self, kind: str) -> str:
        """Inline predicates, perhaps none in braces."""
        if self.dice.random() < 0.65:
            return ""
        names = self.dice.sample(self.names_of(kind), self.dice.choice([0, 1, 1, 2]))
        tests = [f"{one}: {self.inline_value(one)}" for one in names]
        comma = "," if tests and self.dice.random() < 0.2 else ""
        return f" {{ {', '.join(tests)}{comma} }}"

    def inline_value(self, name: str) -> str:
        """A value for an inline predicate."""
        kind = {"texts": "text", "numbers": "number"}.get(KINDS[name], KINDS[name])
        if name == "mood":
            return self.dice.choice(['"glad"', '"sad"', "null"])
        if name not in ("name", "id") and KINDS[name] in SCALARS and self.dice.random() < 0.15:
            return "null"
        if name == "at" and self.dice.random() < 0.1:
            return "now()"
        return self.constant(kind)

    def traversal(self, start: str | None = None) -> str:
        """Any form of a traversal, from a variable that is bound when there is one."""
        source = start or self.end()
        kind = self.nodes.get(source, self.dice.choice(["Person", "Firm"]))
        if kind == "Named":
            kind = self.dice.choice(["Person", "Firm"])
        fitting = [pair for pair in WALKS if pair[0] == kind]
        pair = self.dice.choice(fitting)
        target = self.end(pair[1])
        words = self.dice.choice(WALKS[pair])
        undirected = pair[0] == pair[1] and self.dice.random() < 0.25
        edges = f"<{words}>" if undirected else words
        bound, hops, before, after = "", "", "", ""
        roll = self.dice.random()
        if roll < 0.25:
            bound = self.edge_variable(words)
            name = bound[1:-1]
            after = f" where {self.edge_test(name)}" if name in self.edges and self.dice.random() < 0.3 else ""
        elif roll < 0.4 and pair[0] == pair[1]:
            before, bound, hops, after = self.path(words)
        elif roll < 0.5 and pair[0] == pair[1] == "Person":
            low = self.dice.choice([0, 1, 1, 2])
            bound, after = self.hop_test(words)
            hops = f"{{{low},{low + self.dice.randint(1, 2)}}}"
        elif self.dice.random() < 0.4:
            far = pair[0] == pair[1] or self.dice.random() < 0.1
            low = self.dice.choice([0, 0, 1, 1, 2, 2, 3]) if far else 1
            hops = f"{{{low},{low + self.dice.randint(0, 2)}}}"
        ends = [source, target]
        if pair[0] != pair[1] and self.dice.random() < 0.3:
            ends.reverse()
        for name, one in zip((source, target), pair, strict=True):
            if name != "_" and self.nodes.get(name, "Named") == "Named":
                self.nodes[name] = one
        return f"{before}${ends[0]} {bound}{edges}{hops} ${ends[1]}{after}"

    def path(self, words: str) -> tuple[str, str, str, str]:
        """A path: its head, its edge variable, its bounds, and what comes after its ends."""
        name, low = self.fresh("p"), self.dice.choice([0, 1, 1, 2])
        modes = ["any shortest", "any shortest", "all shortest", "walk", "trail", "acyclic", "simple"]
        mode, bound, after, cost = self.dice.choice(modes), "", "", False
        if words != "contains" and self.dice.random() < 0.3:
            bound, after = self.hop_test(words)
        if mode == "any shortest" and words != "contains" and self.dice.random() < 0.5:
            edge, low, cost = self.fresh("w"), self.dice.randint(0, 1), True
            bound, after = f"${edge}:", f" where ${edge}.k >= 0 by ${edge}.k"
        self.paths[name] = cost
        return f"${name} = {mode} ", bound, f"{{{low},{max(low, self.dice.randint(1, 3))}}}", after

    def path_query(self) -> Written:
        """A path between two people, bound in every way, and all that can be asked of it."""
        words = self.dice.choice(WALKS["Person", "Person"])
        before, bound, hops, after = self.path(words)
        edges = f"<{words}>" if self.dice.random() < 0.3 else words
        one, other = (_quoted(self.dice.choice(PEOPLE)) for _ in range(2))
        opening = self.dice.choice(
            [
                "$a: Person",
                "$b: Person",
                f"$a: Person {{ name: {one} }}",
                f"$b: Person {{ name: {one} }}",
                f"$a: Person {{ name: {one} }}  $b: Person {{ name: {other} }}",
                f"$a: Person {{ name: {one} }}  $a <likes> $b",
                "$a: Person  $b: Person  $a.id != $b.id",
                "$a: Person  $a knows $b",
            ]
        )
        name = next(iter(self.paths))
        columns = ["$a.id as a", "$b.id as b", *(f"{one}(${name}) as {one}" for one in ("length", "nodes", "edges"))]
        columns += [f"cost(${name}) as cost"] if self.paths[name] else [f"${name} as p"]
        head = ", ".join(f"${used}: {PARAMETERS[used][0]}" for used in self.used)
        given = {n: PARAMETERS[n][1] for n in self.used if PARAMETERS[n][1] is not None}
        clauses = f"{opening}  {before}$a {bound}{edges}{hops} $b{after}"
        return Written(f"query q({head}) {{ match {{ {clauses} }}\nreturn {{ {', '.join(columns)} }} }}", given)

    def hop_test(self, words: str) -> tuple[str, str]:
        """An edge variable of several hops, which only its own test sees."""
        bound = self.edge_variable(words)
        name = bound[1:-1]
        after = f" where {self.edge_test(name)}" if name in self.edges else ""
        self.edges.pop(name, None)
        return bound, after

    def edge_test(self, name: str) -> str:
        """A condition on one edge."""
        nodes, edges, paths = self.nodes, self.edges, self.paths
        self.nodes, self.edges, self.paths = {}, {name: edges[name]}, {}
        test = self.condition(1)
        self.nodes, self.edges, self.paths = nodes, edges, paths
        return test

    def edge_variable(self, words: str) -> str:
        """`$w:`, which may be anonymous."""
        if self.dice.random() < 0.1:
            return "$_:"
        name = self.fresh("w")
        folded = {one.lower(): one for one in ENDS}
        self.edges[name] = [folded[word.lower()] for word in words.split("|")]
        return f"${name}:"

    def end(self, kind: str | None = None) -> str:
        """An end of a traversal: bound, new or anonymous."""
        fitting = [
            name
            for name, one in self.nodes.items()
            if name not in self.maybe and (kind is None or one in (kind, "Named"))
        ]
        roll = self.dice.random()
        if fitting and roll < (0.75 if kind is None else 0.35):
            return self.dice.choice(sorted(fitting))
        return "_" if roll > 0.88 else self.fresh()

    def fresh(self, letter: str = "v") -> str:
        """A new name; its place in the alphabet is not its place in the text."""
        self.count += 1
        return f"{letter}{(self.count * 7) % 10}{self.count}"

    def pair(self) -> str:
        """Two parameters with a word between them."""
        return self.dice.choice(
            [
                f"{self.parameter('text')} contains {self.parameter('text')}",
                f"{self.parameter('text')} starts_with {self.parameter('maybe')}",
                f"{self.parameter('text')} in {self.parameter('texts')}",
            ]
        )

    # Conditions ---------------------------------------------------------------------------------

    def condition(self, depth: int) -> str:
        """A condition, perhaps of conditions."""
        if depth > 0 and self.dice.random() < 0.35:
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            match self.dice.randint(0, 3):
                case 0:
                    return f"({one}) and ({other})"
                case 1:
                    return f"({one}) or ({other})"
                case 2:
                    return f"not ({one})"
            return f"({one} or {other})" if "not" not in one + other else f"({one})"
        return self.test()

    def test(self) -> str:  # noqa: PLR0911 - one return per kind
        """One test."""
        if self.dice.random() < 0.12:
            return self.computed("truth")
        place, kind = self.dice.choice(self.fields())
        if kind in ("text", "number") and self.dice.random() < 0.3:
            place = self.computed(kind)
        if kind in ("texts", "numbers"):
            inner = "text" if kind == "texts" else "number"
            if self.dice.random() < 0.25:
                return f"{place} is{self.dice.choice([' not', ''])} null"
            return f"{place} contains {self.constant(inner)}"
        roll = self.dice.random()
        if roll < 0.15:
            return self.null_test(place)
        if roll < 0.3 and kind in ("text", "number"):
            return self.membership(place, kind)
        if roll < 0.5 and kind == "text":
            word = self.dice.choice(["contains", "starts_with"])
            sides = [place, self.constant("text")]
            self.dice.shuffle(sides)
            return f"{sides[0]} {word} {sides[1]}"
        return self.comparison(place, kind)

    def null_test(self, place: str) -> str:
        """`is null` of a property, a whole node, or a parameter."""
        subject = place
        if self.nodes and self.dice.random() < 0.3:
            subject = f"${self.dice.choice(sorted(self.nodes))}"
        elif self.dice.random() < 0.1:
            subject = self.parameter("maybe")
        return f"{subject} is{self.dice.choice([' not', ''])} null"

    def membership(self, place: str, kind: str) -> str:
        """`in` a list, literal or parameter, of a property or a parameter."""
        items = self.parameter("texts" if kind == "text" else "numbers")
        if self.dice.random() < 0.6:
            held = [self.literal(kind) for _ in range(self.dice.randint(0, 3))]
            items = f"[{', '.join(held)}]"
        if self.dice.random() < 0.15 and items.startswith("["):
            place = self.parameter("text" if kind == "text" else "number")
        return f"{place} in {items}"

    def comparison(self, place: str, kind: str) -> str:
        """Two sides in either order."""
        others = [one for one, other in self.fields() if other == kind]
        other = self.dice.choice(others) if self.dice.random() < 0.3 else self.constant(kind)
        if self.dice.random() < 0.05:
            other = "null"
        if kind == "moment" and self.dice.random() < 0.4:
            other = "now()"
        sides = [place, other]
        self.dice.shuffle(sides)
        return f"{sides[0]} {self.dice.choice(OPERATORS)} {sides[1]}"

    def computed(self, kind: str, depth: int = 1) -> str:
        """An expression; conditions inside it are simple."""
        self.nesting += 1
        place = self.dice.choice([one for one, _ in self.fields()])
        test = self.test if self.nesting < 2 else (lambda: f"{place} is null")
        found = expression(self.dice, kind, self.fields(), self.small_constant, test)
        self.nesting -= 1
        return found

    def small_constant(self, kind: str) -> str:
        """A constant for an expression: a text, or one of the parameters for numbers."""
        return self.parameter(kind[1:]) if kind.startswith("$") else self.constant(kind)

    # Values -------------------------------------------------------------------------------------

    def names_of(self, kind: str) -> list[str]:
        """The properties of a node type or interface, with the id."""
        own = ["label", "n"] if kind == "Named" else ["name", *PROPERTIES[kind]]
        return [*own, "id"]

    def fields(self) -> list[tuple[str, str]]:
        """Every property of every variable, with the kind of its values."""
        found = [(f"${v}.{p}", KINDS[p]) for v, t in self.nodes.items() for p in self.names_of(t)]
        for name, kinds in self.edges.items():
            shared = set.intersection(*(set(PROPERTIES[kind]) for kind in kinds))
            found += [(f"${name}.{p}", KINDS[p]) for p in sorted(shared | {"id", "from", "to"})]
        for name, cost in self.paths.items():
            found += [(f"nodes(${name})", "texts")]
            found += [(f"length(${name})", "number"), *([(f"cost(${name})", "number")] if cost else [])] * 3
        return found

    def constant(self, kind: str) -> str:
        """A literal or a parameter."""
        if self.dice.random() < 0.3:
            names = {"text": ["text", "maybe"], "number": ["number", "small", "real"]}
            return self.parameter(self.dice.choice(names.get(kind, [kind])))
        return self.literal(kind)

    def literal(self, kind: str) -> str:
        """A literal."""
        match kind:
            case "text":
                return _quoted(self.dice.choice([*TEXTS, *PEOPLE, "e01", "e02"]))
            case "number":
                whole = ["-1", "0", "1", "2", "9007199254740993", "0.5", "-0.5", "1.0", "2e0"]
                return self.dice.choice(whole)
            case "truth":
                return self.dice.choice(["true", "false"])
            case "day":
                return f'date("{self.dice.choice(DAYS)}")'
        return f'datetime("{self.dice.choice(MOMENTS)}")'

    def parameter(self, name: str) -> str:
        """A parameter, declared from now on."""
        self.used[name] = None
        return f"${name}"

    # Results ------------------------------------------------------------------------------------

    def result(self) -> str:
        """What is returned, in which order, how much of it."""
        columns = self.groups() if self.dice.random() < 0.35 else self.plain()
        aggregated = any(one[2] for one in columns)
        distinct = "distinct " if self.dice.random() < 0.25 else ""
        comma = self.dice.choice([", ", "  "]) if all(" as " in one[0] for one in columns) else ", "
        text = f"{distinct}{{ {comma.join(one[0] for one in columns)} }}"
        having = self.having(columns) if self.dice.random() < 0.75 else ""
        text += having + self.order(columns, bool(distinct), aggregated or bool(having))
        return text + self.bounds()

    def having(self, columns: list[tuple[str, str, bool]]) -> str:
        """A condition on groups, which must be there: some column is an aggregate, or a count is tested."""
        grouped = any(one[2] for one in columns)
        if not grouped and any(not one[0].startswith("$") for one in columns):
            return ""
        parameters = any(one[0].partition(" as ")[0].removeprefix("$") in PARAMETERS for one in columns)
        if not grouped and (parameters or self.dice.random() < 0.5):
            return ""
        test = self.group_test(columns)
        if self.dice.random() < 0.4:
            test = f"({test}) {self.dice.choice(['and', 'or'])} not ({self.group_test(columns)})"
        return (
            f" having {{ {test} }}"
            if grouped
            else f" having {{ count(*) {self.dice.choice(OPERATORS)} 1 and ({test}) }}"
        )

    def group_test(self, columns: list[tuple[str, str, bool]]) -> str:
        """One test of a group: of a count, of any aggregate, or of a column by its name or as it is written."""
        roll = self.dice.random()
        numbers = [place for place, kind in self.fields() if kind == "number"]
        if roll < 0.2:
            amount = self.dice.choice(["1", "2", self.parameter("number")])
            return f"count(*) {self.dice.choice(OPERATORS)} {amount}"
        if roll < 0.45 and numbers:
            function = self.dice.choice(["min", "max", "count", "count"])
            return f"{function}({self.dice.choice(numbers)}) {self.dice.choice(OPERATORS)} {self.literal('number')}"
        if roll < 0.8 and self.fields():
            return self.computed_group_test(self.computed("number"))
        value, name, _ = self.dice.choice(columns)
        value = value.partition(" as ")[0]
        return f"{self.dice.choice([name, value])} is{self.dice.choice([' not', ''])} null"

    def computed_group_test(self, number: str) -> str:
        """A test of an expression of aggregates; where a group has no numbers, most are unknown."""
        value = self.dice.choice(
            [
                f"max({number}) - min({number})",
                f"2 * min({number}) / count(*)",
                f"coalesce(max({number}), -1)",
                f"-max({number})",
                f"case when 1 = 1 then avg({number}) else 0 end",
            ]
        )
        amount = self.dice.choice(["0", "1", "-1", "0.5", self.parameter("small")])
        test = f"{value} {self.dice.choice(OPERATORS)} {amount}"
        return self.dice.choice([test, test, f"not ({test})", f'matches(upper(min({self.constant("text")})), "A")'])

    def bounds(self) -> str:
        """A limit, an offset, both or none."""
        text = ""
        amounts = ["0", "1", "2", "3", "5", "9", "$few"]
        for word in ("limit", "offset"):
            if self.dice.random() < 0.3:
                amount = self.dice.choice(amounts)
                if amount == "$few":
                    self.parameter("few")
                text += f" {word} {amount}"
        return text

    def plain(self) -> list[tuple[str, str, bool]]:
        """Columns of single rows: text, name, whether it is an aggregate."""
        found: list[tuple[str, str, bool]] = []
        for number in range(self.dice.randint(1, 3)):
            roll = self.dice.random()
            places = [place for place, _ in self.fields()]
            if self.paths and self.dice.random() < 0.4:
                name = self.dice.choice(sorted(self.paths))
                whole = [] if self.paths[name] else [f"${name}"]
                value = self.dice.choice([f"nodes(${name})", f"edges(${name})", f"length(${name})", *whole])
            elif roll < 0.2 and places:
                value = f"({self.computed(self.dice.choice(['text', 'number', 'truth']))})"
            elif roll < 0.75 and places:
                value = self.dice.choice(places)
            elif roll < 0.85 and (self.nodes or self.edges):
                value = f"${self.dice.choice(sorted({*self.nodes, *self.edges}))}"
            elif roll < 0.91:
                value = self.constant(self.dice.choice(SCALARS))
            else:
                value = self.dice.choice(
                    ["now()", "now()", "now()", '["a", "b"]', "[1, 2.5]", "[]", "$vector", "$vector"]
                )
                if value == "$vector":
                    self.parameter("vector")
            found.append((f"{value} as c{number}", f"c{number}", False))
        return found

    def groups(self) -> list[tuple[str, str, bool]]:
        """Keys and aggregates."""
        fields = self.fields()
        found: list[tuple[str, str, bool]] = []
        keys = [place for place, kind in fields if kind in SCALARS]
        keys += [f"${name}" for name in (*self.nodes, *self.edges)]
        keys += [f"${name}" for name, cost in self.paths.items() if not cost]
        for number in range(self.dice.randint(0, 2) if keys else 0):
            key = self.dice.choice(keys)
            if fields and self.dice.random() < 0.3:
                key = f"({self.computed(self.dice.choice(['text', 'number', 'truth']))})"
            found += [(f"{key} as g{number}", f"g{number}", False)]
        for number in range(self.dice.randint(1, 3)):
            value = self.aggregate(fields)
            if value.startswith(("sum", "avg", "count")) and self.dice.random() < 0.25:
                value = self.dice.choice([f"(round({value}, 1))", f"(1 + {value} / 2)", f"(coalesce({value}, -1))"])
            found += [(f"{value} as a{number}", f"a{number}", True)]
        self.dice.shuffle(found)
        return found

    def aggregate(self, fields: list[tuple[str, str]]) -> str:
        """An aggregate over something it can take."""
        scalars = [place for place, kind in fields if kind in SCALARS]
        numbers = [place for place, kind in fields if kind == "number"]
        if self.dice.random() < 0.15:
            return "count(*)"
        name = self.dice.choice(["count", "count", "sum", "avg", "min", "max", "collect"])
        distinct = "distinct " if self.dice.random() < 0.3 else ""
        if name in ("sum", "avg"):
            numbers = [one for one in numbers if not one.endswith((".age", ".big", ".double"))]
            if fields and self.dice.random() < 0.3:
                numbers = [self.computed("number")]
            return f"{name}({distinct}{self.dice.choice(numbers)})" if numbers else "count(1)"
        if name == "count" and self.dice.random() < 0.5:
            things = [*(f"${one}" for one in (*self.nodes, *self.edges, *self.paths)), "1"]
            return f"count({distinct}{self.dice.choice(things)})"
        return f"{name}({distinct}{self.dice.choice(scalars)})" if scalars else "count(1)"

    def order(self, columns: list[tuple[str, str, bool]], distinct: bool, grouped: bool) -> str:
        """Sort keys: column names, properties, whole nodes, aggregates."""
        if self.dice.random() < 0.45:
            return ""
        scalars = [place for place, kind in self.fields() if kind in SCALARS]
        keys: list[str] = []
        sorting = [one[1] for one in columns if _sorts(one[0])]
        for _ in range(self.dice.randint(1, 2) if sorting else 0):
            key = self.dice.choice(sorting)
            if scalars and not distinct and not grouped and self.dice.random() < 0.5:
                key = self.dice.choice([*scalars, *(f"${one}" for one in (*self.nodes, *self.edges))])
                if self.dice.random() < 0.3:
                    key = self.computed(self.dice.choice(["text", "number"]))
            elif grouped and not distinct and self.dice.random() < 0.2:
                key = self.aggregate(self.fields())
                key = "count(1)" if key.startswith("collect") else key
            keys.append(f"{key}{self.dice.choice(['', ' asc', ' desc'])}")
        return f" order {{ {', '.join(keys)} }}" if keys else ""


def _sorts(column: str) -> bool:
    """Whether a column can be sorted by: neither a constant nor a list."""
    value = column.partition(" as ")[0]
    parameter = value.removeprefix("$") in PARAMETERS
    lists = value.startswith("collect") or value.endswith((".tags", ".nums"))
    path = value.startswith(("$p", "nodes", "edges"))
    return value[0] in "$csaml(" and not parameter and not lists and not path


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
