"""The repair report: tables, names, manifest versions, and damage.

This module defines how the report is worded and converted to JSON. It makes no decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .drift import DriftClassification
from .finding import IntegrityFinding
from .restore_names import NameRepair
from .restore_versions import VersionRepair

RepairAction = Literal["no_op", "no_effect", "preview", "refused", "forced"]


@dataclass(frozen=True, slots=True)
class DatasetRepair:
    """A report entry for a table: the drift at its HEAD and the action that was taken.

    `manifest_version` is the version that is visible on the branch, and `lance_head_version` is the version that plain
    Lance tools see. `skipped` explains why no action was taken, and `error` explains why no action is possible.
    """

    type_key: str
    classification: DriftClassification
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


@dataclass(frozen=True, slots=True, repr=False)
class Repair:
    """A repair report: all tables, the damage, and the data that is still readable."""

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
