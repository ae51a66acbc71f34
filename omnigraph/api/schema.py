"""`Schema`: a checked schema as an immutable object that does not need a graph.

This module defines the public class and the forms in which callers can pass a schema. `graph.schema` is in
`graph_schema`. Arrow is imported only by the methods that need it.
"""

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from omnigraph.api.type_info import EdgeTypeInfo, NodeTypeInfo, describe_edge_types, describe_node_types
from omnigraph.errors import InputError, UsageError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.lang.schema.canonical_shape import shape_hash
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.declared_order import DeclaredOrder, read_declared_order
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.lang.schema.type_names import resolve_type, type_names

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.lang.schema.migrate import MigrationPlan

DiagramFormat = Literal["mermaid", "svg"]
_SHOWN_TYPES = 10  # maximum number of types shown in a schema's repr


class HasSchema(Protocol):
    """An object with a schema, such as `graph.schema`."""

    @property
    def current(self) -> "Schema":
        """The schema."""
        ...


class Schema:
    """A checked schema. Schemas with the same meaning are equal, regardless of layout, order and comments.

    `schema` is `.pg` text, the path to a `.pg` file, or another schema. Every function that accepts a schema also
    accepts a `Schema` object. An invalid schema raises a single language error, which lists every mistake.

    >>> schema = Schema("node Person { name: String @key  age: I32? } edge Knows: Person -> Person")
    >>> schema
    <Schema of Person, Knows; .source is its text>
    >>> [str(declared) for declared in schema["Person"].properties.values()]
    ['name: String', 'age: I32?']
    >>> schema.edges["Knows"].target_type
    'Person'
    >>> schema == Schema("edge Knows: Person -> Person  node Person { age: I32?  name: String @key }")
    True
    """

    __slots__ = ("_base", "_catalog", "_name", "_order", "_source")

    def __init__(self, schema: "SchemaText") -> None:
        from omnigraph.lang.schema import compile_schema

        text, name = read_schema_text(schema)
        self._set(text, name, compile_schema(text, name))

    @classmethod
    def parse(cls, text: str, name: str = "<schema>") -> "Schema":
        """Parse a schema from `text`, which is never treated as a path. `name` is used in error messages.

        >>> Schema.parse("node Lamp {}").node_types
        ('Lamp',)
        """
        return cls(SourceText(name, text))

    @classmethod
    def from_classes(cls, *classes: type) -> "Schema":
        """Return a schema with one type per dataclass or pydantic model.

        Each field becomes a property. A `str` becomes a String, an `int` an I64, a `float` an F64, `bytes` a Blob, a
        `list[T]` a list, and an Enum or a Literal of strings an enum. `T | None` makes the property nullable.
        `Annotated[str, omnigraph.key]` marks the key. Other schema annotations are written as text, as in
        `Annotated[str, "@unique"]`, and `Annotated[int, "I32"]` specifies the type. A class with two fields that refer
        to other classes becomes an edge type from the first class to the second. A field of type `Annotated[str,
        Person]` refers to a `Person` node by its id. Raises `UsageError` for a class or type that a schema cannot
        express.

        >>> from dataclasses import dataclass
        >>> from typing import Annotated
        >>> import omnigraph
        >>> @dataclass
        ... class Person:
        ...     name: Annotated[str, omnigraph.key]
        ...     age: int | None = None
        >>> @dataclass
        ... class Knows:
        ...     src: Annotated[str, Person]
        ...     dst: Annotated[str, Person]
        >>> print(Schema.from_classes(Person, Knows))
        node Person {
            name: String @key
            age: I64?
        }
        <BLANKLINE>
        edge Knows: Person -> Person
        <BLANKLINE>
        """
        from omnigraph.lang.schema.propose.from_classes import propose_classes

        return cls.parse(propose_classes(classes), "<classes>")

    @classmethod
    def infer(cls, data: Any, *, sample_rows: int = 100_000) -> "Schema":
        """Propose a schema for data. Comments in `.source` explain what was guessed and why.

        `data` maps type names to Arrow tables, pandas or polars frames, lists of dicts, or paths to CSV, NDJSON or
        Parquet files. It can also be a path or a list of paths, in which case types are named after the files. A unique
        column becomes the key. A table with the columns `from` and `to`, or `src` and `dst`, becomes an edge type if
        the values in these columns are keys in other types. At most `sample_rows` rows are read per type. Raises
        `InputError` if the data cannot be read.

        >>> people = [{"name": "ada", "age": 36}, {"name": "bob", "age": None}]
        >>> print(Schema.infer({"Person": people, "Knows": [{"from": "ada", "to": "bob"}]}))
        node Person {
            name: String @key // unique in 2 rows
            age: I64?
        }
        <BLANKLINE>
        // from: all values are Person keys; to: all values are Person keys
        // each pair of nodes occurs once, so the pair is the key
        edge Knows: Person -> Person {
            @key(src, dst)
        }
        <BLANKLINE>
        """
        from omnigraph.ingest.infer.propose import propose_schema_text

        return cls.parse(propose_schema_text(data, sample_rows), "<inferred>")

    @classmethod
    def _from_stored(cls, source: str, ir: SchemaIR) -> "Schema":
        """Return a graph's schema, in which types and properties have permanent ids."""
        schema = cls.__new__(cls)
        schema._set(source, "<schema>", ir.catalog, ir)
        return schema

    def _set(self, source: str, name: str, catalog: Catalog, base: SchemaIR | None = None) -> None:
        self._source, self._name, self._catalog, self._base = source, name, catalog, base
        self._order: DeclaredOrder | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._base is None:
            return Schema.parse, (self._source, self._name)
        return Schema._from_stored, (self._source, self._base)

    @property
    def source(self) -> str:
        """The `.pg` text, exactly as written."""
        return self._source

    @property
    def name(self) -> str:
        """The file that the schema was read from, or a placeholder such as `<schema>`, for use in messages."""
        return self._name

    @property
    def catalog(self) -> Catalog:
        """The compiled schema, as the engine uses it."""
        return self._catalog

    @property
    def shape_hash(self) -> str:
        """A hash that is the same for schemas with the same meaning. `omnigraph schema check --json` prints it."""
        return shape_hash(self._catalog)

    @property
    def types(self) -> Mapping[str, NodeTypeInfo]:
        """The node types, keyed by name, in the order of their declarations."""
        return MappingProxyType(describe_node_types(self._catalog, self._declared_order()))

    @property
    def edges(self) -> Mapping[str, EdgeTypeInfo]:
        """The edge types, keyed by name, in the order of their declarations."""
        return MappingProxyType(describe_edge_types(self._catalog, self._declared_order()))

    @property
    def node_types(self) -> tuple[str, ...]:
        """The names of the node types, sorted."""
        return tuple(node.name for node in self._catalog.nodes)

    @property
    def edge_types(self) -> tuple[str, ...]:
        """The names of the edge types, sorted."""
        return tuple(edge.name for edge in self._catalog.edges)

    def _declared_order(self) -> DeclaredOrder:
        if self._order is None:
            self._order = read_declared_order(self._source)
        return self._order

    def __getitem__(self, type_name: str) -> NodeTypeInfo | EdgeTypeInfo:
        """Return a type by name. Node types take precedence over edge types. Raises `KeyError` for unknown names."""
        info = self.types.get(type_name) or self.edges.get(type_name)
        if info is None:
            hint = did_you_mean(str(type_name), type_names(self._catalog))
            raise KeyError(f"the schema has no type {type_name!r}" + (f"; {hint}" if hint else ""))
        return info

    def __contains__(self, type_name: object) -> bool:
        return type_name in self.node_types or type_name in self.edge_types

    def __iter__(self) -> Iterator[str]:
        return iter((*self.types, *self.edges))

    def __len__(self) -> int:
        return len(self.node_types) + len(self.edge_types)

    def __bool__(self) -> bool:
        return True

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def to_arrow(self, type_name: str) -> "pa.Schema":
        """Return the Arrow schema for a type's rows, as `graph.nodes` and `graph.edges` return them.

        The columns are `id`, then `from` and `to` for an edge type, then the properties in name order. A Blob property,
        which queries do not return, is `large_binary`. Raises `InputError` for an unknown type.

        >>> Schema("node Person { name: String @key  born: Date? }").to_arrow("Person")
        id: string not null
        born: date32[day]
        name: string not null
        """
        from omnigraph.ingest.entity_schema import entity_schema

        return entity_schema(resolve_type(self._catalog, type_name))

    def diff(self, other: "SchemaText", *, allow_data_loss: bool = False) -> "MigrationPlan":
        """Return the migration plan from this schema to another one, without reading data.

        If `allow_data_loss` is true, planned drops also delete the history of the dropped data.

        >>> plan = Schema("node Person { age: I32 }").diff("node Person { age: I64 }")
        >>> print(plan)
        widen node:Person.age from I32 to I64
        >>> plan.supported, plan.steps[0].tier
        (True, 'safe')
        """
        from omnigraph.lang.schema.migrate import plan_migration

        desired = other if isinstance(other, Schema) else Schema(other)
        before = self._base or self._catalog
        return plan_migration(before, desired._catalog, allow_data_loss=allow_data_loss, source_name=desired._name)

    def diagram(self, format: DiagramFormat = "mermaid") -> str:
        """Return a diagram of the node and edge types, as Mermaid text or as an SVG image.

        >>> print(Schema("node Person { name: String @key } edge Knows: Person -> Person").diagram())
        classDiagram
            direction LR
            class Person {
                name: String @key
            }
            Person --> Person : Knows
        """
        from omnigraph.lang.schema.diagram import draw_mermaid, draw_svg

        drawings = {"mermaid": draw_mermaid, "svg": draw_svg}
        if format not in drawings:
            raise UsageError(reason=f"unknown diagram format {format!r}; expected 'mermaid' or 'svg'")
        return drawings[format](self._catalog, self._declared_order())

    def __eq__(self, other: object) -> bool:
        return self.shape_hash == other.shape_hash if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.shape_hash)

    def __str__(self) -> str:
        return self._source

    def __repr__(self) -> str:
        names = [*self.node_types, *self.edge_types]
        shown_names = ", ".join(names[:_SHOWN_TYPES] + ["…"] * (len(names) > _SHOWN_TYPES))
        return f"<Schema of {shown_names or 'no types'}; .source is its text>"

    def _repr_html_(self) -> str:
        from omnigraph.api.schema_card import schema_card

        return schema_card(self)


SchemaText = str | PathLike[str] | SourceText | Schema | HasSchema


def read_schema_text(schema: SchemaText) -> tuple[str, str]:
    """Return a schema's text and name. A string is always treated as text; a file must be passed as a `Path`.

    >>> read_schema_text("node Lamp {}")
    ('node Lamp {}', '<schema>')
    """
    schema = getattr(schema, "current", schema)
    if isinstance(schema, Schema):
        return schema.source, schema.name
    if isinstance(schema, SourceText):
        return schema.text, schema.name
    if isinstance(schema, str):
        if schema.endswith(".pg") and not any(character in schema for character in "\n{"):
            hint = "to use a schema from a file, pass the file as a pathlib.Path"
            raise InputError(f"'{schema}' is not a schema", reason="no schema", hint=hint)
        return schema, "<schema>"
    try:
        path = Path(schema)  # type: ignore[arg-type]
    except TypeError as error:
        kind = type(schema).__name__
        raise UsageError(reason=f"a schema must be a string, a path, a Schema or a plan, not {kind}") from error
    from omnigraph.lang.parsing import decode_source

    try:
        return decode_source(path.read_bytes(), str(path)).text, str(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", reason="unreadable") from error
