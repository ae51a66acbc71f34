"""Random histories of a graph with changing schemas, and dictionaries with its expected data.

Names come from small pools, so that what was dropped is soon declared again.
"""

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.evolve.migration_model import Row, Rows

_TYPES = ("T0", "T1", "T2", "T3")
_NAMES = ("p", "q", "r", "s", "t")
_KINDS = ("I32", "String", "F64", "[I32]", "enum(a, b)", "Vector(2)", "U32", "Bool")
_WIDER = {"I32": "I64", "U32": "U64", "[I32]": "[I64]"}
_DEFAULTS: dict[str, tuple[str, Any]] = {
    "I32": ("7", 7),
    "String": ('"d"', "d"),
    "F64": ("0.5", 0.5),
    "enum(a, b)": ("b", "b"),
    "U32": ("9", 9),
    "Bool": ("true", True),
}


@dataclass(slots=True)
class Prop:
    """A property as the world knows it."""

    kind: str
    nullable: bool = True
    default: bool = False
    renamed: str | None = None
    was_nullable: bool | None = None  # None for one that is new

    def text(self, name: str) -> str:
        """The property as a schema has it."""
        default = f" @default({_DEFAULTS[self.kind][0]})" if self.default else ""
        renamed = f' @rename_from("{self.renamed}")' if self.renamed else ""
        return f"{name}: {self.kind}{'?' if self.nullable else ''}{default}{renamed}"


@dataclass(slots=True)
class Type:
    """A node type, with an edge type from it to itself."""

    props: dict[str, Prop] = field(default_factory=dict)
    renamed: str | None = None
    known: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Forget what the last change was."""
        self.renamed, self.known = None, set(self.props)
        for prop in self.props.values():
            prop.renamed, prop.was_nullable = None, prop.nullable

    def text(self, name: str) -> str:
        """The types as a schema has them."""
        node, edge = (f' @rename_from("{prefix}{self.renamed}")' if self.renamed else "" for prefix in ("", "E"))
        props = "  ".join(one.text(key) for key, one in self.props.items())
        ends = f"edge E{name}: {name} -> {name}{edge}"
        return f"node {name}{node} {{ k: String @key  {props} }}\n{ends}\n"


class World:
    """The schema and the rows of one branch."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.types: dict[str, Type] = {"T0": Type()}
        self.rows: Rows = {}
        self.count = 0
        self.known: set[str] = set()
        self.wished = ""

    def fork(self, seed: int) -> "World":
        """The same world, that goes its own way."""
        made = copy.deepcopy(self)
        made.chance = random.Random(seed)
        return made

    def text(self) -> str:
        """The schema."""
        return "".join(one.text(name) for name, one in self.types.items())

    # The schema ---------------------------------------------------------------------------------

    def reshape(self) -> bool:
        """Change the schema, and the rows with it; False, and nothing, when data forbids it.

        Within one change a name cannot be given to something else: it would still be the same.
        """
        types, rows = copy.deepcopy(self.types), copy.deepcopy(self.rows)
        for one in self.types.values():
            one.start()
        self.known = set(self.types)
        for _ in range(self.chance.randint(1, 3)):
            self.chance.choice([*[_property] * 6, _add_type, _drop_type, _rename_type])(self)
        self.wished = self.text()
        fits = all(
            name in row
            for key, one in self.types.items()
            for name, prop in one.props.items()
            if prop.was_nullable and not prop.nullable
            for row in self.rows.get(f"node:{key}", {}).values()
        )
        if not fits:
            self.types, self.rows = types, rows
        return fits

    # The rows -----------------------------------------------------------------------------------

    def records(self) -> tuple[str, list[Row]]:
        """New rows for a type."""
        name = self.chance.choice(list(self.types))
        made = []
        for _ in range(self.chance.randint(1, 3)):
            self.count += 1
            row: Row = {"k": f"n{self.count}"}
            left: Row = {}
            for key, prop in self.types[name].props.items():
                if self.chance.random() < 0.6 or not (prop.nullable or prop.default):
                    row[key] = self._value(prop.kind)
                elif prop.default:
                    left[key] = _DEFAULTS[prop.kind][1]
            made.append(row)
            stored = self.rows.setdefault(f"node:{name}", {})
            stored[row["k"]] = {"id": row["k"], **copy.deepcopy(row), **left}
        return name, made

    def edge(self) -> tuple[str, Row] | None:
        """A new edge between two nodes of one type."""
        name = self.chance.choice(list(self.types))
        ids = list(self.rows.get(f"node:{name}", {}))
        if not ids:
            return None
        self.count += 1
        ends = {"from": self.chance.choice(ids), "to": self.chance.choice(ids)}
        key = f"e{self.count}"
        self.rows.setdefault(f"edge:E{name}", {})[key] = {"id": key, **ends}
        return f"E{name}", {"id": key, **ends}

    def _value(self, kind: str) -> Any:
        pick = self.chance.randint
        values: dict[str, Callable[[], Any]] = {
            "I32": lambda: pick(-9, 9),
            "I64": lambda: pick(-9, 9) << 40,
            "U32": lambda: pick(0, 9),
            "U64": lambda: pick(0, 9) << 40,
            "String": lambda: self.chance.choice("xyz"),
            "F64": lambda: pick(-9, 9) / 4,
            "[I32]": lambda: [pick(0, 9)] * pick(0, 2),
            "[I64]": lambda: [pick(0, 9) << 40] * pick(0, 2),
            "enum(a, b)": lambda: self.chance.choice("ab"),
            "Vector(2)": lambda: [pick(0, 9) / 2, 1.0],
            "Bool": lambda: self.chance.random() < 0.5,
        }
        return values[kind]()


def _property(world: World) -> None:
    name = world.chance.choice(list(world.types))
    change: Callable[..., None] = world.chance.choice([_add, _add, _drop, _rename, _widen, _turn])
    change(world, world.types[name], world.rows.get(f"node:{name}", {}).values())


def _add(world: World, one: Type, rows: Any) -> None:
    free = [name for name in _NAMES if name not in one.props and name not in one.known]
    if not free:
        return
    kind = world.chance.choice(_KINDS)
    required = kind in _DEFAULTS and world.chance.random() < 0.5
    name = world.chance.choice(free)
    one.props[name] = Prop(kind, not required, required)
    for row in rows if required else ():
        row[name] = _DEFAULTS[kind][1]


def _drop(world: World, one: Type, rows: Any) -> None:
    if not one.props:
        return
    name = world.chance.choice(list(one.props))
    del one.props[name]
    for row in rows:
        row.pop(name, None)


def _rename(world: World, one: Type, rows: Any) -> None:
    free = [name for name in _NAMES if name not in one.props and name not in one.known]
    kept = [name for name in one.props if name in one.known]
    if not kept or not free:
        return
    old, new = world.chance.choice(kept), world.chance.choice(free)
    one.props[new] = one.props.pop(old)
    one.props[new].renamed = old
    for row in rows:
        if old in row:
            row[new] = row.pop(old)


def _widen(world: World, one: Type, rows: Any) -> None:
    narrow = [prop for prop in one.props.values() if prop.kind in _WIDER and not prop.default]
    if narrow:
        prop = world.chance.choice(narrow)
        prop.kind = _WIDER[prop.kind]


def _turn(world: World, one: Type, rows: Any) -> None:
    """A property becomes required, or may be null."""
    kept = [prop for prop in one.props.values() if prop.was_nullable is not None]
    if kept:
        prop = world.chance.choice(kept)
        prop.nullable = not prop.nullable


def _add_type(world: World) -> None:
    free = [name for name in _TYPES if name not in world.types and name not in world.known]
    if free:
        world.types[world.chance.choice(free)] = Type()


def _drop_type(world: World) -> None:
    if len(world.types) > 1:
        name = world.chance.choice(list(world.types))
        del world.types[name]
        world.rows.pop(f"node:{name}", None)
        world.rows.pop(f"edge:E{name}", None)


def _rename_type(world: World) -> None:
    free = [name for name in _TYPES if name not in world.types and name not in world.known]
    kept = [name for name in world.types if name in world.known]
    if not free or not kept:
        return
    old, new = world.chance.choice(kept), world.chance.choice(free)
    world.types[new] = world.types.pop(old)
    world.types[new].renamed = old
    for prefix in ("node:", "edge:E"):
        if f"{prefix}{old}" in world.rows:
            world.rows[f"{prefix}{new}"] = world.rows.pop(f"{prefix}{old}")
