"""The results of a write: the commit, the number of entities, the problems of the input.

Owns `Receipt` and `LoadReport`. They describe a finished operation and can neither undo nor repeat
it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.errors import ClientError
from omnigraph.history.commit import Commit
from omnigraph.ingest.problem import Problem

if TYPE_CHECKING:
    from omnigraph.engine.mutate import Outcome


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write did. True if it made a commit.

    `nodes` and `edges` count the affected entities by type. `ids` are the ids of added or replaced
    entities by type, in input order; a load omits them. For a load, `steps` has the seconds of each
    step, and `written` the bytes, where known. `indexes` are the columns whose indexes were built,
    by table.

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

    def __bool__(self) -> bool:
        return self.commit is not None

    @property
    def commit_id(self) -> str | None:
        """The id of the commit, or None when nothing changed."""
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
        counts = [f"{n} {name}" for part in (self.nodes, self.edges) for name, n in part.items()]
        if self.commit is None:
            return f"<Receipt: nothing changed on {self.branch}>"
        told = ", ".join(counts) or f"{self.commit.operation}, no entity changed"
        return f"<Receipt: {told} on {self.branch}, commit {self.commit_id}>"

    def _repr_html_(self) -> str:
        from omnigraph.notebook import facts_card

        facts = {"commit": self.commit_id, "branch": self.branch, **self.nodes, **self.edges}
        return facts_card("Receipt", facts)


def receipt_of(done: "Outcome", branch: str, elapsed: float, name: str | None = None) -> Receipt:
    """Return the receipt of executed operations; `name` is the name of their query."""
    return Receipt(
        done.commit,
        done.nodes,
        done.edges,
        branch=branch,
        elapsed=elapsed,
        ids=done.ids,
        query_name=name,
        replayed=done.replayed,
    )


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that cannot be loaded: its position, what it is, and the reason."""

    line: int | None
    type: str | None
    id: str | None
    reason: str
    property: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class LoadReport:
    """All problems in the input of a load; nothing was written.

    True if there are none. `steps` has the seconds of each step, where known, and `error` is the
    error that is raised for the first problem.
    """

    problems: tuple[BadRow, ...] = ()
    left_out: int = 0
    steps: Mapping[str, float] = field(default_factory=dict)
    error: ClientError | None = None

    def __bool__(self) -> bool:
        return not self.problems

    def __len__(self) -> int:
        return len(self.problems)

    def __iter__(self) -> Iterator[BadRow]:
        return iter(self.problems)

    def first(self, most: int) -> "LoadReport":
        """Return the report with at most `most` problems; `left_out` counts those not shown."""
        shown = self.problems[:most]
        left_out = self.left_out + len(self.problems) - len(shown)
        return LoadReport(shown, left_out, self.steps, self.error)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each problem as a dict."""
        names = BadRow.__slots__
        rows = [{name: getattr(one, name) for name in names} for one in self.problems]
        if all(one["file"] is None for one in rows):
            rows = [{name: one[name] for name in names if name != "file"} for one in rows]
        return rows

    def _repr_html_(self) -> str:
        import pyarrow as pa

        from omnigraph.notebook import table_card

        rows = self.to_dicts()
        return table_card(pa.Table.from_pylist(rows), f"{len(rows)} bad rows; nothing was written")


def report(problems: Sequence[Problem], steps: Mapping[str, float] | None = None) -> LoadReport:
    """Return the problems of a load as a report for its caller."""
    first = problems[0].error if problems else None
    return LoadReport(tuple(map(_bad_row, problems)), steps=steps or {}, error=first)


def _bad_row(one: Problem) -> BadRow:
    column = one.error.details.get("property")
    return BadRow(one.line, one.type, one.id, one.reason, column, one.file)
