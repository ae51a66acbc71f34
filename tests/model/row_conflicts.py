"""A model of strict writes: what each handle has seen, and which changes by others it must not overwrite.

The model knows nothing of versions. A handle's *view* is the graph as last read, with its own writes
applied. A strict statement must conflict if what it matches differs between the view and the graph,
in values that it reads or writes. It may conflict only if others touched something that it depends
on. A transaction that lands must read the same on the graph that it is applied to.
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

SCHEMA = """
node Item { name: String @key  team: String?  score: I32?  note: I32? }
edge Link: Item -> Item
"""
COLUMNS = ("team", "score", "note")
Item = dict[str, Any]


@dataclass(frozen=True)
class Condition:
    """One comparison of a property with a constant."""

    column: str
    operator: str
    value: Any

    def matches(self, name: str, item: Item) -> bool:
        """Whether an item passes; a missing value never does."""
        actual = name if self.column == "name" else item[self.column]
        return actual is not None and (actual == self.value if self.operator == "=" else actual < self.value)

    @property
    def text(self) -> str:
        """The condition in a mutation."""
        value = f'"{self.value}"' if isinstance(self.value, str) else str(self.value)
        return f"{self.column} {self.operator} {value}"

    @property
    def expression(self) -> str:
        """The condition in a match, computed from the value."""
        computed = f"$p.{self.column} + 0" if self.column == "score" else f"lower($p.{self.column})"
        return f"{computed} {self.text.partition(' ')[2]}"

    @property
    def columns(self) -> set[str]:
        """The columns that it reads, apart from the key, which never changes."""
        return {self.column} - {"name"}


@dataclass
class World:
    """Items by name, and edges by their two ends."""

    items: dict[str, Item] = field(default_factory=dict)
    links: set[tuple[str, str]] = field(default_factory=set)

    def matching(self, condition: Condition | None, columns: Iterable[str] = COLUMNS) -> dict[str, Item]:
        """The items that pass, with the values of some columns."""
        return {
            name: {column: item[column] for column in columns}
            for name, item in self.items.items()
            if condition is None or condition.matches(name, item)
        }

    def links_of(self, names: Iterable[str]) -> set[tuple[str, str]]:
        """The edges of some items."""
        ends = set(names)
        return {link for link in self.links if ends & set(link)}


@dataclass(frozen=True)
class Statement:
    """A change of one property, or a delete if `column` is None; an upsert or a patch names its item."""

    where: Condition
    column: str | None = None
    value: int | str | None = None
    verb: str = "update"

    @property
    def columns(self) -> set[str]:
        """The columns that it reads or writes; a delete writes all."""
        return set(COLUMNS) if self.column is None else {self.column} | self.where.columns

    def must_conflict(self, view: World, world: World) -> bool:
        """Whether what it matches is not what was seen."""
        seen, actual = view.matching(self.where, self.columns), world.matching(self.where, self.columns)
        if self.column is None and view.links_of(seen) != world.links_of(actual):
            return True
        return seen != actual

    def apply(self, world: World) -> int:
        """Do it; gives the number of items."""
        if self.verb != "update":
            return self._change_named(world)
        names = list(world.matching(self.where))
        for name in names:
            if self.column is not None:
                world.items[name][self.column] = self.value
        if self.column is None:
            world.links -= world.links_of(names)
            for name in names:
                del world.items[name]
        return len(names)

    def _change_named(self, world: World) -> int:
        """An upsert adds a missing item; an item that has the value already is not written."""
        assert self.column is not None
        item = world.items.get(self.where.value)
        if item is None:
            assert self.verb == "upsert", "a patch of a missing item landed"
            world.items[self.where.value] = {**dict.fromkeys(COLUMNS), self.column: self.value}
            return 1
        is_changed = item[self.column] != self.value
        item[self.column] = self.value
        return int(is_changed)

    def lacks_item(self, world: World) -> bool:
        """Whether it is a patch of a missing item, which is refused."""
        return self.verb == "patch" and self.where.value not in world.items


@dataclass(frozen=True)
class Query:
    """A query inside a transaction: `kind` selects what is read of the items that pass."""

    kind: str
    where: Condition | None = None

    @property
    def text(self) -> str:
        """The query."""
        condition = f"  {self.where.expression}" if self.where else ""
        returned = {
            "score": "$p.name, $p.score",
            "names": "$p.name",
            "total": "sum($p.note) as total",
            "whole": "$p",
            "links": "$p.name, $q.name",
        }[self.kind]
        traversal = "  $p link $q" if self.kind == "links" else ""
        return f"match {{ $p: Item{condition}{traversal} }} return {{ {returned} }}"

    @property
    def columns(self) -> set[str]:
        """The columns that it reads, apart from the key."""
        read = {"score": {"score"}, "names": set(), "total": {"note"}, "whole": set(COLUMNS), "links": set(COLUMNS)}
        return read[self.kind] | (self.where.columns if self.where else set())

    def answer(self, world: World) -> Any:
        """What it must return, in a form that `shown` gives, too."""
        matching = world.matching(self.where)
        if self.kind == "total":
            notes = [item["note"] for item in matching.values() if item["note"] is not None]
            return sum(notes) if notes else None
        if self.kind == "links":
            return sorted(link for link in world.links if link[0] in matching)
        if self.kind == "names":
            return sorted(matching)
        if self.kind == "score":
            return sorted((name, str(item["score"])) for name, item in matching.items())
        return sorted((name, *(str(item[column]) for column in COLUMNS)) for name, item in matching.items())

    def shown(self, rows: list[dict[str, Any]]) -> Any:
        """What the product returned."""
        if self.kind == "total":
            return rows[0]["total"] if rows else None
        if self.kind == "links":
            return sorted((row["p.name"], row["q.name"]) for row in rows)
        if self.kind == "names":
            return sorted(row["p.name"] for row in rows)
        if self.kind == "score":
            return sorted((row["p.name"], str(row["p.score"])) for row in rows)
        entities = (row["p"] for row in rows)
        return sorted((entity["name"], *(str(entity[column]) for column in COLUMNS)) for entity in entities)


@dataclass(frozen=True)
class Touch:
    """A change by somebody: the item before and after, or an edge."""

    name: str = ""
    before: Item | None = None
    after: Item | None = None
    link: tuple[str, str] | None = None

    def concerns(self, conditions: Iterable[Condition | None], columns: set[str], *, links: bool) -> bool:
        """Whether somebody who depends on these items and columns may notice it."""
        if self.link is not None:
            return links
        images = [image for image in (self.before, self.after) if image is not None]
        if len(images) == 2 and all(images[0][column] == images[1][column] for column in columns):
            return False
        return any(
            condition is None or condition.matches(self.name, image) for condition in conditions for image in images
        )


def touches(before: World, after: World) -> list[Touch]:
    """What changed between two states."""
    names = sorted(before.items.keys() | after.items.keys())
    changed = [name for name in names if before.items.get(name) != after.items.get(name)]
    return [
        *(Touch(name, deepcopy(before.items.get(name)), deepcopy(after.items.get(name))) for name in changed),
        *(Touch(link=link) for link in sorted(before.links ^ after.links)),
    ]
