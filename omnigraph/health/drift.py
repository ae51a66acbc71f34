"""What foreign tools committed to the HEAD of tables, and what may be made of it.

Owns the classification. HEAD is never published: rows that were appended there can be taken over by
`repair`, maintenance has no effect on a graph, everything else is refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from omnigraph.history.audit import list_outcomes
from omnigraph.history.commit import Commit
from omnigraph.storage.head import FIRST, Step, attached_versions, read_steps
from omnigraph.storage.store import Store

Harmless = Literal["no_drift", "verified_maintenance", "rebased"]
Classification = Harmless | Literal["appended", "suspicious", "unverifiable"]
REBASED = "rebased"  # the member of a commit's details that names what was taken over


@dataclass(frozen=True, slots=True)
class Drift:
    """What stands at the HEAD of one table, above what was taken over before."""

    location: str
    head: int
    since: int
    steps: tuple[Step, ...] = ()

    @property
    def classification(self) -> Classification:
        """What it is, by the worst of its steps."""
        effects = {one.effect for one in self.steps}
        if self.head < FIRST:
            return "unverifiable"
        if self.head == FIRST:
            return "no_drift"
        if "unknown" in effects:
            return "unverifiable"
        if "other" in effects:
            return "suspicious"
        if "append" in effects:
            return "appended"
        return "rebased" if self.since > FIRST else "verified_maintenance"

    @property
    def error(self) -> str | None:
        """Why it cannot be told what happened."""
        if self.head < FIRST:
            return "its files are missing: `omnigraph check` names them; restore them from a copy"
        return next((one.error for one in self.steps if one.error is not None), None)


def read_drift(store: Store, location: str, since: int = FIRST) -> Drift:
    """What foreign tools did to a table, above the version that was taken over last."""
    versions = attached_versions(store, location)
    head = max(versions, default=0)
    since = max(since, FIRST)
    return Drift(location, head, since, tuple(read_steps(store, location, since, head)))


def seen_versions(store: Store) -> Mapping[str, int]:
    """Up to which version of HEAD somebody was told of what must be left alone, by directory."""
    found: dict[str, int] = {}
    for one in list_outcomes(store):
        for location, version in one.heads.items():
            found[location] = max(version, found.get(location, FIRST))
    return found


def rebased_versions(commits: Iterable[Commit]) -> Mapping[str, int]:
    """Up to which version of HEAD rows were taken over, by table directory."""
    found: dict[str, int] = {}
    for one in commits:
        for location, version in one.details.get(REBASED, {}).items():
            found[location] = max(int(version), found.get(location, FIRST))
    return found
