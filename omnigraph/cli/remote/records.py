"""Build the objects that commands print from the JSON that a server returns."""

from dataclasses import field
from typing import Any

from omnigraph.api.results.formats import PlainRows, PrintableResult, TextStyle, render
from omnigraph.client.commit_documents import Document
from omnigraph.client.failures import read_conflict
from omnigraph.errors import EntityConflict
from omnigraph.history.commit import Commit
from omnigraph.merging.lost_edge_text import describe_lost_edge
from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

_ENDPOINT_NAMES = {"src": "from", "dst": "to"}


@record
class ServedResult:
    """The rows of a query, as the server sent them."""

    printable: PrintableResult

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.printable.table.num_rows

    @property
    def commit_id(self) -> str | None:
        """The commit that was read."""
        return self.printable.commit_id

    def render(self, form: Any, style: TextStyle | None = None) -> Any:
        """Yield the result as lines of text."""
        return render(self.printable, form, style)


def read_result(document: Document) -> ServedResult:
    """Parse a query result from its JSON."""
    rows = PlainRows(tuple(document.get("columns", ())), document["rows"])
    commit_id = document.get("graph_commit_id")
    return ServedResult(PrintableResult(rows, document["query_name"], document["target"], commit_id))


@record
class SchemaChangeSummary:
    """A schema change: a description of each step, and the JSON."""

    document: Document

    @property
    def descriptions(self) -> tuple[str, ...]:
        """A description of each step."""
        return tuple(step["description"] for step in self.document["steps"])

    def to_json(self) -> Document:
        """Return the change as JSON."""
        return self.document


def read_schema_change(document: Document) -> SchemaChangeSummary | None:
    """Parse the schema change in a response; return None if there is none."""
    return SchemaChangeSummary(document["schema_change"]) if document.get("schema_change") else None


@record
class ServedTag:
    """A tag, with the members that commands print."""

    name: str
    commit_id: str
    branch: str | None
    created_at: int
    actor: str | None
    message: str | None


def read_tag(document: Document) -> ServedTag:
    """Parse a tag from its JSON."""
    return ServedTag(
        name=document["name"],
        commit_id=document["graph_commit_id"],
        branch=document["graph_branch"],
        created_at=document["created_at"],
        actor=document["actor_id"],
        message=document.get("message"),
    )


@record
class ServedLostEdge:
    """An edge that one side of a merge deleted along with a node. The merge keeps the node, but not the edge."""

    key: TableKey
    id: str
    src: str
    dst: str
    node: str
    side: str

    def __str__(self) -> str:
        return describe_lost_edge(self.key.type_name, self.id, (self.src, self.dst), self.node)


@record
class ServedParallelEdges:
    """Two identical edges, one added on each side of a merge."""

    key: TableKey
    ours: str
    theirs: str


@record
class ServedDiscardedChange:
    """A change that the resolution of a conflict discards."""

    entity_kind: str
    type_name: str
    entity_id: str
    side: str
    part: str
    property_name: str | None = None
    value: Any = None


@record
class ServedMerge:
    """The effect of a merge, revert, cherry-pick or reset, or its preview."""

    outcome: str
    commit: Commit | None
    base: str
    source: str
    target: str
    stats: Document
    conflicts: tuple[EntityConflict, ...] = ()
    discarded: tuple[ServedDiscardedChange, ...] = ()
    lost_edges: tuple[ServedLostEdge, ...] = ()
    parallel_edges: tuple[ServedParallelEdges, ...] = ()
    schema_change: SchemaChangeSummary | None = None
    branch_deleted: bool = False
    branch_delete_error: str | None = None


def read_merge(document: Document, commit: Commit | None) -> ServedMerge:
    """Parse the effect of a merge from its JSON."""
    return ServedMerge(
        outcome=document["outcome"],
        commit=commit,
        base=document["base_commit_id"],
        source=document["source_commit_id"],
        target=document["target_commit_id"],
        stats=document["stats"],
        conflicts=tuple(read_conflict(conflict) for conflict in document["merge_conflicts"]),
        discarded=tuple(_read_discarded(change) for change in document["discarded"]),
        lost_edges=tuple(_read_lost_edge(edge) for edge in document["lost_edges"]),
        parallel_edges=tuple(
            ServedParallelEdges(TableKey.edge(pair["type_name"]), pair["ours"], pair["theirs"])
            for pair in document["parallel_edges"]
        ),
        schema_change=read_schema_change(document),
        branch_deleted=document.get("branch_deleted", False),
        branch_delete_error=document.get("branch_delete_error"),
    )


def _read_discarded(document: Document) -> ServedDiscardedChange:
    members = {name: document[name] for name in ("entity_kind", "type_name", "entity_id", "side", "part")}
    return ServedDiscardedChange(**members, property_name=document.get("property"), value=document.get("value"))


def _read_lost_edge(document: Document) -> ServedLostEdge:
    members = (document[name] for name in ("entity_id", "from", "to", "node", "side"))
    return ServedLostEdge(TableKey.edge(document["type_name"]), *members)


@record
class ServedChange:
    """A changed entity, as in the change feed."""

    kind: str
    type: str
    id: str
    op: str
    before: Document | None = None
    after: Document | None = None
    changed: tuple[str, ...] = ()
    endpoints_before: Document | None = None
    endpoints_after: Document | None = None
    document: Document = field(default_factory=dict)

    @property
    def endpoints(self) -> Document | None:
        """The endpoints of an edge, or its last endpoints if it was deleted; None for a node."""
        return self.endpoints_after or self.endpoints_before


def read_change(document: Document) -> ServedChange:
    """Parse a change from its JSON in the change feed."""
    before, after = document.get("before"), document.get("after")
    changed = document.get("changed")
    if changed is None:
        changed = _changed_names(before, after) if document["op"] == "update" else ()
    return ServedChange(
        kind=document["kind"],
        type=document["type"]["name"],
        id=document["id"],
        op=document["op"],
        before=None if before is None else before["properties"],
        after=None if after is None else after["properties"],
        changed=tuple(changed),
        endpoints_before=_read_endpoints(before),
        endpoints_after=_read_endpoints(after),
        document=document,
    )


def _read_endpoints(image: Document | None) -> Document | None:
    if image is None or "endpoints" not in image:
        return None
    return {column: image["endpoints"][name] for column, name in _ENDPOINT_NAMES.items()}


def _changed_names(before: Document | None, after: Document | None) -> list[str]:
    """Return the names of the properties and endpoints that a change modifies."""
    if before is None or after is None:
        return []
    old_endpoints, new_endpoints = _read_endpoints(before) or {}, _read_endpoints(after) or {}
    names = [name for name in new_endpoints if old_endpoints.get(name) != new_endpoints[name]]
    properties = after["properties"]
    return names + [name for name in properties if before["properties"].get(name) != properties[name]]
