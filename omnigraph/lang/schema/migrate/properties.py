"""Compares the properties of one type before and after.

Steps of one property have a fixed order: rename, type (widen, relax, extend, narrow, tighten),
embedding, default, inline constraints, origin, annotations. Dropped properties come last.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from omnigraph.lang.schema.catalog import Embed, Property
from omnigraph.values import PropertyType, ScalarType

from .constraints import key_columns, marked_steps, orphan_steps, restated
from .interfaces import origin_step
from .pair import Pair
from .steps import (
    AddProperty,
    ChangeDefault,
    DropProperty,
    ExtendEnum,
    NarrowEnum,
    RelaxProperty,
    RenameProperty,
    Step,
    TightenProperty,
    UpdatePropertyMetadata,
    WidenProperty,
    rated,
    unsupported,
)
from .texts import refused_notes, texts_differ

# Number types that represent every value of another exactly.
_WIDER = {
    ScalarType.I32: (ScalarType.I64, ScalarType.F64),
    ScalarType.U32: (ScalarType.U64, ScalarType.I64, ScalarType.F64),
    ScalarType.F32: (ScalarType.F64,),
}


def property_steps(pair: Pair) -> Iterator[Step]:
    """Return the steps for all properties: remaining and new ones by name, then dropped ones."""
    marked = marked_steps(pair)
    for one in pair.new.properties:
        old = pair.survivors.get(one.name)
        if old is None:
            yield from _added(pair, one)
            yield from marked.get(one.name, ())
        else:
            yield from _changed(pair, old, one)
            yield from marked.get(one.name, ())
            yield from _origin_and_texts(pair, old, one)
    orphans = orphan_steps(pair)
    for one in pair.dropped:
        yield from orphans.get(one.name, ())
        yield _dropped(pair, one)


def _added(pair: Pair, one: Property) -> Iterator[Step]:
    default = None if one.default is None else one.default.text
    if pair.has_rows and not one.type.nullable and default is None:
        reason = f"required {one.type.display()} has no value for existing entities"
        advice = "make it nullable or give it a @default"
        yield unsupported("OG-MF-103", pair.entity(one.name), f"{reason}; {advice}")
        return
    # Existing entities are null in a new nullable property; its default applies to new ones only.
    filled = default if pair.has_rows and not one.type.nullable else None
    yield AddProperty(**pair.at, property_name=one.name, property_type=one.type, default=filled)


def _dropped(pair: Pair, one: Property) -> Step:
    code = "OG-DS-105" if one.type.is_vector else "OG-DS-104"
    risk = rated(code if pair.has_rows else None)
    if pair.has_rows and pair.mode == "hard":
        risk["severity"] = "error"
    return DropProperty(**pair.at, property_name=one.name, mode=pair.mode, **risk)


def _changed(pair: Pair, old: Property, new: Property) -> Iterator[Step]:
    if old.name != new.name:
        yield RenameProperty(**pair.at, old=old.name, new=new.name)
    yield from _type_steps(pair, old.type, new)
    yield from _embed_step(pair, old, new)
    was, now = (one.default.text if one.default else None for one in (old, new))
    if was != now:
        yield ChangeDefault(**pair.at, property_name=new.name, old=was, new=now)
    yield from restated(pair, new.name)


def _origin_and_texts(pair: Pair, old: Property, new: Property) -> Iterator[Step]:
    yield from origin_step(pair, old, new)
    yield from refused_notes(pair.entity(new.name), old.notes, new.notes)
    if texts_differ(old.notes, new.notes):
        yield UpdatePropertyMetadata(**pair.at, property_name=new.name, annotations=new.notes)


def _type_steps(pair: Pair, old: PropertyType, one: Property) -> Iterator[Step]:
    new, name = one.type, one.name
    at = pair.at | {"property_name": name}
    if not _can_become(pair, old, one):
        reason = f"{old.display()} cannot become {new.display()}{_why(pair, old, one)}"
        yield unsupported("OG-MF-106", pair.entity(name), reason)
        return
    if old.scalar is not new.scalar:
        # Relaxing and tightening are separate steps: this one keeps the nullability.
        yield WidenProperty(**at, old=old, new=new.as_nullable(old.nullable))
    if new.nullable and not old.nullable:
        yield RelaxProperty(**at)
    was, now = old.enum_values or (), new.enum_values or ()
    if added := tuple(sorted(set(now) - set(was))):
        yield ExtendEnum(**at, added_values=added)
    if removed := tuple(sorted(set(was) - set(now))):
        yield NarrowEnum(**at, removed_values=removed, **_risk(pair, "OG-MF-110"))
    if old.nullable and not new.nullable:
        yield TightenProperty(**at, **_risk(pair, "OG-MF-104"))


def _risk(pair: Pair, code: str) -> dict[str, Any]:
    return rated(code if pair.has_rows else None)


def _can_become(pair: Pair, old: PropertyType, one: Property) -> bool:
    """Return whether the type stays the same, or widens without changing any id."""
    new = one.type
    if old.is_list != new.is_list or old.is_enum != new.is_enum:
        return False
    if old.scalar is new.scalar:
        return old.vector_dim == new.vector_dim
    return new.scalar in _WIDER.get(old.scalar, ()) and not _respells_key(pair, old, one)


def _respells_key(pair: Pair, old: PropertyType, one: Property) -> bool:
    """Return whether ids would change: a float32 key prints shorter than the equal float64."""
    return old.scalar is ScalarType.F32 and one.name in key_columns(pair)


def _why(pair: Pair, old: PropertyType, one: Property) -> str:
    if old.scalar is not one.type.scalar and _respells_key(pair, old, one):
        return " in a key: the spelling of ids would change"
    return ""


def _embed_step(pair: Pair, old: Property, new: Property) -> Iterator[Step]:
    was = _translated_embed(pair, old.embed, new.embed)
    if was == new.embed:
        return
    if was is None or new.embed is None:
        code, what = "OG-VE-103", f"@embed is {'added' if was is None else 'removed'}"
    elif was.source != new.embed.source:
        code, what = "OG-VE-101", f"@embed source '{was.source}' becomes '{new.embed.source}'"
    else:
        code, what = "OG-VE-102", f"@embed model {was.model!r} becomes {new.embed.model!r}"
    reason = f"{what}: existing vectors would have another meaning"
    yield unsupported(code, pair.entity(new.name), reason)


def _translated_embed(pair: Pair, was: Embed | None, now: Embed | None) -> Embed | None:
    if was is None:
        return None
    names = {one.name for one in (*pair.old.properties, *pair.new.properties)}
    if now is not None and not pair.has_rows and names.isdisjoint((was.source, now.source)):
        # The source of an interface's vector belongs to the nodes; those are compared separately.
        return replace(was, source=now.source)
    return replace(was, source=pair.renamed.get(was.source, was.source))
