"""Drift: commits of external writers to the HEAD of tables, and what can be done about them.

Owns the classification. HEAD is never published: `repair` can adopt appended rows, maintenance has
no effect on a graph, everything else is refused.
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
REBASED = "rebased"  # member of a commit's details that lists the adopted versions


@dataclass(frozen=True, slots=True)
class Drift:
    """The state of one table's HEAD, above the version that was adopted last."""

    location: str
    head: int
    since: int
    steps: tuple[Step, ...] = ()

    @property
    def classification(self) -> Classification:
        """The class of the drift, decided by the worst of its steps."""
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
        """Why the drift cannot be classified."""
        if self.head < FIRST:
            return "its files are missing: run `omnigraph check`, then restore them from a backup"
        return next((one.error for one in self.steps if one.error is not None), None)


def read_drift(store: Store, location: str, since: int = FIRST) -> Drift:
    """Read what external writers did to a table above the version that was adopted last."""
    versions = attached_versions(store, location)
    head = max(versions, default=0)
    since = max(since, FIRST)
    return Drift(location, head, since, tuple(read_steps(store, location, since, head)))


def seen_versions(store: Store) -> Mapping[str, int]:
    """Return the HEAD version up to which drift was reported as not repairable, by directory."""
    found: dict[str, int] = {}
    for one in list_outcomes(store):
        for location, version in one.heads.items():
            found[location] = max(version, found.get(location, FIRST))
    return found


def rebased_versions(commits: Iterable[Commit]) -> Mapping[str, int]:
    """Return the HEAD version up to which rows were adopted, by table directory."""
    found: dict[str, int] = {}
    for one in commits:
        for location, version in one.details.get(REBASED, {}).items():
            found[location] = max(int(version), found.get(location, FIRST))
    return found
