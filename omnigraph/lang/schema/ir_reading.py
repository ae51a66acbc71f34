"""Reads the stored record of an accepted schema, trusting nothing in it.

A record that is damaged, edited by hand or out of canonical order raises an `IdentityError` that
names the position. References are read by name; the last step serialises the schema again and
compares, so that every id in every reference is checked too. Soundness rules are in `ir_soundness`.
"""

from typing import Any, NoReturn

from omnigraph.errors import IdentityError
from omnigraph.record import record
from omnigraph.values import PropertyType, ScalarType

from .catalog import (
    Catalog,
    Check,
    Constraint,
    Edge,
    Embed,
    Index,
    Interface,
    Key,
    Node,
    Note,
    Property,
    Range,
    TypeKind,
    Unique,
)
from .ir import IR_VERSION, KINDS, SchemaIR, TypeIdentity
from .ir_soundness import unsound
from .shape import canonical, compact, default_literal


@record
class _At:
    """A value of the record and its JSON path."""

    value: Any
    path: str = ""

    def fail(self, reason: str) -> NoReturn:
        place = f"{self.path}: " if self.path else ""
        raise IdentityError(f"schema identity record: {place}{reason}")

    def member(self, name: str) -> "_At":
        if not isinstance(self.value, dict):
            self.fail("expected an object")
        if name not in self.value:
            self.fail(f"member '{name}' is missing")
        return _At(self.value[name], f"{self.path}.{name}" if self.path else name)

    def has(self, name: str) -> bool:
        return isinstance(self.value, dict) and name in self.value

    def items(self) -> list["_At"]:
        if not isinstance(self.value, list):
            self.fail("expected a list")
        return [_At(one, f"{self.path}[{at}]") for at, one in enumerate(self.value)]

    def pairs(self) -> tuple[tuple[str, str], ...]:
        if not isinstance(self.value, dict):
            self.fail("expected an object")
        return tuple((str(name), self.member(name).text()) for name in self.value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("expected a string")
        return self.value

    def text_or_none(self) -> str | None:
        return None if self.value is None else self.text()

    def number(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.fail("expected a whole number")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.fail("expected true or false")
        return self.value


def read_ir(record: Any) -> SchemaIR:
    """Return the schema of a record; raise `IdentityError` at its first unsound position."""
    top = _At(record)
    version = top.member("ir_version")
    if version.number() != IR_VERSION:
        version.fail(f"unsupported version {version.value}; expected {IR_VERSION}")
    catalog = _catalog(top)
    ir = SchemaIR(
        top.member("schema_identity_domain").text(),
        top.member("next_identity_id").number(),
        canonical(catalog),
        tuple(_identity(kind, one) for kind in KINDS for one in _types(top, kind)),
    )
    reason = unsound(ir)
    if reason is not None:
        top.fail(reason)
    _same(record, ir.to_json(), top)
    return ir


def _same(given: Any, expected: Any, at: _At) -> None:
    """Fail at the first position where the record differs from its own re-serialised content."""
    if type(given) is not type(expected):
        at.fail(f"got {compact(given)}, expected {compact(expected)}")
    if isinstance(given, dict):
        if list(given) != list(expected):
            at.fail(f"got members {', '.join(given)}, expected {', '.join(expected)}")
        for name in given:
            _same(given[name], expected[name], at.member(name))
    elif isinstance(given, list):
        if len(given) != len(expected):
            at.fail(f"got {len(given)} entries, expected {len(expected)}")
        for one, other in zip(at.items(), expected, strict=True):
            _same(one.value, other, one)
    elif given != expected:
        at.fail(f"got {compact(given)}, expected {compact(expected)}")


def _types(top: _At, kind: TypeKind) -> list[_At]:
    return top.member(f"{kind}s").items()


def _identity(kind: TypeKind, at: _At) -> TypeIdentity:
    table = None if kind == "interface" else at.member("table_incarnation_id").number()
    properties = tuple(
        (one.member("name").text(), one.member("property_id").number())
        for one in at.member("properties").items()
    )
    name, number = at.member("name").text(), at.member("type_id").number()
    return TypeIdentity(kind, name, number, table, tuple(sorted(properties)))


def _catalog(top: _At) -> Catalog:
    return Catalog(
        tuple(_interface(one) for one in _types(top, "interface")),
        tuple(_node(one) for one in _types(top, "node")),
        tuple(_edge(one) for one in _types(top, "edge")),
    )


def _interface(at: _At) -> Interface:
    return Interface(at.member("name").text(), _properties(at))


def _node(at: _At) -> Node:
    implements = at.member("implements").items()
    return Node(
        at.member("name").text(),
        _properties(at),
        _constraints(at),
        tuple(one.member("name").text() for one in implements),
        _notes(at),
    )


def _edge(at: _At) -> Edge:
    high = at.member("cardinality").member("max")
    return Edge(
        at.member("name").text(),
        at.member("from_type").member("name").text(),
        at.member("to_type").member("name").text(),
        _properties(at),
        _constraints(at),
        at.member("cardinality").member("min").number(),
        None if high.value is None else high.number(),
        _notes(at),
    )


def _notes(at: _At) -> tuple[Note, ...]:
    return tuple(_note(one) for one in at.member("annotations").items())


def _note(at: _At) -> Note:
    options = at.member("kwargs").pairs() if at.has("kwargs") else ()
    return Note(at.member("name").text(), at.member("value").text_or_none(), options)


def _properties(at: _At) -> tuple[Property, ...]:
    return tuple(_property(one) for one in at.member("properties").items())


def _property(at: _At) -> Property:
    kind = _property_type(at.member("type"))
    notes = _notes(at)
    default = next((n.value for n in notes if n.name == "default" and n.value is not None), None)
    satisfies = [
        (
            one.member("interface").member("name").text(),
            one.member("property").member("name").text(),
        )
        for one in at.member("satisfies").items()
    ]
    return Property(
        at.member("name").text(),
        kind,
        notes if default is None else tuple(n for n in notes if n.name != "default"),
        tuple(one.text() for one in at.member("constraints").items()),
        _embed(at.member("embed")),
        None if default is None else default_literal(kind, default),
        at.member("declared_directly").flag(),
        tuple(satisfies),
    )


def _embed(at: _At) -> Embed | None:
    if at.value is None:
        return None
    return Embed(at.member("source").member("name").text(), at.member("model").text_or_none())


def _property_type(at: _At) -> PropertyType:
    scalar, values = at.member("scalar"), at.member("enum_values")
    is_vector = isinstance(scalar.value, dict)
    name = "Vector" if is_vector else scalar.text()
    known_scalars = {scalar_type.value for scalar_type in ScalarType}
    if name not in known_scalars or (name == "Vector") != is_vector:
        scalar.fail(f"unknown type {compact(scalar.value)}")
    return PropertyType(
        ScalarType(name),
        at.member("nullable").flag(),
        at.member("list").flag(),
        None if values.value is None else tuple(one.text() for one in values.items()),
        scalar.member("Vector").number() if is_vector else None,
    )


def _constraints(at: _At) -> tuple[Constraint, ...]:
    return tuple(_constraint(one) for one in at.member("constraints").items())


def _constraint(at: _At) -> Constraint:
    kind = at.member("kind").text()
    if kind not in {"key", "unique", "index", "range", "check"}:
        at.member("kind").fail(f"unknown constraint '{kind}'")
    if kind in {"range", "check"}:
        field = at.member("field").member("name").text()
        if kind == "check":
            return Check(field, at.member("pattern").text())
        return Range(field, _bound(at.member("min")), _bound(at.member("max")))
    columns = tuple(one.member("name").text() for one in at.member("fields").items())
    if kind == "index":
        return Index(columns, at.member("options").pairs() if at.has("options") else ())
    return Key(columns) if kind == "key" else Unique(columns)


def _bound(at: _At) -> int | float | None:
    if at.value is None:
        return None
    if at.has("Integer"):
        return at.member("Integer").number()
    decimal = at.member("Float")
    if not isinstance(decimal.value, float):
        decimal.fail("expected a decimal number")
    return decimal.value
