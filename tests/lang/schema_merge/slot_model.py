"""A small model of schemas as dictionaries of slots, written without the product's merge code.

A schema maps a key such as `("property", type, property, "type")` to a value; types and properties are named by model
ids that never change. The model merges two such dictionaries key by key, and writes a schema as text, with a comment
for everything it declares.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Slots = dict[tuple[str, ...], Any]
ENUM_SLOT = "enum"


class ModelConflictError(Exception):
    """The two sides cannot be combined."""


@dataclass
class ModelSchema:
    """A schema; `slots` has one entry for each declared thing and one for each of its parts."""

    slots: Slots = field(default_factory=dict)

    def copy(self) -> "ModelSchema":
        """Return an independent copy."""
        return ModelSchema(dict(self.slots))

    def types(self, kind: str | None = None) -> list[str]:
        """Return the ids of all types of a kind."""
        return [key[1] for key, value in self.slots.items() if key[0] == "type" and kind in (None, value)]

    def properties(self, type_id: str) -> list[str]:
        """Return the ids of the properties that a type declares."""
        return [key[2] for key in self.slots if key[0] == "property" and key[1] == type_id]

    def of_type(self, type_id: str, name: str) -> Any:
        """Return a slot of a type, or None."""
        return self.slots.get(("type slot", type_id, name))

    def of_property(self, type_id: str, property_id: str, name: str) -> Any:
        """Return a slot of a property, or None."""
        return self.slots.get(("property slot", type_id, property_id, name))

    def columns(self, type_id: str) -> dict[str, str]:
        """Return the names of all columns of a type, by property id, with those of its interface."""
        columns = {number: self.of_property(type_id, number, "name") for number in self.properties(type_id)}
        interface_id = self.of_type(type_id, "implements")
        if interface_id is not None:
            columns |= {n: self.of_property(interface_id, n, "name") for n in self.properties(interface_id)}
        return columns

    def constraints(self, type_id: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Yield the key and the column ids of each constraint slot of a type."""
        for key in self.slots:
            if key[0] == "constraint" and key[1] == type_id:
                yield key, tuple(key[3].split("+"))

    def remove_property(self, type_id: str, property_id: str) -> None:
        """Remove a property and the constraints that name it."""
        owners = [type_id, *(node for node in self.types() if self.of_type(node, "implements") == type_id)]
        for key in list(self.slots):
            names_it = key[0] == "constraint" and key[1] in owners and property_id in key[3].split("+")
            if names_it or (key[0] in ("property", "property slot") and key[1:3] == (type_id, property_id)):
                del self.slots[key]

    def remove_type(self, type_id: str) -> None:
        """Remove a type and the edge types that end at it."""
        for edge_id in self.types("edge"):
            if edge_id != type_id and type_id in (self.of_type(edge_id, "source"), self.of_type(edge_id, "target")):
                self.remove_type(edge_id)
        for key in [key for key in self.slots if key[1] == type_id]:
            del self.slots[key]

    def renamed(self, numbers: dict[str, str]) -> "ModelSchema":
        """Return the schema with some ids replaced, in keys and in values."""

        def replace_all(text: Any) -> Any:
            if not isinstance(text, str):
                return text
            return "+".join(sorted(numbers.get(part, part) for part in text.split("+")))

        references = {"source", "target", "implements", "key"}
        renamed: Slots = {}
        for key, value in self.slots.items():
            is_reference = key[-1] in references
            new_key = (key[0], *(replace_all(part) for part in key[1:]))
            renamed[new_key] = replace_all(value) if is_reference else value
        return ModelSchema(renamed)


def write_text(schema: ModelSchema, old_names: dict[str, str] | None = None) -> str:
    """Return a schema as text; `old_names` are the former names for rename hints."""
    return "\n".join(_write_type(schema, type_id, old_names or {}) for type_id in schema.types())


def _hint(number: str, name: str, old_names: dict[str, str]) -> str:
    old_name = old_names.get(number, name)
    return "" if old_name == name else f' @rename_from("{old_name}")'


def _write_type(schema: ModelSchema, type_id: str, old_names: dict[str, str]) -> str:
    kind, name = schema.slots["type", type_id], schema.of_type(type_id, "name")
    description = schema.of_type(type_id, "description")
    notes = _hint(type_id, name, old_names) + ("" if description is None else f' @description("{description}")')
    if kind == "edge":
        ends = [schema.of_type(schema.of_type(type_id, end), "name") for end in ("source", "target")]
        head = f"edge {name}: {ends[0]} -> {ends[1]} @card({schema.of_type(type_id, 'cardinality')}){notes}"
    else:
        interface_id = schema.of_type(type_id, "implements")
        implements = "" if interface_id is None else f" implements {schema.of_type(interface_id, 'name')}"
        head = f"{kind} {name}{notes}{implements}"
    members = [_write_property(schema, type_id, number, old_names) for number in schema.properties(type_id)]
    members += [_write_constraint(schema, type_id, key) for key, _ in schema.constraints(type_id) if key[2] != "index"]
    return "\n".join((f"// {type_id}", f"{head} {{", *members, "}"))


def _write_property(schema: ModelSchema, type_id: str, number: str, old_names: dict[str, str]) -> str:
    name = schema.of_property(type_id, number, "name")
    storage, values = (schema.of_property(type_id, number, part) for part in ("type", ENUM_SLOT))
    text = f"{name}: {storage if values is None else 'enum(' + ', '.join(sorted(values)) + ')'}"
    text += "?" if schema.of_property(type_id, number, "nullable") else ""
    text += _hint(number, name, old_names)
    default, description = (schema.of_property(type_id, number, part) for part in ("default", "description"))
    text += "" if default is None else f" @default({default})"
    text += "" if description is None else f' @description("{description}")'
    text += " @index" if ("constraint", type_id, "index", number) in schema.slots else ""
    text += " @key" if schema.of_type(type_id, "key") == number else ""
    return f"    {text} // {type_id}.{number}"


def _write_constraint(schema: ModelSchema, type_id: str, key: tuple[str, ...]) -> str:
    columns = schema.columns(type_id)
    names = ", ".join(columns[number] for number in key[3].split("+"))
    value = schema.slots[key]
    return f"    @{key[2]}({names}{'' if value is True else ', ' + value})"


def names_of(schema: ModelSchema) -> dict[str, str]:
    """Return the name of every type and property by model id."""
    names = {number: schema.of_type(number, "name") for number in schema.types()}
    for type_id in schema.types():
        names |= {number: schema.of_property(type_id, number, "name") for number in schema.properties(type_id)}
    return names


def reuses_name(before: ModelSchema, after: ModelSchema) -> bool:
    """Return whether one change gives an old name to something else; the product would keep the old identity."""
    old_owners, new_owners = _owners_of_names(before), _owners_of_names(after)
    return any(old_owners[name] != new_owners[name] for name in old_owners.keys() & new_owners.keys())


def _owners_of_names(schema: ModelSchema) -> dict[tuple[str, str], str]:
    owners = {(schema.slots["type", number], schema.of_type(number, "name")): number for number in schema.types()}
    for type_id in schema.types():
        owners |= {(type_id, name): number for number, name in schema.columns(type_id).items()}
    return owners


def pair_additions(base: ModelSchema, ours: ModelSchema, theirs: ModelSchema) -> ModelSchema:
    """Return their schema in which additions with the owner and name of one of ours have our ids."""
    numbers: dict[str, str] = {}
    our_new = {
        (ours.slots["type", number], ours.of_type(number, "name")): number
        for number in ours.types()
        if ("type", number) not in base.slots
    }
    for number in theirs.types():
        partner = number
        if ("type", number) not in base.slots:
            partner = our_new.get((theirs.slots["type", number], theirs.of_type(number, "name")), "")
            numbers |= {number: partner} if partner else {}
        if ("type", partner) in ours.slots:
            numbers |= _pair_properties(base, ours, theirs, (partner, number))
    return theirs.renamed(numbers)


def _pair_properties(
    base: ModelSchema, ours: ModelSchema, theirs: ModelSchema, owners: tuple[str, str]
) -> dict[str, str]:
    our_owner, their_owner = owners
    our_new = {
        ours.of_property(our_owner, number, "name"): number
        for number in ours.properties(our_owner)
        if ("property", our_owner, number) not in base.slots
    }
    return {
        number: our_new[theirs.of_property(their_owner, number, "name")]
        for number in theirs.properties(their_owner)
        if ("property", their_owner, number) not in base.slots
        and theirs.of_property(their_owner, number, "name") in our_new
    }


def merge_models(base: ModelSchema, ours: ModelSchema, theirs: ModelSchema) -> ModelSchema:
    """Return the merged schema, or raise `ModelConflictError`."""
    theirs = pair_additions(base, ours, theirs)
    _refuse_contradicted_drops(base, ours, theirs)
    merged: Slots = {}
    for key in dict.fromkeys([*ours.slots, *theirs.slots]):
        value = _merge_key(key, base, ours, theirs)
        if value is not None:
            merged[key] = value
    schema = ModelSchema({key: value for key, value in merged.items() if _owner_exists(key, merged)})
    _refuse_broken_schema(schema)
    return schema


def _merge_key(key: tuple[str, ...], base: ModelSchema, ours: ModelSchema, theirs: ModelSchema) -> Any:
    old, mine, yours = states = [schema.slots.get(key) for schema in (base, ours, theirs)]
    both_added = mine is not None and yours is not None and old is None
    if key[-1] == ENUM_SLOT and None not in states:
        return _merge_values(key, *states)
    _refuse_unlike_additions(key, base, ours, theirs)
    if yours in (mine, old):
        return mine
    if mine == old:
        return yours
    if both_added and mine is True:
        return True
    raise ModelConflictError(key)


def _merge_values(key: object, old: Any, mine: Any, yours: Any) -> Any:
    values = (old & mine & yours) | (mine - old) | (yours - old)
    if not values:
        raise ModelConflictError(key)
    return values


_DEFINITION = frozenset({"type", "nullable", "default", ENUM_SLOT})


def _refuse_unlike_additions(key: tuple[str, ...], base: ModelSchema, ours: ModelSchema, theirs: ModelSchema) -> None:
    """Raise if both sides added a type or a property and its definitions differ."""
    mine, yours = ours.slots.get(key), theirs.slots.get(key)
    type_key = ("type", key[1])
    both_have_type = all(type_key in schema.slots for schema in (ours, theirs))
    if both_have_type and type_key not in base.slots:
        if key[0] == "type slot" and key[-1] in ("key", "cardinality", "source", "target") and mine != yours:
            raise ModelConflictError(key)
        if key[0] == "property" and mine != yours and ours.slots[type_key] != "interface":
            owner = ours if mine is not None else theirs
            if (
                not owner.of_property(key[1], key[2], "nullable")
                and owner.of_property(key[1], key[2], "default") is None
            ):
                raise ModelConflictError(key)
    if key[0] == "property slot" and key[-1] in _DEFINITION and mine != yours:
        property_key = ("property", key[1], key[2])
        if property_key not in base.slots and all(property_key in schema.slots for schema in (ours, theirs)):
            raise ModelConflictError(key)


def _refuse_contradicted_drops(base: ModelSchema, ours: ModelSchema, theirs: ModelSchema) -> None:
    for dropper, keeper in ((ours, theirs), (theirs, ours)):
        for key in base.slots:
            if key[0] not in ("type", "property") or key in dropper.slots or key not in keeper.slots:
                continue
            if key[0] == "property" and ("type", key[1]) not in dropper.slots:
                continue
            if _own_slots(key, keeper) != _own_slots(key, base) or _added_constraints(key, base, keeper):
                raise ModelConflictError(key)


def _own_slots(key: tuple[str, ...], schema: ModelSchema) -> Slots:
    if key[0] == "type":
        return {other: value for other, value in schema.slots.items() if other[1] == key[1]}
    return {other: value for other, value in schema.slots.items() if other[:3] == ("property slot", *key[1:3])}


def _added_constraints(key: tuple[str, ...], base: ModelSchema, keeper: ModelSchema) -> bool:
    if key[0] == "type":
        return False
    return any(
        key[2] in columns and base.slots.get(constraint) != keeper.slots[constraint]
        for constraint, columns in keeper.constraints(key[1])
    )


def _owner_exists(key: tuple[str, ...], merged: Slots) -> bool:
    if ("type", key[1]) not in merged:
        return False
    return key[0] != "property slot" or ("property", *key[1:3]) in merged


def _refuse_broken_schema(schema: ModelSchema) -> None:
    names: list[object] = []
    for type_id in schema.types():
        kind = schema.slots["type", type_id]
        names.append((kind, schema.of_type(type_id, "name")))
        references = [schema.of_type(type_id, part) for part in ("source", "target", "implements")]
        if any(number is not None and ("type", number) not in schema.slots for number in references):
            raise ModelConflictError(type_id)
        columns = schema.columns(type_id)
        names += [(type_id, name) for name in columns.values()]
        if any(set(numbers) - columns.keys() for _, numbers in schema.constraints(type_id)):
            raise ModelConflictError(type_id)
    if len(names) != len(set(names)):
        raise ModelConflictError("names")
