"""Describes migration steps for people, one line each."""

from omnigraph.lang.schema.catalog import Check, Constraint, Range
from omnigraph.lang.schema.shape import compact
from omnigraph.values import PropertyType, ScalarType

from .steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    ChangeDefault,
    ChangeEndpoints,
    ChangeIndexOptions,
    DropConstraint,
    DropProperty,
    DropType,
    ExtendEnum,
    NarrowEnum,
    PropertyStep,
    RelaxProperty,
    RenameProperty,
    RenameType,
    RestateConstraint,
    Step,
    TightenProperty,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
)


def describe_step(step: Step) -> str:
    """Return one line about a step: what changes, what it risks, its code.

    >>> describe_step(RenameType(type_kind="node", old="Lamp", new="Light"))
    'rename node type Lamp to Light'
    """
    risk = " (existing data is checked first)" if step.tier == "validated" else ""
    code = f" [{step.code}]" if step.code else ""
    if isinstance(step, UnsupportedChange):
        return f"not supported: {step.entity}: {step.reason}{code}"
    return f"{_type_line(step) or _property_line(step) or _constraint_line(step)}{risk}{code}"


def _type_line(step: Step) -> str:
    match step:
        case AddType(type_kind=kind, name=name):
            return f"add {kind}{_type(kind)} {name}"
        case RenameType(type_kind=kind, old=old, new=new):
            return f"rename {kind}{_type(kind)} {old} to {new}"
        case DropType(type_kind=kind, name=name, mode=mode):
            return f"drop {kind}{_type(kind)} {name}{_mode(kind, mode)}"
        case UpdateTypeMetadata(type_kind=kind, name=name):
            return f"update the annotations of {kind}{_type(kind)} {name}"
        case ChangeCardinality() | ChangeEndpoints():
            return _edge_line(step)
    return ""


def _edge_line(step: ChangeCardinality | ChangeEndpoints) -> str:
    name, was, now = step.type_name, step.old.display(), step.new.display()
    if isinstance(step, ChangeEndpoints):
        return f"change endpoints of edge type {name} from {was} to {now}"
    return f"change @card of edge type {name} from {was} to {now}"


def _type(kind: str) -> str:
    return "" if kind == "interface" else " type"


def _mode(kind: str, mode: str) -> str:
    if kind == "interface":
        return ""  # an interface stores no data
    return " and its history" if mode == "hard" else " (earlier versions stay readable)"


def _property_line(step: Step) -> str:
    if isinstance(step, RenameProperty):
        return f"rename {step.type_kind}:{step.type_name}.{step.old} to {step.new}"
    if not isinstance(step, PropertyStep):
        return ""
    return _change(step, f"{step.type_kind}:{step.type_name}.{step.property_name}")


def _change(step: PropertyStep, entity: str) -> str:
    match step:
        case AddProperty(property_type=kind, default=default):
            filled = "" if default is None else f", {_filled(kind, default)} in existing entities"
            return f"add property {entity}: {kind.display()}{filled}"
        case DropProperty(mode=mode):
            return f"drop property {entity}{_mode(step.type_kind, mode)}"
        case ChangeDefault(old=was, new=now):
            return f"change the default of {entity} from {_value(was)} to {_value(now)}"
        case RestateConstraint(on_property=on_property):
            place = "on the property" if on_property else "in the body"
            return f"declare {_constraint(step.constraint)} of {entity} {place}"
        case UpdatePropertyMetadata():
            return f"update the annotations of {entity}"
    return _type_change(step, entity)


def _filled(kind: PropertyType, default: str) -> str:
    """Return the default as spelled in a schema: only text is quoted."""
    plain = kind.is_numeric or kind.scalar is ScalarType.BOOL or kind.is_enum
    return default if plain else compact(default)


def _value(default: str | None) -> str:
    return "none" if default is None else compact(default)


def _type_change(step: PropertyStep, entity: str) -> str:
    match step:
        case WidenProperty(old=was, new=now):
            return f"widen {entity} from {was.display()} to {now.display()}"
        case RelaxProperty():
            return f"make {entity} nullable"
        case TightenProperty():
            return f"make {entity} required"
        case ExtendEnum(added_values=values):
            return f"add {', '.join(values)} to the enum {entity}"
        case NarrowEnum(removed_values=values):
            return f"remove {', '.join(values)} from the enum {entity}"
    raise TypeError(f"no description for step kind {step.kind!r}")


def _constraint_line(step: Step) -> str:
    match step:
        case AddConstraint(type_kind=kind, type_name=name, constraint=one):
            return f"add {_constraint(one)} to {kind}:{name}"
        case DropConstraint(type_kind=kind, type_name=name, constraint=one):
            return f"drop {_constraint(one)} from {kind}:{name}"
        case ChangeIndexOptions(type_kind=kind, type_name=name, old=was, new=now):
            return f"change {_constraint(was)} of {kind}:{name} to {_constraint(now)}"
    raise TypeError(f"no description for step kind {step.kind!r}")


def _constraint(one: Constraint) -> str:
    """Return the constraint as written in a schema file: `@range(year, 1600..)`."""
    word = type(one).__name__.lower()
    match one:
        case Range(column, low, high):
            low_text, high_text = ("" if b is None else str(b) for b in (low, high))
            return f"@range({column}, {low_text}..{high_text})"
        case Check(column, pattern):
            return f"@check({column}, {compact(pattern)})"
    options = [f"{name}={compact(value)}" for name, value in getattr(one, "options", ())]
    return f"@{word}({', '.join((*one.columns, *options))})"
