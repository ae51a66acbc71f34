"""`graph.schema`: the schema of the commit that a graph shows, and how to change it.

`plan` reads no data and changes nothing; `apply` makes one commit or has no effect.
"""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.api.facet import Facet
from omnigraph.api.handle import Handle, report_missing_branch
from omnigraph.errors import InputError, UsageError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.history.schemas import StoredSchema
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.ir import SchemaIR

if TYPE_CHECKING:
    from omnigraph.api.write_options import WriteOptions
    from omnigraph.evolve.proposal import SchemaApplied, SchemaPlan

SchemaText = str | PathLike[str] | SourceText


class Schema(Facet):
    """The schema of a graph: its text, its types, and the methods that change it.

    The text and the types are those of the commit that the graph showed when `graph.schema` was accessed, and do not
    change afterwards.

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
        return repr(self.contract)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.contract == other.contract

    def __hash__(self) -> int:
        return hash(self._snapshot.schema_row)

    @property
    def contract(self) -> StoredSchema:
        """The schema as it is stored in the graph."""
        return self._snapshot.schema

    @property
    def source(self) -> str:
        """The `.pg` text."""
        return self.contract.source

    @property
    def ir(self) -> SchemaIR:
        """The compiled schema: the catalog of types, with the permanent ids of types and properties."""
        return self.contract.ir

    @property
    def node_types(self) -> tuple[str, ...]:
        """The names of the node types."""
        return tuple(node.name for node in self.ir.catalog.nodes)

    @property
    def edge_types(self) -> tuple[str, ...]:
        """The names of the edge types."""
        return tuple(edge.name for edge in self.ir.catalog.edges)

    def plan(self, new: SchemaText, *, allow_data_loss: bool = False, branch: str | None = None) -> "SchemaPlan":
        """Plan the steps from the branch's schema to a new schema, without reading data.

        `new` is `.pg` text, or the path of a `.pg` file. With `allow_data_loss`, planned drops also delete the history
        of the dropped data. Raises a language error if the schema is invalid, and `IdentityError`.
        """
        return _plan(self._handle.for_branch(branch), new, allow_data_loss=allow_data_loss)

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
    ) -> "SchemaApplied":
        """Change the schema of the branch in one commit; other branches keep their schemas.

        `new` is `.pg` text, a path, or a plan; a plan can be applied only to the schema that it was made for. Steps
        that existing data may violate are checked against the data first. Dropped data stays readable in earlier
        commits; with `allow_data_loss`, its history is also deleted. `dry_run` only checks.

        Raises `SchemaUnsupported`, `SchemaViolation`, `ReadSetConflict`, `VersionConflict`,
        `PreconditionFailed`, `ReadOnlyError`, and a language error if the schema is invalid.
        """
        from omnigraph.api.write_options import WriteOptions
        from omnigraph.evolve.proposal import SchemaPlan

        handle = self._handle.for_branch(branch)
        handle.require_branch("a schema change")
        if not dry_run:
            handle.require_writable("a schema change")
        plan = new if isinstance(new, SchemaPlan) else _plan(handle, new, allow_data_loss=False)
        plan = plan.with_data_loss(allow_data_loss or plan.allow_data_loss)
        return _apply(handle, plan, handle.with_actor(WriteOptions(if_commit, message, actor)), dry_run=dry_run)


def read_schema_text(schema: SchemaText) -> tuple[str, str]:
    """Return the text of a schema and its name; a single word that ends in `.pg` is treated as a path.

    >>> read_schema_text("node Lamp {}")
    ('node Lamp {}', '<schema>')
    """
    if isinstance(schema, SourceText):
        return schema.text, schema.name
    is_path = not isinstance(schema, str) or (schema.endswith(".pg") and "\n" not in schema)
    if isinstance(schema, str) and not is_path:
        return schema, "<schema>"
    try:
        path = Path(schema)
    except TypeError as error:
        kind = type(schema).__name__
        raise UsageError(reason=f"a schema must be a string, a path or a plan, not {kind}") from error
    from omnigraph.lang.parsing import decode_source

    try:
        return decode_source(path.read_bytes(), str(path)).text, str(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", reason="unreadable") from error


def _plan(handle: Handle, new: SchemaText, *, allow_data_loss: bool) -> "SchemaPlan":
    from omnigraph.evolve.proposal import propose_schema

    snapshot = handle.latest_snapshot()
    text, name = read_schema_text(new)
    row, contract = snapshot.schema_row, snapshot.schema
    return propose_schema(row, contract, text, name, allow_data_loss=allow_data_loss)


def _apply(handle: Handle, plan: "SchemaPlan", options: "WriteOptions", *, dry_run: bool) -> "SchemaApplied":
    from omnigraph.api.log_events import log_operation
    from omnigraph.api.write_options import AttemptCounter
    from omnigraph.evolve.apply import apply_plan, check_plan
    from omnigraph.evolve.proposal import SchemaApplied

    branch, commit = handle.branch_name, None
    with log_operation("apply_schema", branch) as event, report_missing_branch(handle.branch_state):
        if dry_run:
            check_plan(handle.branch_state, plan)
        else:
            requirement = handle.require_unchanged(())
            conditions = options.requirements(requirement, AttemptCounter())
            published = apply_plan(handle.branch_state, plan, options.commit_metadata(), conditions)
            commit = handle.record_write(published, requirement)
    return SchemaApplied(plan, commit, branch, event.elapsed_seconds(), dry_run)
