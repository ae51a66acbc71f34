"""Describe migration steps for people, one line per step."""

from omnigraph.lang.schema.canonical_shape import compact_json
from omnigraph.lang.schema.catalog import Check, Constraint, Range
from omnigraph.values import PropertyType, ScalarType

from .steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    ChangeDefault,
    ChangeEndpoints,
    ChangeIndexOptions,
    ConvertProperty,
    DropConstraint,
    DropProperty,
    DropType,
    ExtendEnum,
    MigrationStep,
    NarrowEnum,
    PropertyStep,
    RelaxProperty,
    RenameProperty,
    RenameType,
    RestateConstraint,
    TightenProperty,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
)


def describe_step(step: MigrationStep) -> str:
    """Describe a step in one line, including its risk and its code.

    >>> describe_step(RenameType(type_kind="node", old="Lamp", new="Light"))
    'rename node type Lamp to Light'
    """
    validation_note = " (existing data is checked first)" if step.tier == "validated" else ""
    code_suffix = f" [{step.code}]" if step.code else ""
    if isinstance(step, UnsupportedChange):
        return f"not supported: {step.entity}: {step.reason}{code_suffix}"
    description = _describe_type_step(step) or _describe_property_step(step) or _describe_constraint_step(step)
    return f"{description}{validation_note}{code_suffix}"


def _describe_type_step(step: MigrationStep) -> str:
    match step:
        case AddType(type_kind=type_kind, name=type_name):
            return f"add {type_kind}{_type_suffix(type_kind)} {type_name}"
        case RenameType(type_kind=type_kind, old=old_name, new=new_name):
            return f"rename {type_kind}{_type_suffix(type_kind)} {old_name} to {new_name}"
        case DropType(type_kind=type_kind, name=type_name, mode=drop_mode):
            drop_suffix = _drop_suffix(type_kind, drop_mode)
            return f"drop {type_kind}{_type_suffix(type_kind)} {type_name}{drop_suffix}"
        case UpdateTypeMetadata(type_kind=type_kind, name=type_name):
            return f"update the annotations on {type_kind}{_type_suffix(type_kind)} {type_name}"
        case ChangeCardinality() | ChangeEndpoints():
            return _describe_edge_step(step)
    return ""


def _describe_edge_step(step: ChangeCardinality | ChangeEndpoints) -> str:
    edge_name, old_text, new_text = step.type_name, step.old.display(), step.new.display()
    if isinstance(step, ChangeEndpoints):
        return f"change the endpoints of edge type {edge_name} from {old_text} to {new_text}"
    return f"change the @card on edge type {edge_name} from {old_text} to {new_text}"


def _type_suffix(type_kind: str) -> str:
    return "" if type_kind == "interface" else " type"


def _drop_suffix(type_kind: str, drop_mode: str) -> str:
    if type_kind == "interface":
        return ""  # an interface stores no data
    return " and its history" if drop_mode == "hard" else " (earlier versions stay readable)"


def _describe_property_step(step: MigrationStep) -> str:
    if isinstance(step, RenameProperty):
        return f"rename {step.type_kind}:{step.type_name}.{step.old} to {step.new}"
    if not isinstance(step, PropertyStep):
        return ""
    return _describe_property_change(step, f"{step.type_kind}:{step.type_name}.{step.property_name}")


def _describe_property_change(step: PropertyStep, property_label: str) -> str:
    match step:
        case AddProperty(property_type=property_type, default=default):
            fill_note = (
                "" if default is None else f", set to {_format_fill_value(property_type, default)} in existing entities"
            )
            return f"add property {property_label}: {property_type.display()}{fill_note}"
        case DropProperty(mode=drop_mode):
            return f"drop property {property_label}{_drop_suffix(step.type_kind, drop_mode)}"
        case ChangeDefault(old=old_default, new=new_default):
            change = f"from {_format_default(old_default)} to {_format_default(new_default)}"
            return f"change the default for {property_label} {change}"
        case RestateConstraint(on_property=on_property):
            position = "on the property" if on_property else "in the body"
            return f"declare {_format_constraint(step.constraint)} for {property_label} {position}"
        case UpdatePropertyMetadata():
            return f"update the annotations on {property_label}"
    return _describe_type_change(step, property_label)


def _format_fill_value(property_type: PropertyType, default: str) -> str:
    """Return a default as it is written in a schema. Only strings are quoted."""
    is_unquoted = property_type.is_numeric or property_type.scalar is ScalarType.BOOL or property_type.is_enum
    return default if is_unquoted else compact_json(default)


def _format_default(default: str | None) -> str:
    return "none" if default is None else compact_json(default)


def _describe_type_change(step: PropertyStep, property_label: str) -> str:
    match step:
        case ConvertProperty(old=old_type, new=new_type):
            return f"convert {property_label} from {old_type.display()} to {new_type.display()}"
        case WidenProperty(old=old_type, new=new_type):
            return f"widen {property_label} from {old_type.display()} to {new_type.display()}"
        case RelaxProperty():
            return f"make {property_label} nullable"
        case TightenProperty():
            return f"make {property_label} required"
        case ExtendEnum(added_values=enum_values):
            return f"add {', '.join(enum_values)} to the enum {property_label}"
        case NarrowEnum(removed_values=enum_values):
            return f"remove {', '.join(enum_values)} from the enum {property_label}"
    raise TypeError(f"no description for step kind {step.kind!r}")


def _describe_constraint_step(step: MigrationStep) -> str:
    match step:
        case AddConstraint(type_kind=type_kind, type_name=type_name, constraint=constraint):
            return f"add {_format_constraint(constraint)} to {type_kind}:{type_name}"
        case DropConstraint(type_kind=type_kind, type_name=type_name, constraint=constraint):
            return f"drop {_format_constraint(constraint)} from {type_kind}:{type_name}"
        case ChangeIndexOptions(type_kind=type_kind, type_name=type_name, old=old_index, new=new_index):
            subject = f"{_format_constraint(old_index)} on {type_kind}:{type_name}"
            return f"change {subject} to {_format_constraint(new_index)}"
    raise TypeError(f"no description for step kind {step.kind!r}")


def _format_constraint(constraint: Constraint) -> str:
    """Return a constraint as it is written in a schema file, such as `@range(year, 1600..)`."""
    keyword = type(constraint).__name__.lower()
    match constraint:
        case Range(column, low, high):
            lower_text, upper_text = ("" if bound is None else str(bound) for bound in (low, high))
            return f"@range({column}, {lower_text}..{upper_text})"
        case Check(column, pattern):
            return f"@check({column}, {compact_json(pattern)})"
    options = [
        f"{option_name}={compact_json(option_value)}"
        for option_name, option_value in getattr(constraint, "options", ())
    ]
    return f"@{keyword}({', '.join((*constraint.columns, *options))})"
