"""What the schemas of random programs declare beside columns that come and go.

Part of the oracle for merges: number types that grow wider, required columns, values of an enum, rules of values and of
edges, and a keyed edge type that a branch may add. Each is a slot with one value; two schemas are put together slot by
slot. It knows nothing of the product.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Slots = Mapping[str, Any]
Decide = Callable[[], str | None]

PERSON, KNOWS, RATES, GRADES, TEAM = "node:Person", "edge:Knows", "edge:Rates", "edge:Grades", "node:Team"
FIRST: Slots = {
    "size.name": "size",
    "size.type": "I32",
    "size.required": False,
    "size.range": None,
    "size.unique": False,
    "level.values": frozenset({"low", "mid"}),
    "title.checks": frozenset(),
    "since.type": "I32",
    "knows.card": None,
    "knows.unique": False,
    "stars.type": "I32",
    "stars.required": False,
    "grades": False,
}
_SETS = ("level.values", "title.checks")
_WIDER = {"I32": ("I64", "F64")}
_NUMBERS = {PERSON: ("size",), KNOWS: ("since",), RATES: ("stars",)}  # columns whose types are slots, by type
_LIMITS = {"I32": 1 << 31, "I64": 1 << 63}
# What one step may do: the slot, and the value that it gets or, of a set, that comes or goes.
VERBS: tuple[tuple[str, str, Any], ...] = (
    *(("set", f"{name}.type", kind) for name in ("size", "size", "since", "stars") for kind in ("I64", "F64")),
    *(("set", f"{name}.required", flag) for name in ("size", "stars") for flag in (True, False)),
    *(("set", "size.range", bounds) for bounds in ((0, 9), (0, 5), (2, 50), None)),
    *(("set", name, flag) for name in ("size.unique", "knows.unique") for flag in (True, False)),
    *(("set", "size.name", name) for name in ("mass", "weight")),
    *(("set", "knows.card", bounds) for bounds in ((0, 1), (0, 2), None)),
    *(("add", "level.values", value) for value in ("high", "top")),
    *(("cut", "level.values", value) for value in ("low", "mid", "high")),
    *((verb, "title.checks", pattern) for verb in ("add", "cut") for pattern in ("^[xyz]*$", "^.?$", "x")),
    ("set", "grades", True),
)


@dataclass(frozen=True)
class Misfit:
    """A value that another number type cannot hold; it equals no value."""

    value: Any


class SlotConflictError(Exception):
    """Two schemas changed a slot differently, and nobody decided."""


def changed_slots(slots: Slots, verb: tuple[str, str, Any]) -> Slots | None:
    """The slots after a step, or None if it changes nothing or is not allowed."""
    action, slot, value = verb
    old = slots[slot]
    if action != "set":
        new = old | {value} if action == "add" else old - {value}
        return None if new == old or (slot == "level.values" and not new) else {**slots, slot: new}
    if value == old or (slot.endswith(".type") and value not in _WIDER.get(old, ())):
        return None
    return {**slots, slot: value}


def merged_slots(base: Slots, ours: Slots, theirs: Slots, decide: Decide) -> Slots:
    """Put the slots of two schemas together; raises if a slot is contested and nobody decides."""

    def choose(slot: str) -> Any:
        side = decide()
        if side is None:
            raise SlotConflictError(slot)
        return (ours if side == "ours" else theirs)[slot]

    return {slot: _merged(slot, base[slot], ours[slot], theirs[slot], choose) for slot in base}


def base_slots(base: Slots, first: Slots, second: Slots, sides: tuple[Slots, Slots]) -> Slots:
    """Put the slots of two bases together; what they contest is as neither side has it, if the sides differ."""

    def choose(slot: str) -> Any:
        values = base[slot], first[slot], second[slot]
        return next((one for one in values if _is_contested(slot, one, *(side[slot] for side in sides))), values[0])

    return {slot: _merged(slot, base[slot], first[slot], second[slot], choose) for slot in base}


def _is_contested(slot: str, base: Any, ours: Any, theirs: Any) -> bool:
    asked: list[str] = []
    _merged(slot, base, ours, theirs, asked.append)
    return bool(asked)


def _merged(slot: str, base: Any, ours: Any, theirs: Any, choose: Callable[[str], Any]) -> Any:
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    if slot in _SETS and not _replaced_twice(slot, base, ours, theirs):
        united = (base & ours & theirs) | (ours - base) | (theirs - base)
        if united or slot != "level.values":
            return united
    return choose(slot)


def narrows(old: Slots, new: Slots) -> bool:
    """Whether a number has a type that cannot hold all values that it could have before."""
    types = [(old[slot], new[slot]) for slot in old if slot.endswith(".type")]
    return any(was != now and now not in _WIDER.get(was, ()) for was, now in types)


def _replaced_twice(slot: str, base: frozenset[str], ours: frozenset[str], theirs: frozenset[str]) -> bool:
    """Both sides took the same rule away and put different ones in its place."""
    return slot == "title.checks" and bool((base - ours) & (base - theirs)) and ours - base != theirs - base


def has_type(key: str, slots: Slots) -> bool:
    """Whether a schema has a type."""
    return key != GRADES or bool(slots["grades"])


def converted(key: str, row: Row, old: Slots, new: Slots) -> Row:
    """A row with the names and number types of other slots."""
    found = dict(row)
    if key == PERSON and old["size.name"] in found:
        found = {new["size.name"] if name == old["size.name"] else name: value for name, value in found.items()}
    for column in _NUMBERS.get(key, ()):
        name = new["size.name"] if column == "size" else column
        if name in found and old[f"{column}.type"] != new[f"{column}.type"]:
            found[name] = _number(found[name], new[f"{column}.type"])
    return found


def _number(value: Any, kind: str) -> Any:
    if value is None or isinstance(value, Misfit):
        return value
    if kind == "F64":
        return float(value) if int(float(value)) == value else Misfit(value)
    whole = isinstance(value, int) or (value.is_integer() and not (value == 0 and str(value) == "-0.0"))
    return int(value) if whole and -_LIMITS[kind] <= value < _LIMITS[kind] else Misfit(value)


def has_misfit(row: Row | None) -> bool:
    """Whether a row has a value that its column cannot hold."""
    return row is not None and any(isinstance(value, Misfit) for value in row.values())


def written(key: str, row: Row, slots: Slots, *, whole: bool = True) -> Row:
    """A row as a step writes it by then: names and numbers as the schema has them, all columns if it is whole.

    A number that is too large, or has a fraction, becomes one that fits: programs are cut to pieces.
    """
    found = dict(row)
    if key == PERSON:
        known = [found.pop(name) for name in ("size", "mass", "weight") if name in found]
        if known or whole:
            found[slots["size.name"]] = next(iter(known), None)
        if whole:
            found.setdefault("level", None)
    for column in _NUMBERS.get(key, ()):
        name = slots["size.name"] if column == "size" else column
        if found.get(name) is not None:
            found[name] = _written_number(found[name], slots[f"{column}.type"])
    return found


def _written_number(value: Any, kind: str) -> Any:
    if kind == "F64":
        return float(value)
    return int(value) % 1000 if kind == "I32" else int(value)


def slot_text(schema: str, old: Slots, new: Slots) -> str:
    """The text of a schema with other slots, as it follows from an earlier one."""
    name = new["size.name"]
    mark = "" if new["size.required"] else "?"
    origin = f' @rename_from("{old["size.name"]}")' if old["size.name"] != name else ""
    unique = f"  @unique({name})\n" if new["size.unique"] else ""
    bounds = new["size.range"]
    limits = f"  @range({name}, {bounds[0]}..{bounds[1]})\n" if bounds else ""
    checks = "".join(f' @check(title, "{pattern}")' for pattern in sorted(new["title.checks"]))
    card = new["knows.card"]
    words = {
        "  size: I32?\n": f"  {name}: {new['size.type']}{mark}{origin}\n{unique}{limits}",
        "enum(low, mid)": f"enum({', '.join(sorted(new['level.values']))})",
        "title: String?": f"title: String?{checks}",
        "Knows: Person -> Person {": f"Knows: Person -> Person{f' @card({card[0]}..{card[1]})' if card else ''} {{",
        "since: I32?": f"since: {new['since.type']}?{' @unique(src, since)' if new['knows.unique'] else ''}",
        "stars: I32?": f"stars: {new['stars.type']}{'' if new['stars.required'] else '?'}",
    }
    for first, then in words.items():
        assert first in schema
        schema = schema.replace(first, then)
    if new["grades"]:
        schema += "edge Grades: Person -> Team { kind: String  mark: I32?  @key(src, kind) }\n"
    return schema
