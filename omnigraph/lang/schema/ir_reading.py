"""Read an accepted schema from its stored record, without trusting the record's content.

If the record is damaged, edited by hand or not in canonical order, reading raises an `IdentityError` that states the
position. References to types and properties are resolved by name. Finally, the schema is serialized again and compared
with the record, which also checks the ids in all references. The validity rules are in `ir_soundness`.
"""

from typing import Any, NoReturn

from omnigraph.errors import IdentityError
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

from .canonical_shape import canonicalize, compact_json, default_literal
from .catalog import (
    Catalog,
    Check,
    Constraint,
    EdgeType,
    EmbeddingDefinition,
    Index,
    InterfaceType,
    Key,
    NodeType,
    PropertyDefinition,
    Range,
    StoredAnnotation,
    TypeKind,
    Unique,
)
from .ir import IR_VERSION, TYPE_KINDS, SchemaIR, TypeIdentity
from .ir_soundness import find_unsoundness


@record
class _RecordNode:
    """A value in the record, with its JSON path."""

    value: Any
    json_path: str = ""

    def reject(self, reason: str) -> NoReturn:
        path_prefix = f"{self.json_path}: " if self.json_path else ""
        raise IdentityError(f"schema identity record: {path_prefix}{reason}")

    def member(self, member_name: str) -> "_RecordNode":
        if not isinstance(self.value, dict):
            self.reject("expected an object")
        if member_name not in self.value:
            self.reject(f"member '{member_name}' is missing")
        return _RecordNode(
            self.value[member_name], f"{self.json_path}.{member_name}" if self.json_path else member_name
        )

    def has_member(self, member_name: str) -> bool:
        return isinstance(self.value, dict) and member_name in self.value

    def as_items(self) -> list["_RecordNode"]:
        if not isinstance(self.value, list):
            self.reject("expected a list")
        return [_RecordNode(item, f"{self.json_path}[{index}]") for index, item in enumerate(self.value)]

    def as_text_pairs(self) -> tuple[tuple[str, str], ...]:
        if not isinstance(self.value, dict):
            self.reject("expected an object")
        return tuple((str(member_name), self.member(member_name).as_text()) for member_name in self.value)

    def as_text(self) -> str:
        if not isinstance(self.value, str):
            self.reject("expected a string")
        return self.value

    def as_text_or_none(self) -> str | None:
        return None if self.value is None else self.as_text()

    def as_integer(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.reject("expected a whole number")
        return self.value

    def as_boolean(self) -> bool:
        if not isinstance(self.value, bool):
            self.reject("expected true or false")
        return self.value


def read_ir(ir_json: Any) -> SchemaIR:
    """Return the schema stored in a record, or raise `IdentityError` for the first invalid position."""
    root_node = _RecordNode(ir_json)
    version_node = root_node.member("ir_version")
    if version_node.as_integer() != IR_VERSION:
        version_node.reject(f"unsupported version {version_node.value}; expected {IR_VERSION}")
    catalog = _read_catalog(root_node)
    ir = SchemaIR(
        root_node.member("schema_identity_domain").as_text(),
        root_node.member("next_identity_id").as_integer(),
        canonicalize(catalog),
        tuple(
            _read_identity(type_kind, type_node)
            for type_kind in TYPE_KINDS
            for type_node in _type_nodes(root_node, type_kind)
        ),
    )
    reason = find_unsoundness(ir)
    if reason is not None:
        root_node.reject(reason)
    _require_same_content(ir_json, ir.to_json(), root_node)
    return ir


def _require_same_content(stored: Any, expected: Any, record_node: _RecordNode) -> None:
    """Raise an error for the first position where the record differs from its re-serialized content."""
    if type(stored) is not type(expected):
        record_node.reject(f"got {compact_json(stored)}, expected {compact_json(expected)}")
    if isinstance(stored, dict):
        if list(stored) != list(expected):
            record_node.reject(f"got members {', '.join(stored)}; expected {', '.join(expected)}")
        for member_name in stored:
            _require_same_content(stored[member_name], expected[member_name], record_node.member(member_name))
    elif isinstance(stored, list):
        if len(stored) != len(expected):
            record_node.reject(f"got {len(stored)} entries, expected {len(expected)}")
        for item_node, expected_item in zip(record_node.as_items(), expected, strict=True):
            _require_same_content(item_node.value, expected_item, item_node)
    elif stored != expected:
        record_node.reject(f"got {compact_json(stored)}, expected {compact_json(expected)}")


def _type_nodes(root_node: _RecordNode, type_kind: TypeKind) -> list[_RecordNode]:
    return root_node.member(f"{type_kind}s").as_items()


def _read_identity(type_kind: TypeKind, type_node: _RecordNode) -> TypeIdentity:
    table_incarnation_id = None if type_kind == "interface" else type_node.member("table_incarnation_id").as_integer()
    property_ids = tuple(
        (property_node.member("name").as_text(), property_node.member("property_id").as_integer())
        for property_node in type_node.member("properties").as_items()
    )
    type_name = type_node.member("name").as_text()
    type_id = type_node.member("type_id").as_integer()
    return TypeIdentity(type_kind, type_name, type_id, table_incarnation_id, tuple(sorted(property_ids)))


def _read_catalog(root_node: _RecordNode) -> Catalog:
    return Catalog(
        tuple(_read_interface(type_node) for type_node in _type_nodes(root_node, "interface")),
        tuple(_read_node_type(type_node) for type_node in _type_nodes(root_node, "node")),
        tuple(_read_edge_type(type_node) for type_node in _type_nodes(root_node, "edge")),
    )


def _read_interface(type_node: _RecordNode) -> InterfaceType:
    return InterfaceType(type_node.member("name").as_text(), _read_properties(type_node))


def _read_node_type(type_node: _RecordNode) -> NodeType:
    interface_nodes = type_node.member("implements").as_items()
    return NodeType(
        type_node.member("name").as_text(),
        _read_properties(type_node),
        _read_constraints(type_node),
        tuple(interface_node.member("name").as_text() for interface_node in interface_nodes),
        _read_annotations(type_node),
    )


def _read_edge_type(type_node: _RecordNode) -> EdgeType:
    max_node = type_node.member("cardinality").member("max")
    return EdgeType(
        type_node.member("name").as_text(),
        type_node.member("from_type").member("name").as_text(),
        type_node.member("to_type").member("name").as_text(),
        _read_properties(type_node),
        _read_constraints(type_node),
        type_node.member("cardinality").member("min").as_integer(),
        None if max_node.value is None else max_node.as_integer(),
        _read_annotations(type_node),
    )


def _read_annotations(owner_node: _RecordNode) -> tuple[StoredAnnotation, ...]:
    return tuple(_read_annotation(annotation_node) for annotation_node in owner_node.member("annotations").as_items())


def _read_annotation(annotation_node: _RecordNode) -> StoredAnnotation:
    options = annotation_node.member("kwargs").as_text_pairs() if annotation_node.has_member("kwargs") else ()
    return StoredAnnotation(
        annotation_node.member("name").as_text(), annotation_node.member("value").as_text_or_none(), options
    )


def _read_properties(type_node: _RecordNode) -> tuple[PropertyDefinition, ...]:
    return tuple(_read_property(property_node) for property_node in type_node.member("properties").as_items())


def _read_property(property_node: _RecordNode) -> PropertyDefinition:
    property_type = _read_property_type(property_node.member("type"))
    annotations = _read_annotations(property_node)
    default_text = next(
        (
            annotation.value
            for annotation in annotations
            if annotation.name == "default" and annotation.value is not None
        ),
        None,
    )
    satisfied_pairs = [
        (item_node.member("interface").member("name").as_text(), item_node.member("property").member("name").as_text())
        for item_node in property_node.member("satisfies").as_items()
    ]
    return PropertyDefinition(
        property_node.member("name").as_text(),
        property_type,
        annotations
        if default_text is None
        else tuple(annotation for annotation in annotations if annotation.name != "default"),
        tuple(item_node.as_text() for item_node in property_node.member("constraints").as_items()),
        _read_embedding(property_node.member("embed")),
        None if default_text is None else default_literal(property_type, default_text),
        property_node.member("declared_directly").as_boolean(),
        tuple(satisfied_pairs),
    )


def _read_embedding(embed_node: _RecordNode) -> EmbeddingDefinition | None:
    if embed_node.value is None:
        return None
    return EmbeddingDefinition(
        embed_node.member("source").member("name").as_text(), embed_node.member("model").as_text_or_none()
    )


def _read_property_type(type_node: _RecordNode) -> PropertyType:
    scalar_node, values_node = type_node.member("scalar"), type_node.member("enum_values")
    is_vector = isinstance(scalar_node.value, dict)
    scalar_name = "Vector" if is_vector else scalar_node.as_text()
    known_scalars = {scalar_type.value for scalar_type in ScalarType}
    if scalar_name not in known_scalars or (scalar_name == "Vector") != is_vector:
        scalar_node.reject(f"unknown type {compact_json(scalar_node.value)}")
    return PropertyType(
        ScalarType(scalar_name),
        type_node.member("nullable").as_boolean(),
        type_node.member("list").as_boolean(),
        None if values_node.value is None else tuple(item.as_text() for item in values_node.as_items()),
        scalar_node.member("Vector").as_integer() if is_vector else None,
    )


def _read_constraints(type_node: _RecordNode) -> tuple[Constraint, ...]:
    return tuple(_read_constraint(constraint_node) for constraint_node in type_node.member("constraints").as_items())


def _read_constraint(constraint_node: _RecordNode) -> Constraint:
    constraint_kind = constraint_node.member("kind").as_text()
    if constraint_kind not in {"key", "unique", "index", "range", "check"}:
        constraint_node.member("kind").reject(f"unknown constraint '{constraint_kind}'")
    if constraint_kind in {"range", "check"}:
        column_name = constraint_node.member("field").member("name").as_text()
        if constraint_kind == "check":
            return Check(column_name, constraint_node.member("pattern").as_text())
        return Range(
            column_name, _read_bound(constraint_node.member("min")), _read_bound(constraint_node.member("max"))
        )
    columns = tuple(field_node.member("name").as_text() for field_node in constraint_node.member("fields").as_items())
    if constraint_kind == "index":
        return Index(
            columns, constraint_node.member("options").as_text_pairs() if constraint_node.has_member("options") else ()
        )
    return Key(columns) if constraint_kind == "key" else Unique(columns)


def _read_bound(bound_node: _RecordNode) -> int | float | None:
    if bound_node.value is None:
        return None
    if bound_node.has_member("Integer"):
        return bound_node.member("Integer").as_integer()
    decimal_node = bound_node.member("Float")
    if not isinstance(decimal_node.value, float):
        decimal_node.reject("expected a decimal number")
    return decimal_node.value
