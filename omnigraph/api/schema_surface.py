"""The public interface of `graph.schema`, as a protocol. The other facets are in `facet_surfaces`.

The methods are documented where they are implemented.
"""

# ruff: noqa: D102, PLR0913

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from omnigraph.api.schema import DiagramFormat, Schema, SchemaText
    from omnigraph.api.type_info import EdgeTypeInfo, NodeTypeInfo
    from omnigraph.evolve.proposal import SchemaApplied, SchemaPlan
    from omnigraph.lang.schema.ir import SchemaIR
    from omnigraph.lang.schema.migrate import MigrationPlan


class GraphSchemaSurface(Protocol):
    """The members of `graph.schema`."""

    @property
    def source(self) -> str: ...

    @property
    def ir(self) -> SchemaIR: ...

    @property
    def current(self) -> Schema: ...

    @property
    def types(self) -> Mapping[str, NodeTypeInfo]: ...

    @property
    def edges(self) -> Mapping[str, EdgeTypeInfo]: ...

    def __getitem__(self, type_name: str) -> NodeTypeInfo | EdgeTypeInfo: ...

    def __contains__(self, type_name: object) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int: ...

    @property
    def node_types(self) -> tuple[str, ...]: ...

    @property
    def edge_types(self) -> tuple[str, ...]: ...

    def to_arrow(self, type_name: str) -> pa.Schema: ...

    def diff(self, other: SchemaText, *, allow_data_loss: bool = False) -> MigrationPlan: ...

    def diagram(self, format: DiagramFormat = "mermaid") -> str: ...

    def plan(self, new: SchemaText, *, allow_data_loss: bool = False, branch: str | None = None) -> SchemaPlan: ...

    def apply(
        self,
        new: SchemaText | SchemaPlan,
        *,
        allow_data_loss: bool = False,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> SchemaApplied: ...
