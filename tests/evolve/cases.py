"""Graphs as dictionaries, read through the public API, and cases as records."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.api.graph import Graph
from tests.evolve.migration_model import Rows

CASES = Path(__file__).parent.parent / "cases" / "schema_apply" / "steps.txt"


@dataclass(frozen=True, slots=True)
class Case:
    """One block of the file."""

    title: str
    parts: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        return self.parts.get(name, "")

    def lines(self, name: str) -> list[str]:
        """The lines of a part that are not empty."""
        return [line for line in self[name].splitlines() if line.strip()]


def cases() -> list[Case]:
    """All blocks of the file."""
    blocks = CASES.read_text().split("# case ")[1:]
    return [_case(block) for block in blocks]


def _case(block: str) -> Case:
    title, *parts = block.split("\n--- ")
    named = (part.partition("\n") for part in parts)
    return Case(title.strip(), {name.strip(): text for name, _, text in named})


def rows_of(graph: Graph, **options: Any) -> Rows:
    """Everything a graph holds, by type and id; nulls are left out."""
    found: Rows = {}
    for line in b"".join(graph.export(**options)).splitlines():
        record = json.loads(line)
        kind = "edge" if "edge" in record else "node"
        key = f"{kind}:{record.get('edge') or record['type']}"
        ends = {name: record[name] for name in ("from", "to") if name in record}
        data = {name: value for name, value in record["data"].items() if value is not None}
        found.setdefault(key, {})[data["id"]] = data | ends
    return found
