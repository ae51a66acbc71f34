"""The repair report, which covers tables, names, manifest versions, and damage.

This module defines how the report is worded and converted to JSON. It makes no decisions. It must load quickly, because
commands on a server import it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .finding import IntegrityFinding

if TYPE_CHECKING:
    from omnigraph.history.origin_record import RefKind
    from omnigraph.maintenance.drift import DriftClassification

NameAction = Literal["preview", "restored", "closed", "dropped", "refused", "no_op"]
VersionAction = Literal["preview", "restored", "refused"]
RepairAction = Literal["no_op", "no_effect", "preview", "refused", "forced"]


@dataclass(frozen=True, slots=True)
class DatasetRepair:
    """A report entry for a table: the drift at its HEAD and the action that was taken.

    `manifest_version` is the version that is visible on the branch, and `lance_head_version` is the version that plain
    Lance tools see. `skipped` explains why no action was taken, and `error` explains why no action is possible.
    """

    type_key: str
    classification: "DriftClassification"
    action: RepairAction
    operations: tuple[str, ...] = ()
    manifest_version: int | None = None
    lance_head_version: int | None = None
    committed: bool = False
    skipped: str | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report entry as JSON-compatible data."""
        return {
            "type_key": self.type_key,
            "classification": self.classification,
            "action": self.action,
            "operations": list(self.operations),
            "manifest_version": self.manifest_version,
            "lance_head_version": self.lance_head_version,
            "committed": self.committed,
            "skipped": self.skipped,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class NameRepair:
    """A branch or tag without a usable name, and the action that was taken."""

    target: str
    status: str
    kind: "RefKind | None"
    name: str | None
    commit_id: str | None
    action: NameAction
    reason: str | None = None

    def __str__(self) -> str:
        subject = f"{self.kind or 'branch or tag'} {self.name or ''}".strip()
        description = f"{subject} ({self.target}): {self.status}, {self.action}"
        return f"{description}: {self.reason}" if self.reason else description

    def to_json(self) -> dict[str, Any]:
        """Return the report entry as JSON-compatible data."""
        return {
            "target": self.target,
            "status": self.status,
            "kind": self.kind,
            "name": self.name,
            "graph_commit_id": self.commit_id,
            "action": self.action,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class VersionRepair:
    """A branch or tag that lost its newest manifest versions, and the action that was taken."""

    branch: str
    manifest: str
    version: int
    commits: tuple[str, ...]
    action: VersionAction
    reason: str | None = None

    def __str__(self) -> str:
        description = f"{self.branch} ({self.manifest}): versions after {self.version} are lost; {self.action}"
        return f"{description}: {self.reason}" if self.reason else description

    def to_json(self) -> dict[str, Any]:
        """Return the report entry as JSON-compatible data."""
        return {
            "branch": self.branch,
            "manifest": self.manifest,
            "manifest_version": self.version,
            "graph_commit_ids": list(self.commits),
            "action": self.action,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Repair:
    """A repair report on tables, names, manifest versions, damage, and the data that is still readable."""

    preview: bool
    datasets: tuple[DatasetRepair, ...]
    manifest_version: int | None = None
    commit_id: str | None = None
    damage: tuple[IntegrityFinding, ...] = ()
    readable: Mapping[str, str | None] | None = None
    names: tuple[NameRepair, ...] = ()
    versions: tuple[VersionRepair, ...] = ()

    def __repr__(self) -> str:
        drifted = [dataset for dataset in self.datasets if dataset.classification != "no_drift"]
        drift_summary = ", ".join(f"{dataset.type_key} {dataset.classification}" for dataset in drifted) or "no drift"
        damage_note = f", {len(self.damage)} damage findings" if self.damage else ""
        return f"<Repair{' preview' if self.preview else ''}: {drift_summary}{damage_note}>"

    @property
    def refused(self) -> tuple[DatasetRepair, ...]:
        """The tables for which the requested repair was not performed."""
        return tuple(dataset for dataset in self.datasets if dataset.action == "refused")

    @property
    def not_restored(self) -> tuple[NameRepair | VersionRepair, ...]:
        """The branches and tags whose names or versions could not be restored."""
        repairs: list[NameRepair | VersionRepair] = [*self.names, *self.versions]
        return tuple(repair for repair in repairs if repair.action == "refused")

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        return {
            "preview": self.preview,
            "datasets": [row.to_json() for row in self.datasets],
            "manifest_version": self.manifest_version,
            "graph_commit_id": self.commit_id,
            "names": [row.to_json() for row in self.names],
            "versions": [row.to_json() for row in self.versions],
            "damage": [row.to_json() for row in self.damage],
            "newest_readable": dict(self.readable or {}),
        }
