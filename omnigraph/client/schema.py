"""`graph.schema` on a server: the schema at one commit, and methods to change it.

The client computes plans from the text of the branch's schema. When a schema is applied, the server computes its own
plan.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.api.schema import DiagramFormat, Schema, SchemaText, read_schema_text
from omnigraph.api.type_info import EdgeTypeInfo, NodeTypeInfo
from omnigraph.errors import LanguageError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.evolve.proposal import SchemaApplied, SchemaPlan, propose_schema
from omnigraph.history.commit import SchemaRow
from omnigraph.history.schemas import StoredSchema
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.migrate import MigrationPlan
from omnigraph.records.cached_property import cached_property
from omnigraph.values import clock_and_ids
from omnigraph.values.option_text import check_option_text

from .answers import read_optional_commit
from .handle import RemoteHandle, compile_ir, read_schema_ir
from .unsupported import reject
from .writes import write_branch

if TYPE_CHECKING:
    import pyarrow as pa

    from .replies import Reply

_SERVER_NAME = "<schema>"


class RemoteSchema:
    """A graph's schema on a server: its text, its types, and methods to change it."""

    def __init__(self, handle: RemoteHandle) -> None:
        handle.require_open()
        self._handle = handle

    @cached_property
    def current(self) -> Schema:
        """The schema as an object that is independent of the graph."""
        return Schema._from_stored(self.source, compile_ir(self.source))

    @cached_property
    def source(self) -> str:
        """The `.pg` text."""
        return str(self._handle.schema_document()["schema_source"])

    @property
    def ir(self) -> SchemaIR:
        """Raise `NotSupportedRemotely`, because the server does not send permanent ids."""
        reject("schema.ir")

    @property
    def contract(self) -> StoredSchema:
        """Raise `NotSupportedRemotely`, because the stored form is available only in the files."""
        reject("schema.contract")

    def __repr__(self) -> str:
        return repr(self.current)

    def _repr_html_(self) -> str:
        return self.current._repr_html_()

    def __eq__(self, other: object) -> bool:
        schema = getattr(other, "current", other)
        return self.current == schema if isinstance(schema, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.current)

    @property
    def types(self) -> Mapping[str, NodeTypeInfo]:
        """The node types, keyed by name, in the order of their declarations."""
        return self.current.types

    @property
    def edges(self) -> Mapping[str, EdgeTypeInfo]:
        """The edge types, keyed by name, in the order of their declarations."""
        return self.current.edges

    def __getitem__(self, type_name: str) -> NodeTypeInfo | EdgeTypeInfo:
        return self.current[type_name]

    def __contains__(self, type_name: object) -> bool:
        return type_name in self.current

    def __iter__(self) -> Iterator[str]:
        return iter(self.current)

    def __len__(self) -> int:
        return len(self.current)

    def __bool__(self) -> bool:
        return True

    @property
    def node_types(self) -> tuple[str, ...]:
        """The names of the node types."""
        return tuple(node.name for node in compile_ir(self.source).catalog.nodes)

    @property
    def edge_types(self) -> tuple[str, ...]:
        """The names of the edge types."""
        return tuple(edge.name for edge in compile_ir(self.source).catalog.edges)

    def to_arrow(self, type_name: str) -> "pa.Schema":
        """Return the Arrow schema for a type's rows."""
        return self.current.to_arrow(type_name)

    def diff(self, other: SchemaText, *, allow_data_loss: bool = False) -> MigrationPlan:
        """Return the migration plan from this graph's schema to another one."""
        return self.current.diff(other, allow_data_loss=allow_data_loss)

    def diagram(self, format: DiagramFormat = "mermaid") -> str:
        """Return a diagram of the node and edge types."""
        return self.current.diagram(format)

    def plan(self, new: SchemaText, *, allow_data_loss: bool = False, branch: str | None = None) -> SchemaPlan:
        """Plan the steps from the branch's schema to a new schema, without reading data."""
        text, name = read_schema_text(new)
        return self._propose(text, name, branch, allow_data_loss=allow_data_loss)

    def _propose(
        self, text: str, name: str, branch: str | None, *, allow_data_loss: bool, at: str | None = None
    ) -> SchemaPlan:
        document = self._handle.for_read(branch, at).schema_document()
        stored = StoredSchema(document["schema_source"], read_schema_ir(document))
        base = SchemaRow(document["shape_hash"], "")
        return propose_schema(base, stored, text, name, allow_data_loss=allow_data_loss)

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
    ) -> SchemaApplied:
        """Change the branch's schema in one commit; see `Graph.schema.apply`."""
        handle, started = self._handle, clock_and_ids.monotonic()
        handle.require_writable("changing the schema", dry_run=dry_run)
        handle.reject_actor(actor)
        for option_name, option in (("message", message), ("idempotency_key", idempotency_key)):
            check_option_text(option, option_name)
        text, name = (new.source, new.name) if isinstance(new, SchemaPlan) else read_schema_text(new)
        loses_data = allow_data_loss or (isinstance(new, SchemaPlan) and new.allow_data_loss)
        # A change with the caller's key is sent first, because the branch may already have the new schema.
        plan = None if idempotency_key else self._propose(text, name, branch, allow_data_loss=loses_data)
        target = write_branch(handle, branch)
        body = {"schema_source": text, "branch": target, "message": message, "dry_run": dry_run}
        headers = {} if dry_run else {"Idempotency-Key": idempotency_key or clock_and_ids.new_ulid()}
        reply = self._send(body | {"allow_data_loss": loses_data}, if_commit, headers, SourceText(name, text))
        commit = read_optional_commit(reply.json()["commit"])
        if plan is None:
            base_id = None if commit is None else commit.parents[0]
            plan = self._propose(text, name, branch, allow_data_loss=loses_data, at=base_id)
        is_replay = "Idempotent-Replay" in reply.headers and idempotency_key is not None
        return SchemaApplied(plan, commit, target, clock_and_ids.monotonic() - started, dry_run, is_replay)

    def _send(
        self, body: dict[str, Any], if_commit: str | None, headers: Mapping[str, str], source: SourceText
    ) -> "Reply":
        try:
            return self._handle.exchange.fetch(
                "POST", ("schema", "apply"), {}, json_body=body, condition=if_commit, headers=headers
            )
        except LanguageError as error:
            error.source = source
            error.message = error.message.replace(f"{_SERVER_NAME}:", f"{source.name}:")
            raise
