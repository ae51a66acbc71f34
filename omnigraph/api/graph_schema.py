"""`graph.schema`: the schema at the commit that a graph reads from, and methods to change it.

`current` is the schema as an object; the other members that read the schema delegate to this object. `plan` reads no
data and changes nothing. `apply` makes one commit or has no effect.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from omnigraph.api.facet import Facet
from omnigraph.api.handle import Handle
from omnigraph.api.schema import DiagramFormat, Schema, SchemaText
from omnigraph.api.type_info import EdgeTypeInfo, NodeTypeInfo
from omnigraph.history.schemas import StoredSchema
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.ir import SchemaIR

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.evolve.proposal import SchemaApplied, SchemaPlan
    from omnigraph.lang.schema.migrate import MigrationPlan


class GraphSchema(Facet):
    """A graph's schema: its text, its types, and methods to change it.

    The text and types come from the commit that the graph was at when `graph.schema` was accessed. They do not change
    afterward.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key }") as graph:
    ...     applied = graph.schema.apply("node Person { name: String @key  age: I32? }")
    ...     graph.schema.source, graph.schema.node_types
    ('node Person { name: String @key  age: I32? }', ('Person',))
    """

    __slots__ = ("_snapshot",)

    def __init__(self, handle: Handle, snapshot: Snapshot) -> None:
        super().__init__(handle)
        self._snapshot = snapshot

    def __repr__(self) -> str:
        return repr(self.current)

    def _repr_html_(self) -> str:
        return self.current._repr_html_()

    def __eq__(self, other: object) -> bool:
        schema = other.current if isinstance(other, GraphSchema) else other
        return self.current == schema if isinstance(schema, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.current)

    @property
    def current(self) -> Schema:
        """The schema as an object that is independent of the graph."""
        return Schema._from_stored(self.contract.source, self.contract.ir)

    @property
    def contract(self) -> StoredSchema:
        """The stored schema: its text and its compiled form."""
        return self._snapshot.schema

    @property
    def source(self) -> str:
        """The `.pg` text."""
        return self.contract.source

    @property
    def ir(self) -> SchemaIR:
        """The compiled schema: the catalog of types, and the permanent ids of types and properties."""
        return self.contract.ir

    @property
    def types(self) -> Mapping[str, NodeTypeInfo]:
        """The node types, keyed by name, in the order of their declarations."""
        return self.current.types

    @property
    def edges(self) -> Mapping[str, EdgeTypeInfo]:
        """The edge types, keyed by name, in the order of their declarations."""
        return self.current.edges

    def __getitem__(self, type_name: str) -> NodeTypeInfo | EdgeTypeInfo:
        """Return a type by name, as in `graph.schema["Person"]`. Raises `KeyError` if the name is unknown."""
        return self.current[type_name]

    def __contains__(self, type_name: object) -> bool:
        return type_name in self.current

    def __iter__(self) -> Iterator[str]:
        return iter(self.current)

    def __len__(self) -> int:
        return len(self.current)

    def __bool__(self) -> bool:
        return True

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.current)

    @property
    def node_types(self) -> tuple[str, ...]:
        """The names of the node types."""
        return tuple(node.name for node in self.ir.catalog.nodes)

    @property
    def edge_types(self) -> tuple[str, ...]:
        """The names of the edge types."""
        return tuple(edge.name for edge in self.ir.catalog.edges)

    def to_arrow(self, type_name: str) -> "pa.Schema":
        """Return the Arrow schema for a type's rows; see `Schema.to_arrow`."""
        return self.current.to_arrow(type_name)

    def diff(self, other: SchemaText, *, allow_data_loss: bool = False) -> "MigrationPlan":
        """Return the migration plan from this graph's schema to another one; see `Schema.diff`.

        The plan is only for inspection. To change the graph, pass the new schema to `apply`.
        """
        return self.current.diff(other, allow_data_loss=allow_data_loss)

    def diagram(self, format: DiagramFormat = "mermaid") -> str:
        """Return a diagram of the node and edge types, as Mermaid text or as an SVG image; see `Schema.diagram`."""
        return self.current.diagram(format)

    def plan(self, new: SchemaText, *, allow_data_loss: bool = False, branch: str | None = None) -> "SchemaPlan":
        """Plan the steps from the branch's schema to a new schema, without reading data.

        `new` is `.pg` text, the path to a `.pg` file, or a `Schema`. If `allow_data_loss` is true, planned drops also
        delete the history of the dropped data. Raises a language error if the schema is invalid, and `IdentityError` if
        a rename hint cannot be applied.
        """
        from omnigraph.api.schema_apply import plan_schema_change

        return plan_schema_change(self._handle.for_branch(branch), new, allow_data_loss=allow_data_loss)

    def apply(  # noqa: PLR0913 - all but the first are keywords
        self,
        new: "SchemaText | SchemaPlan",
        *,
        allow_data_loss: bool = False,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> "SchemaApplied":
        """Change the branch's schema in one commit. Other branches keep their schemas.

        `new` is `.pg` text, a path, a `Schema`, or a plan. A plan can be applied only to the schema that it was made
        for. Steps that may conflict with existing data are checked against the data first. Dropped data stays readable
        in earlier commits, unless `allow_data_loss` is true, in which case its history is also deleted. `dry_run` only
        runs the checks. Repeating an `idempotency_key` returns the first outcome again.

        Raises `SchemaUnsupported`, `SchemaViolation`, `ReadSetConflict`, `VersionConflict`,
        `PreconditionFailed`, `ReadOnlyError`, and a language error if the schema is invalid.
        """
        from omnigraph.api.schema_apply import SchemaRequest, apply_schema, check_schema_change
        from omnigraph.api.write_options import WriteOptions

        handle = self._handle.for_branch(branch)
        handle.require_branch("changing the schema")
        request = SchemaRequest(new, allow_data_loss=allow_data_loss)
        if dry_run:
            return check_schema_change(handle, request)
        handle.require_writable("changing the schema")
        return apply_schema(
            handle, request, handle.with_actor(WriteOptions(if_commit, message, actor, idempotency_key))
        )
