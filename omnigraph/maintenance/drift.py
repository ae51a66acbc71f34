"""Classify drift, that is, commits that external writers made to a table's HEAD.

The graph reads only the table versions that its manifests reference, so changes at a table's HEAD are not visible in
the graph. `repair` can adopt appended rows, maintenance by external tools has no effect on the graph, and all other
changes are rejected.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from omnigraph.history.commit import Commit
from omnigraph.history.recovery_records import list_recovery_records
from omnigraph.storage.store import Store
from omnigraph.storage.table_head import FIRST_VERSION, AttachedVersion, list_attached_versions, read_attached_versions

HarmlessDrift = Literal["no_drift", "verified_maintenance", "rebased"]
DriftClassification = HarmlessDrift | Literal["appended", "suspicious", "unverifiable"]
REBASED_DETAIL = "rebased"  # the key in a commit's details under which the adopted versions are listed


@dataclass(frozen=True, slots=True)
class Drift:
    """The external changes to one table's HEAD since the last adopted version."""

    location: str
    head_version: int
    adopted_version: int
    steps: tuple[AttachedVersion, ...] = ()

    @property
    def classification(self) -> DriftClassification:
        """The drift's classification, which depends on the most severe external commit."""
        effects = {step.row_effect for step in self.steps}
        if self.head_version < FIRST_VERSION:
            return "unverifiable"
        if self.head_version == FIRST_VERSION:
            return "no_drift"
        if "unknown" in effects:
            return "unverifiable"
        if "other" in effects:
            return "suspicious"
        if "append" in effects:
            return "appended"
        return "rebased" if self.adopted_version > FIRST_VERSION else "verified_maintenance"

    @property
    def error(self) -> str | None:
        """The reason that the drift cannot be classified, or None if there is none."""
        if self.head_version < FIRST_VERSION:
            return "the table's files are missing: run `omnigraph check`, then restore them from a backup"
        return next((step.error for step in self.steps if step.error is not None), None)


def read_drift(store: Store, location: str, adopted_version: int = FIRST_VERSION) -> Drift:
    """Read the changes that external writers made to a table after the last adopted version."""
    attached = list_attached_versions(store, location)
    head_version = max(attached, default=0)
    adopted_version = max(adopted_version, FIRST_VERSION)
    return Drift(
        location,
        head_version,
        adopted_version,
        tuple(read_attached_versions(store, location, adopted_version, head_version)),
    )


def reported_versions(store: Store) -> Mapping[str, int]:
    """Return, for each table directory, the HEAD version up to which drift was reported as not repairable."""
    versions_by_location: dict[str, int] = {}
    for outcome in list_recovery_records(store):
        for location, version in outcome.heads.items():
            versions_by_location[location] = max(version, versions_by_location.get(location, FIRST_VERSION))
    return versions_by_location


def adopted_versions(commits: Iterable[Commit]) -> Mapping[str, int]:
    """Return, for each table directory, the HEAD version up to which rows were adopted."""
    versions_by_location: dict[str, int] = {}
    for commit in commits:
        for location, version in commit.details.get(REBASED_DETAIL, {}).items():
            versions_by_location[location] = max(int(version), versions_by_location.get(location, FIRST_VERSION))
    return versions_by_location
