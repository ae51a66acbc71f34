"""Small random graphs with few values: loops, parallel edges, shared ids.

Every value can be summed exactly, so that no order of adding shows.
"""

import json
from random import Random
from typing import Any

SCHEMA = """
interface Named { label: String?  n: I32? }
node Person implements Named {
    name: String @key
    age: I64?
    big: U64?
    single: F32?
    double: F64?
    flag: Bool?
    born: Date?
    at: DateTime?
    tags: [String]?
    nums: [I32]?
    mood: enum(glad, sad)?
    @index(age)
}
node Firm implements Named { name: String @key  size: U32?  flag: Bool? }
edge Knows: Person -> Person { since: Date?  k: I32? }
edge Likes: Person -> Person { k: I32? }
edge WorksAt: Person -> Firm { k: I32? }
edge Employs: Firm -> Person { k: I32? }
edge Contains: Firm -> Firm
edge In: Person -> Firm
"""

TEXTS = ["", "a", "b", "ab", "é", "a'b", '"', "\\"]
DAYS = ["2020-01-01", "2020-01-02", "1969-12-31"]
MOMENTS = ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.001Z", "1969-12-31T23:59:59.999Z"]
VALUES: dict[str, list[Any]] = {
    "label": TEXTS,
    "n": [-1, 0, 1, 2, 2147483647],
    "age": [-1, 0, 1, 2, 9007199254740993, -9223372036854775808],
    "big": [0, 1, 2, 18446744073709551615],
    "size": [0, 1, 2, 4294967295],
    "single": [-0.5, 0.0, -0.0, 0.5, 1.0, 2.0],
    "double": [-0.5, 0.0, -0.0, 0.5, 1.0, 2.0, 9007199254740992.0],
    "flag": [True, False],
    "born": DAYS,
    "at": MOMENTS,
    "since": DAYS,
    "k": [-1, 0, 1, 2],
    "tags": [[], ["a"], ["a", "b"], ["b", "b"]],
    "nums": [[], [1], [0, 2]],
    "mood": ["glad", "sad"],
}
PROPERTIES = {
    "Person": "label n age big single double flag born at tags nums mood".split(),
    "Firm": "label n size flag".split(),
    "Knows": ["since", "k"],
    "Likes": ["k"],
    "WorksAt": ["k"],
    "Employs": ["k"],
    "Contains": [],
    "In": [],
}
ENDS = {
    "Knows": ("Person", "Person"),
    "Likes": ("Person", "Person"),
    "WorksAt": ("Person", "Firm"),
    "Employs": ("Firm", "Person"),
    "Contains": ("Firm", "Firm"),
    "In": ("Person", "Firm"),
}
PEOPLE = ["a", "b", "c", "d", "é", "x y"]
FIRMS = ["a", "f", "g"]  # `a` is a person as well


def values(dice: Random, name: str) -> dict[str, Any]:
    """Properties of one entity: about a third is missing."""
    chosen = [one for one in PROPERTIES[name] if dice.random() < 0.65]
    return {one: dice.choice(VALUES[one]) for one in chosen}


def records(dice: Random) -> list[dict[str, Any]]:
    """The entities of a graph, nodes first."""
    held = {"Person": dice.sample(PEOPLE, dice.choice([1, 4, 5, 6]))}
    held["Firm"] = dice.sample(FIRMS, dice.randint(0, len(FIRMS)))
    lines: list[dict[str, Any]] = [
        {"type": kind, "data": {"name": name} | values(dice, kind)} for kind, names in held.items() for name in names
    ]
    number = 0
    for edge, (source, target) in ENDS.items():
        if not held[source] or not held[target]:
            continue
        for _ in range(dice.choice([0, 3, 6, 9, 12])):
            number += 1
            ends = {"from": dice.choice(held[source]), "to": dice.choice(held[target])}
            data = {"id": f"e{number:02}"} | values(dice, edge)
            lines.append({"edge": edge} | ends | {"data": data})
    return lines


def ndjson(lines: list[dict[str, Any]]) -> str:
    """Records as a text to load."""
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in lines)
