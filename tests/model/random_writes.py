"""Random mutations and loads for a schema with every kind of rule; many violate one."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .dictionary_graph import World
from .random_queries import Written

SCHEMA = """
node User {
    login: String @key
    mail: String? @unique
    age: I32?
    role: enum(admin, user)?
    score: F64?
    tags: [String]?
    joined: DateTime?
    status: String @default("new")
    @range(age, 0..150)
    @check(login, "^[a-z]+$")
}
node Event { title: String  day: Date? }
edge Follows: User -> User { since: Date?  @unique(src, dst) }
edge Owns: User -> Event @card(0..2) { weight: I32? }
edge Hosts: User -> Event @card(1..)
edge Rates: User -> Event @card(0..3) { kind: String  stars: I32?  @key(src, dst, kind) }
"""
LOGINS = ["ann", "bob", "cyd", "dee", "eve"]
MAILS = ["a@x", "b@x", "c@x"]
_NUMBERS = ["$v.age + 1", "coalesce($u.age, $v.age, 7) * 2", "case when $u.age > 29 then $v.score else 1 end", "2 * 3"]
_TEXTS = ['upper($u.login) + "!"', 'coalesce($u.mail, lower("NONE"))', 'lower("A")']
EDGES = {
    "Follows": ("User", "User"),
    "Owns": ("User", "Event"),
    "Hosts": ("User", "Event"),
    "Rates": ("User", "Event"),
}
KEYED = frozenset({"User", "Rates"})  # types whose ids derive from keys


@dataclass
class Scribe:
    """Writes one write, knowing what is stored."""

    dice: Random
    world: World
    used: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def mutation(self) -> Written:
        """A mutation: inserts, upserts, patches and updates, or deletes, or both."""
        count = self.dice.choice([1, 1, 2, 3])
        share_of_deletes = self.dice.choice([0.0, 0.0, 1.0, 0.4])
        statements = [
            self.delete() if self.dice.random() < share_of_deletes else self.insert_or_update() for _ in range(count)
        ]
        head = ", ".join(f"${name}: {kind}" for name, (kind, _) in self.used.items())
        given = {name: value for name, (_, value) in self.used.items() if value is not None}
        return Written(f"query q({head}) {{ {'  '.join(statements)} }}", given)

    def insert_or_update(self) -> str:
        match self.dice.choice("uuwwwweefffxxxmmm"):
            case "m":
                return self.matched_update()
            case "u":
                return f"insert User {{ login: {self.new_login()}, {self.assignments()} }}"
            case "w":
                return self.upsert_or_patch()
            case "e":
                return f'insert Event {{ title: {self.text()}, day: date("2024-01-01") }}'
            case "f":
                return self.insert_edge()
        return self.update()

    def update(self) -> str:
        kind = self.dice.choice(["User", "User", "Event", "edge"])
        if kind == "Event":
            return f"update Event set {{ title: {self.text()} }} where {self.where_event()}"
        if kind == "edge":
            return self.update_edge()
        assignments = self.row_assignments() if self.dice.random() < 0.3 else self.assignments()
        return f"update User set {{ {assignments} }} where {self.where_user()}"

    def upsert_or_patch(self) -> str:
        """A row by its key or id, mostly one that exists."""
        if self.dice.random() < 0.5:
            verb = self.dice.choice(["upsert", "patch"])
            name = f"id: {self.some('User')}" if verb == "patch" and self.dice.random() < 0.3 else None
            return f"{verb} User {{ {name or f'login: {self.login()}'}, {self.assignments()} }}"
        if self.dice.random() < 0.5:
            verb, own = self.dice.choice([("upsert", self.event()), ("patch", self.some("Event"))])
            return f"{verb} Event {{ id: {own}, title: {self.text()} }}"
        return self.upsert_or_patch_edge()

    def upsert_or_patch_edge(self) -> str:
        name = self.dice.choice(["Follows", "Owns", "Hosts"])
        own = json.dumps(self.dice.choice([*sorted(self.world.edges[name]), "edge9"]))
        value = {"Follows": 'since: date("2024-02-02")', "Owns": f"weight: {self.dice.randint(1, 9)}"}.get(name)
        if value and self.dice.random() < 0.4:
            return f"patch {name} {{ id: {own}, {value} }}"
        ends = [self.some(kind) for kind in EDGES[name]]
        more = f", {value}" if value else ""
        return f"upsert {name} {{ id: {own}, from: {ends[0]}, to: {ends[1]}{more} }}"

    def event(self) -> str:
        return json.dumps(self.dice.choice(["event1", "event2", "event7"]))

    def new_login(self) -> str:
        """A login, mostly one that is free."""
        free = [login for login in [*LOGINS, "fay", "gus"] if login not in self.world.nodes["User"]]
        return json.dumps(self.dice.choice(free)) if free and self.dice.random() < 0.8 else self.login()

    def insert_edge(self) -> str:
        name = self.dice.choice(list(EDGES))
        ends = [self.some(kind) for kind in EDGES[name]]
        more = ', since: date("2024-01-01")' if name == "Follows" else ""
        if name == "Rates":
            more = f", kind: {self.text()}, stars: {self.dice.choice(['1', '2', 'null'])}"
        return f"insert {name} {{ from: {ends[0]}, to: {ends[1]}{more} }}"

    def update_edge(self) -> str:
        """An update of edges by an endpoint or a property; some of them match nothing."""
        if self.dice.random() < 0.5:
            test = self.dice.choice([f"from = {self.some('User')}", "since is null", f"to != {self.some('User')}"])
            return f'update Follows set {{ since: date("2024-0{self.dice.randint(1, 9)}-01") }} where {test}'
        test = self.dice.choice([f"from = {self.some('User')}", "weight > 1 or weight is null", "id is not null"])
        return f"update Owns set {{ weight: {self.dice.choice(['1', '2', 'null', '7.0'])} }} where {test}"

    def delete(self) -> str:
        match self.dice.choice("uuefmmm"):
            case "m":
                return self.matched_delete()
            case "u":
                return f"delete User where {self.where_user()}"
            case "e":
                return f"delete Event where {self.where_event()}"
        name = self.dice.choice(list(EDGES))
        word, kind = self.dice.choice([("from", "User"), ("to", EDGES[name][1])])
        return f"delete {name} where {word} = {self.some(kind)}"

    def matched_update(self) -> str:
        """An update of users or events that a match binds; some give one node two values."""
        if self.dice.random() < 0.25:
            walk = self.dice.choice(["owns", "hosts", "owns|hosts"])
            value = self.dice.choice([self.text(), "$u.login", "$u.mail", "$u.status", *_TEXTS])
            return f"match {{ $u: User  $u {walk} $e }} update $e set {{ title: {value} }}"
        if self.dice.random() < 0.25:
            return self.matched_edge_update()
        value = self.dice.choice(["$v.age", "$v.score", "$w.since", "$u.age", "30", "null", *_NUMBERS])
        name = {"$w.since": "joined"}.get(value, self.dice.choice(["age", "score"]))
        own = f"{name}: {value}" if value != "$w.since" else "status: $w.to"
        more = f", status: {self.dice.choice(['$v.login', '$v.status', '$u.mail', self.text()])}"
        more = more if self.dice.random() < 0.5 and "status" not in own else ""
        return f"match {{ {self.users()} }} update ${self.dice.choice('uuv')} set {{ {own}{more} }}"

    def matched_edge_update(self) -> str:
        """An update of edges that a match binds; some give one edge two values."""
        if self.dice.random() < 0.5:
            clauses, value = self.users(), self.dice.choice(['date("2023-03-03")', "null", "$w.since"])
            return f"match {{ {clauses} }} update $w set {{ since: {value} }}"
        more = self.dice.choice(["", "$u follows $v", "$v owns $e"])
        values = ["$w.weight + 1", "$u.age", "3", *(["$v.age"] if more else [])]
        return f"match {{ $u: User  $u $w:owns $e  {more} }} update $w set {{ weight: {self.dice.choice(values)} }}"

    def matched_delete(self) -> str:
        """A delete of nodes or edges that a match binds."""
        target = self.dice.choice(["u", "v", "w", "w"])
        if self.dice.random() < 0.3:
            return f"match {{ $u: User  $u $w:owns $e  not {{ $u hosts $e }} }} delete ${self.dice.choice('uwe')}"
        return f"match {{ {self.users()} }} delete ${target}"

    def users(self) -> str:
        """Clauses that bind two users and the edge between them, perhaps not all of them."""
        tests = [
            "$u.age > 29",
            "$v.mail is null",
            f"$u.login = {self.login()}",
            "not { $v follows $u }",
            "$u.id != $v.id",
        ]
        walk = "$u $w:follows $v"
        walk = f"optional {{ {walk} }}" if self.dice.random() < 0.3 else walk
        return "  ".join(["$u: User", walk, *self.dice.sample(tests, self.dice.randint(0, 2))])

    # Pieces -------------------------------------------------------------------------------------

    def assignments(self) -> str:
        """One to three properties of a user, sometimes with values that break a rule."""
        makers: dict[str, Callable[[], str]] = {
            "mail": lambda: self.given("mail", "String?", self.dice.choice([*MAILS, None])),
            "age": lambda: self.dice.choice(["0", "30", "150", "151", "null", "-1", "30.0"]),
            "role": lambda: self.given("role", "String?", self.dice.choice(["admin", "root"])),
            "score": lambda: self.dice.choice(["1", "0.5", "-2e3", "null"]),
            "tags": lambda: self.dice.choice(['["x", "y"]', "[]", "null"]),
            "joined": lambda: self.dice.choice(['datetime("2024-01-01T00:00:00.5Z")', "now()"]),
            "status": self.text,
        }
        names = self.dice.sample(list(makers), self.dice.randint(1, 3))
        if "role" in names and self.dice.random() < 0.6:
            names.remove("role")
        names = names or ["status"]
        return ", ".join(f"{name}: {makers[name]()}" for name in names)

    def row_assignments(self) -> str:
        """Properties of a user, computed from others."""
        age = self.dice.choice(["age + 1", "coalesce(age, 7) * 2", "case when age > 29 then 1 else age end", "score"])
        status = self.dice.choice(['upper(login) + "!"', "coalesce(mail, status)", "status", 'login + "-" + status'])
        return self.dice.choice([f"age: {age}", f"status: {status}", f"age: {age}, status: {status}, score: age / 2"])

    def where_user(self) -> str:
        tests = [
            'lower(upper(login)) = "ann" or coalesce(age, 0) * 2 > 60',
            "length(login) - 1 = 2 and status != login",
            f"login = {self.login()}",
            "age > 29",
            "age is null",
            f"mail in [{json.dumps(MAILS[0])}, {json.dumps(MAILS[1])}]",
            "not (age = 30 or score is not null)",
            f"id = {self.some('User')} and status != {self.text()}",
            'login >= "c" and login < "e"',
            "mail is not null",
        ]
        return self.dice.choice(tests)

    def where_event(self) -> str:
        return self.dice.choice([f"title = {self.text()}", f"id = {self.some('Event')}", "day is not null"])

    def login(self) -> str:
        roll = self.dice.random()
        return json.dumps("Zed" if roll > 0.95 else self.dice.choice(LOGINS))

    def text(self) -> str:
        texts = ["a", "b", "it's", '"', "\\", "é", "x\ny"]
        return self.given("text", "String", self.dice.choice(texts))

    def some(self, kind: str) -> str:
        """The id of an entity, mostly of one that exists."""
        held = sorted(self.world.nodes[kind])
        own = self.dice.choice(held) if held and self.dice.random() < 0.9 else "ghost"
        return json.dumps(own)

    def given(self, word: str, kind: str, value: Any) -> str:
        """A parameter with this value."""
        name = f"{word}{len(self.used)}"
        self.used[name] = (kind, value)
        return f"${name}"

    # Loads --------------------------------------------------------------------------------------

    def load(self) -> tuple[str, str]:
        """An NDJSON text and a mode; ids are always given."""
        mode = self.dice.choice(["append", "append", "merge", "merge", "overwrite"])
        lines = [self.record() for _ in range(self.dice.choice([1, 2, 4]))]
        return "".join(f"{json.dumps(one)}\n" for one in lines), mode

    def record(self) -> dict[str, Any]:
        roll = self.dice.random()
        if roll < 0.45:
            data = {"login": self.dice.choice(LOGINS), "mail": self.dice.choice([*MAILS, None])}
            return {"type": "User", "data": data | {"age": self.dice.choice([1, 30, None, 151])}}
        if roll < 0.65:
            own = f"event{self.dice.randint(1, 4)}"
            return {"type": "Event", "data": {"id": own, "title": self.dice.choice(["a", "b"])}}
        name = self.dice.choice(list(EDGES))
        ends = [json.loads(self.some(kind)) for kind in EDGES[name]]
        if name == "Rates":
            rating: dict[str, Any] = {
                "kind": self.dice.choice(["a", "b", '"']),
                "stars": self.dice.choice([1, 2, None]),
            }
            given = json.dumps([*ends, rating["kind"]], separators=(",", ":"))
            rating |= self.dice.choice([{}, {}, {"id": given}, {"id": "edge1"}])
            return {"edge": name, "from": ends[0], "to": ends[1], "data": rating}
        own = f"edge{self.dice.randint(1, 6)}"
        return {"edge": name, "from": ends[0], "to": ends[1], "data": {"id": own}}
