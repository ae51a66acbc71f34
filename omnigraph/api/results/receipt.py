"""The result of a write: the commit, the number of entities, and any problems in the input.

`Receipt` and `LoadReport` only describe a finished operation. They have no methods to undo or repeat it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.errors import ClientError
from omnigraph.history.commit import Commit
from omnigraph.ingest.problem import LoadProblem

if TYPE_CHECKING:
    from omnigraph.engine.writes.mutate import WriteOutcome
    from omnigraph.ingest.load import LoadOutcome


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of a write. It is truthy if the write made a commit.

    `nodes` and `edges` count the affected entities by type. `ids` maps each type to the ids of added or replaced
    entities, in input order; loads leave it empty. For a load, `steps` maps each step to its duration in seconds, and
    `written` is the number of bytes written, if known. `engine` is the engine that ran a load, "local" or "spark". If
    `engine="auto"` chose this engine, `engine_reason` states why. `indexes` maps each table to the columns whose
    indexes were built. For a load in "delete" mode, `missing` counts, by type, the entities that did not exist. For a
    load in "merge" mode, `nulled` counts, by type and property, the values that became null because the input omits the
    property.

    >>> bool(Receipt(None, branch="main")), Receipt(None, {"Person": 2}, {"Knows": 1}).total
    (False, 3)
    """

    commit: Commit | None
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    branch: str = "main"
    branch_created: bool = False
    elapsed: float = 0.0
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    query_name: str | None = None
    replayed: bool = False
    steps: Mapping[str, float] = field(default_factory=dict)
    written: int = 0
    indexes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    nulled: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    engine: str = "local"
    engine_reason: str = ""

    def __bool__(self) -> bool:
        return self.commit is not None

    @property
    def commit_id(self) -> str | None:
        """The id of the commit, or None if nothing changed."""
        return self.commit.id if self.commit is not None else None

    @property
    def total(self) -> int:
        """The number of affected nodes and edges."""
        return sum(self.nodes.values()) + sum(self.edges.values())

    @property
    def affected_nodes(self) -> int:
        """The number of affected nodes."""
        return sum(self.nodes.values())

    @property
    def affected_edges(self) -> int:
        """The number of affected edges."""
        return sum(self.edges.values())

    def __repr__(self) -> str:
        type_counts = [
            f"{entity_count} {type_name}"
            for counts_by_type in (self.nodes, self.edges)
            for type_name, entity_count in counts_by_type.items()
        ]
        if self.commit is None:
            return f"<Receipt: nothing changed on {self.branch}>"
        summary_text = ", ".join(type_counts) or f"{self.commit.operation}, no entity changed"
        return f"<Receipt: {summary_text} on {self.branch}, commit {self.commit_id}>"

    def _repr_html_(self) -> str:
        from omnigraph.api.results.notebook_cards import facts_card

        card_facts = {"commit": self.commit_id, "branch": self.branch, **self.nodes, **self.edges}
        return facts_card("Receipt", card_facts)


def build_receipt(write_outcome: "WriteOutcome", branch: str, elapsed: float, query_name: str | None = None) -> Receipt:
    """Return the receipt for a write. `query_name` is the name of the query that ran, if any."""
    return Receipt(
        write_outcome.commit,
        write_outcome.nodes,
        write_outcome.edges,
        branch=branch,
        elapsed=elapsed,
        ids=write_outcome.ids,
        query_name=query_name,
        replayed=write_outcome.replayed,
    )


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that cannot be loaded: its position, its type and id, the reason, and the code of the error."""

    line: int | None
    type: str | None
    id: str | None
    reason: str
    property: str | None = None
    file: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The problems in the input to a load that wrote nothing.

    The report is truthy if there are no problems. `steps` maps each step to its duration in seconds, if known, and
    `error` is the error to raise for the first problem. At most 10,000 rejected records are listed for a load on Spark,
    and at most 100,000 for a load on a server. `left_out` counts the problems that are not listed. `reject_files` are
    the names, without suffix, of the files that Spark tasks wrote to the folder `rejects`.
    """

    problems: tuple[BadRow, ...] = ()
    left_out: int = 0
    steps: Mapping[str, float] = field(default_factory=dict)
    error: ClientError | None = None
    reject_files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.problems

    def __len__(self) -> int:
        return len(self.problems)

    def __iter__(self) -> Iterator[BadRow]:
        return iter(self.problems)

    def first(self, most: int) -> "LoadReport":
        """Return the report with at most `most` problems. `left_out` counts the omitted problems."""
        shown_problems = self.problems[:most]
        left_out = self.left_out + len(self.problems) - len(shown_problems)
        return LoadReport(shown_problems, left_out, self.steps, self.error, self.reject_files)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each problem as a dict, without its error code."""
        field_names = [field_name for field_name in BadRow.__slots__ if field_name != "code"]
        problem_rows = [
            {field_name: getattr(problem, field_name) for field_name in field_names} for problem in self.problems
        ]
        if all(problem["file"] is None for problem in problem_rows):
            problem_rows = [
                {field_name: problem[field_name] for field_name in field_names if field_name != "file"}
                for problem in problem_rows
            ]
        return problem_rows

    def _repr_html_(self) -> str:
        import pyarrow as pa

        from omnigraph.api.results.notebook_cards import table_card

        problem_rows = self.to_dicts()
        return table_card(pa.Table.from_pylist(problem_rows), f"{len(problem_rows)} bad rows; nothing was written")


def build_load_report(loaded: "LoadOutcome") -> LoadReport:
    """Return the public report for a load whose input has problems."""
    first_error = loaded.problems[0].error if loaded.problems else None
    bad_rows = tuple(map(_to_bad_row, loaded.problems))
    return LoadReport(bad_rows, loaded.left_out, loaded.summary.seconds, first_error, loaded.reject_files)


def _to_bad_row(problem: LoadProblem) -> BadRow:
    property_name = problem.error.details.get("property")
    return BadRow(
        problem.line, problem.type, problem.id, problem.reason, property_name, problem.file, problem.error.code
    )
