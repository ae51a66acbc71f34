"""The schema and the tables of a graph on a server."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.client.commit_documents import Document
from omnigraph.errors.diagnostics import Diagnostic, SourceText
from omnigraph.history.commit import TableEntry
from omnigraph.records.cached_property import cached_property
from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

from .graph import key_headers
from .source_errors import with_source

if TYPE_CHECKING:
    from .graph import CommandGraph


@record
class ServedStep:
    """A step of a migration, with its description."""

    kind: str
    tier: str
    description: str


@record
class ServedPlan:
    """The steps that migrate one schema to another."""

    document: Document

    @property
    def steps(self) -> tuple[ServedStep, ...]:
        """The steps."""
        return tuple(
            ServedStep(step["kind"], step.get("tier", "safe"), step["description"]) for step in self.document["steps"]
        )

    @property
    def supported(self) -> bool:
        """Whether all steps can be applied."""
        return self.document["supported"]  # type: ignore[no-any-return]

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about the new schema."""
        return tuple(Diagnostic(**warning) for warning in self.document.get("warnings", ()))

    def __str__(self) -> str:
        return "\n".join(step.description for step in self.steps) or "nothing to change"

    def to_json(self) -> dict[str, Any]:
        """Return the plan in the same JSON format as for an embedded graph."""
        steps = [
            {name: value for name, value in step.items() if name != "description"} for step in self.document["steps"]
        ]
        members = {name: self.document[name] for name in ("supported", "step_count")}
        return members | {"steps": steps, "warnings": self.document.get("warnings", [])}


@record
class ServedApplication:
    """The outcome of a schema change."""

    plan: ServedPlan
    branch: str

    @property
    def steps(self) -> tuple[ServedStep, ...]:
        """The steps."""
        return self.plan.steps

    @property
    def applied(self) -> bool:
        """Whether the schema changed."""
        return self.plan.document["applied"]  # type: ignore[no-any-return]

    @property
    def commit_id(self) -> str | None:
        """The commit that changed the schema, or None."""
        commit = self.plan.document["commit"]
        return None if commit is None else commit["graph_commit_id"]

    def to_json(self) -> dict[str, Any]:
        """Return the outcome in the same JSON format as for an embedded graph."""
        members = self.plan.to_json()
        return {
            "supported": members.pop("supported"),
            "applied": self.applied,
            "graph_manifest_version": self.plan.document["graph_manifest_version"],
            "commit_id": self.commit_id,
            **members,
        }


class ServedSchema:
    """The schema of a graph at a revision."""

    def __init__(self, graph: "CommandGraph") -> None:
        self._graph = graph

    @cached_property
    def source(self) -> str:
        """The text of the schema."""
        return self._graph.exchange.get("schema", **self._graph.position)["schema_source"]  # type: ignore[no-any-return]

    @property
    def ir(self) -> Any:
        """An object with the compiled schema as `catalog`, for drawing diagrams."""
        from omnigraph.lang.schema import compile_schema

        return _CompiledSchema(compile_schema(self.source, "<schema>"))

    def plan(self, source: SourceText, *, allow_data_loss: bool) -> ServedPlan:
        """Return the steps that would migrate the graph to another schema."""
        body = {"schema_source": source.text, "allow_data_loss": allow_data_loss, "branch": self._graph.branch_name}
        with with_source(source):
            return ServedPlan(self._graph.exchange.post("schema", "plan", body=body, is_read=True))

    def apply(self, source: SourceText, **options: Any) -> ServedApplication:
        """Change the schema of the branch."""
        condition, headers = options.pop("if_commit", None), key_headers(options.pop("idempotency_key", None))
        body = {"schema_source": source.text, "branch": self._graph.branch_name, **options}
        with with_source(source):
            document = self._graph.exchange.post("schema", "apply", body=body, condition=condition, headers=headers)
        return ServedApplication(ServedPlan(document), self._graph.branch_name)


@record
class _CompiledSchema:
    catalog: Any


@record
class ServedSnapshot:
    """The tables of a branch at one revision."""

    branch: str
    commit_id: str
    manifest_version: int
    tables: Mapping[TableKey, TableEntry]
    document: Document


def read_snapshot(document: Document) -> ServedSnapshot:
    """Parse a snapshot from its JSON."""
    tables = {}
    for dataset in document["datasets"]:
        key = TableKey.of(dataset["entity_kind"], dataset["type_name"])
        version, row_count = dataset["published_dataset_version"], dataset["entity_count"]
        tables[key] = TableEntry(key, dataset["dataset_path"], version, 0, "", row_count)
    return ServedSnapshot(
        branch=document["graph_branch"],
        commit_id=document["graph_commit_id"],
        manifest_version=document["graph_manifest_version"],
        tables=tables,
        document=document,
    )
