"""Random schemas of the slot model, and random changes to them.

A change is a word and two numbers that select what it applies to, so hypothesis can shrink a sequence of changes. Few
names are in use, so that the two sides often touch the same thing.
"""

from collections.abc import Callable
from itertools import count

from hypothesis import strategies as st

from .slot_model import ENUM_SLOT, ModelSchema

Change = tuple[str, int, int]
_TYPE_NAMES = {"interface": ["I", "J"], "node": ["A", "B", "C", "D"], "edge": ["E", "F", "G"]}
_PROPERTY_NAMES = {"interface": ["p", "q", "r"], "node": ["a", "b", "c", "d"], "edge": ["a", "b", "c"]}
_WIDER = {"I32": ["I64", "F64"], "U32": ["U64", "I64"], "F32": ["F64"]}
_STORAGES = ["I32", "U32", "F32", "String", ENUM_SLOT, "[I32]", "Bool"]
_ENUM_VALUES = ["u", "v", "w", "x"]
_RANGES = ["0..9", "0..5", "1..", "..7"]
_CARDINALITIES = ["0..", "0..1", "1..3"]


class Editor:
    """Applies changes to a schema; additions get ids with the prefix of their side."""

    def __init__(self, schema: ModelSchema, prefix: str) -> None:
        self.schema = schema.copy()
        self._prefix = prefix
        self._counter = count(1)

    def apply(self, change: Change) -> None:
        """Apply a change; do nothing if there is nothing that it could apply to."""
        word, first, second = change
        CHANGES[word](self, first, second)

    def _new_id(self) -> str:
        return f"{self._prefix}{next(self._counter)}"

    def _pick_type(self, position: int, kind: str | None = None) -> str | None:
        types = self.schema.types(kind)
        return types[position % len(types)] if types else None

    def _pick_property(self, position: int) -> tuple[str, str] | None:
        pairs = [(owner, number) for owner in self.schema.types() for number in self.schema.properties(owner)]
        return pairs[position % len(pairs)] if pairs else None

    def _free_type_name(self, kind: str, position: int) -> str | None:
        used = {self.schema.of_type(number, "name") for number in self.schema.types(kind)}
        free = [name for name in _TYPE_NAMES[kind] if name not in used]
        return free[position % len(free)] if free else None

    def _free_property_name(self, type_id: str, position: int) -> str | None:
        used = set(self.schema.columns(type_id).values())
        free = [name for name in _PROPERTY_NAMES[self.schema.slots["type", type_id]] if name not in used]
        return free[position % len(free)] if free else None

    def add_type(self, first: int, second: int) -> None:
        """Add an interface, a node type or an edge type."""
        kind = ["node", "edge", "node", "interface"][first % 4]
        name = self._free_type_name(kind, second)
        nodes = self.schema.types("node")
        if name is None or (kind == "edge" and not nodes):
            return
        number = self._new_id()
        slots = {("type", number): kind, ("type slot", number, "name"): name}
        if kind == "edge":
            slots["type slot", number, "source"] = nodes[first % len(nodes)]
            slots["type slot", number, "target"] = nodes[second % len(nodes)]
            slots["type slot", number, "cardinality"] = _CARDINALITIES[second % 3]
        interfaces = self.schema.types("interface")
        if kind == "node" and interfaces and second % 2:
            slots["type slot", number, "implements"] = interfaces[second % len(interfaces)]
        self.schema.slots |= slots
        for position in range(first % 3):
            self._add_property(number, second + position, nullable=kind == "interface" or bool(second % 3))
        self._add_key(number, second)

    def _add_key(self, type_id: str, position: int) -> None:
        columns = [
            number
            for number in self.schema.properties(type_id)
            if self.schema.of_property(type_id, number, "type") in ("I32", "String")
            and not self.schema.of_property(type_id, number, "nullable")
        ]
        if columns and self.schema.slots["type", type_id] != "interface" and position % 2:
            self.schema.slots["type slot", type_id, "key"] = columns[0]

    def add_property(self, first: int, second: int) -> None:
        """Add a nullable property."""
        type_id = self._pick_type(first)
        if type_id is not None:
            self._add_property(type_id, second, nullable=True)

    def _add_property(self, type_id: str, position: int, *, nullable: bool) -> None:
        name = self._free_property_name(type_id, position)
        if name is None:
            return
        storage = _STORAGES[position % len(_STORAGES)]
        number = self._new_id()
        owner = ("property slot", type_id, number)
        self.schema.slots |= {
            ("property", type_id, number): True,
            (*owner, "name"): name,
            (*owner, "type"): storage,
            (*owner, "nullable"): nullable,
        }
        if storage == ENUM_SLOT:
            self.schema.slots[*owner, ENUM_SLOT] = frozenset(_ENUM_VALUES[: 1 + position % 3])

    def drop_type(self, first: int, _second: int) -> None:
        """Drop a type that no node implements."""
        type_id = self._pick_type(first)
        if type_id is not None and not self._is_implemented(type_id):
            self.schema.remove_type(type_id)

    def _is_implemented(self, type_id: str) -> bool:
        return any(self.schema.of_type(number, "implements") == type_id for number in self.schema.types())

    def drop_property(self, first: int, _second: int) -> None:
        """Drop a property that is not a key."""
        pair = self._pick_property(first)
        if pair is not None and self.schema.of_type(pair[0], "key") != pair[1]:
            self.schema.remove_property(*pair)

    def rename_type(self, first: int, second: int) -> None:
        """Rename a node type or an edge type."""
        type_id = self._pick_type(first)
        if type_id is None or self.schema.slots["type", type_id] == "interface":
            return
        name = self._free_type_name(self.schema.slots["type", type_id], second)
        if name is not None:
            self.schema.slots["type slot", type_id, "name"] = name

    def rename_property(self, first: int, second: int) -> None:
        """Rename a property."""
        pair = self._pick_property(first)
        name = None if pair is None else self._free_property_name(pair[0], second)
        if pair is not None and name is not None:
            self.schema.slots["property slot", *pair, "name"] = name

    def change_type(self, first: int, second: int) -> None:
        """Widen a number, or change the values of an enum."""
        pair = self._pick_property(first)
        if pair is None:
            return
        storage, values = (self.schema.of_property(*pair, part) for part in ("type", ENUM_SLOT))
        if values is not None:
            changed = values ^ {_ENUM_VALUES[second % 4]}
            self.schema.slots["property slot", *pair, ENUM_SLOT] = changed or values
        elif storage in _WIDER and self.schema.of_type(pair[0], "key") != pair[1]:
            self.schema.slots["property slot", *pair, "type"] = _WIDER[storage][second % len(_WIDER[storage])]

    def change_nullable(self, first: int, _second: int) -> None:
        """Make a property nullable or required."""
        pair = self._pick_property(first)
        if pair is None or self.schema.of_type(pair[0], "key") == pair[1]:
            return
        if self.schema.slots["type", pair[0]] != "interface":
            key = ("property slot", *pair, "nullable")
            self.schema.slots[key] = not self.schema.slots[key]

    def describe(self, first: int, second: int) -> None:
        """Describe a property or a type, or remove the description."""
        pair = self._pick_property(first)
        type_id = self._pick_type(first)
        key: tuple[str, ...] | None = None if pair is None else ("property slot", *pair, "description")
        if second % 2 and type_id is not None and self.schema.slots["type", type_id] != "interface":
            key = ("type slot", type_id, "description")
        if key is None:
            return
        if second % 3 == 0:
            self.schema.slots.pop(key, None)
        else:
            self.schema.slots[key] = ["one", "two", "three"][second % 3]

    def change_default(self, first: int, second: int) -> None:
        """Set or remove the default of a number."""
        pair = self._pick_property(first)
        if pair is None or self.schema.of_property(*pair, "type") not in ("I32", "I64", "U32", "U64", "F32", "F64"):
            return
        key = ("property slot", *pair, "default")
        if second % 3 == 0:
            self.schema.slots.pop(key, None)
        else:
            self.schema.slots[key] = str(second % 10)

    def change_constraint(self, first: int, second: int) -> None:
        """Add or drop an index, a unique constraint or a range."""
        pair = self._pick_property(first)
        if pair is None or self.schema.of_property(*pair, "type").startswith("["):
            return
        type_id, number = pair
        kind = self.schema.slots["type", type_id]
        word = ["index", "unique", "range"][second % 3]
        columns, value = number, True
        if word == "unique" and kind != "interface":
            others = [name for name in self._comparable(type_id) if name != number]
            columns = "+".join(sorted({number, *others[: second % 2]}))
        elif word == "range" and kind == "node" and self._is_number(pair):
            value = _RANGES[second % 4]  # type: ignore[assignment]
        elif word != "index":
            return
        key = ("constraint", type_id, word, columns)
        if self.schema.slots.get(key) == value:
            del self.schema.slots[key]
        else:
            self.schema.slots[key] = value

    def _comparable(self, type_id: str) -> list[str]:
        owners = [type_id, self.schema.of_type(type_id, "implements")]
        return [
            number
            for owner in owners
            if owner is not None
            for number in self.schema.properties(owner)
            if not self.schema.of_property(owner, number, "type").startswith("[")
        ]

    def _is_number(self, pair: tuple[str, str]) -> bool:
        return self.schema.of_property(*pair, "type") in ("I32", "I64", "U32", "U64", "F32", "F64")

    def change_edge(self, first: int, second: int) -> None:
        """Change the cardinality or an endpoint of an edge type."""
        edge_id = self._pick_type(first, "edge")
        nodes = self.schema.types("node")
        if edge_id is None:
            return
        if second % 3 == 0:
            self.schema.slots["type slot", edge_id, "cardinality"] = _CARDINALITIES[second % 9 // 3]
        else:
            end = "source" if second % 3 == 1 else "target"
            self.schema.slots["type slot", edge_id, end] = nodes[second % len(nodes)]


CHANGES: dict[str, Callable[[Editor, int, int], None]] = {
    "add_property": Editor.add_property,
    "add_type": Editor.add_type,
    "change_constraint": Editor.change_constraint,
    "change_default": Editor.change_default,
    "change_edge": Editor.change_edge,
    "change_nullable": Editor.change_nullable,
    "change_type": Editor.change_type,
    "describe": Editor.describe,
    "drop_property": Editor.drop_property,
    "drop_type": Editor.drop_type,
    "rename_property": Editor.rename_property,
    "rename_type": Editor.rename_type,
}
_numbers = st.integers(0, 30)
_changes = st.tuples(st.sampled_from(sorted(CHANGES)), _numbers, _numbers)
_additions = st.tuples(
    st.sampled_from(["add_type", "add_type", "add_property", "change_constraint"]), _numbers, _numbers
)


@st.composite
def first_models(draw: st.DrawFn) -> ModelSchema:
    """Return a schema with a few types."""
    editor = Editor(ModelSchema(), "base")
    for change in draw(st.lists(_additions, min_size=2, max_size=10)):
        editor.apply(change)
    return editor.schema


change_lists = st.lists(st.lists(_changes, min_size=1, max_size=3), min_size=1, max_size=3)
