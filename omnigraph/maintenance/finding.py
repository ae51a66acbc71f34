"""The findings of an integrity check, and the report that collects them.

This module defines how findings are worded and converted to JSON. It makes no decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from omnigraph.errors.counts import format_count
from omnigraph.values.table_key import TableKey

FindingSeverity = Literal["error", "warning"]
UnreadableKind = Literal["manifest", "ref", "log", "schema", "version", "file"]
BrokenRuleKind = Literal["field", "count", "value", "key", "unique", "endpoint", "cardinality"]
FindingKind = UnreadableKind | BrokenRuleKind | Literal["index", "drift", "intent", "record"]
# Kinds of findings about data that cannot be read completely, as opposed to broken rules.
_FILE_KINDS = frozenset({"version", "file", "index"})
DAMAGE_KINDS = frozenset({"manifest", "ref", "log", "schema", "version", "file"})


@dataclass(frozen=True, slots=True)
class IntegrityFinding:
    """A fault and its location: branch, type, entity or file."""

    kind: FindingKind
    reason: str
    severity: FindingSeverity = "error"
    branch: str | None = None
    type_key: TableKey | None = None
    entity_id: str | None = None
    name: str | None = None
    hint: str | None = None
    branches: tuple[str, ...] = ()
    column: str | None = None  # the column of a damaged index
    index_kind: str | None = None

    @property
    def merge_key(self) -> object:
        """The key that all findings about the same file share, regardless of the branch."""
        return ("file", self.name) if self.name and self.kind in _FILE_KINDS else self

    def merged_with(self, duplicate: "IntegrityFinding") -> "IntegrityFinding":
        """Merge two findings about the same file: keep the more severe one, with the branches from both findings.

        >>> on_main = IntegrityFinding("file", "lost", branch="main", name="f")
        >>> on_side = IntegrityFinding("file", "lost", "warning", branch="side", name="f")
        >>> str(on_main.merged_with(on_side))
        'error: file (main, side): lost [f]'
        """
        more_severe = duplicate if (self.severity, duplicate.severity) == ("warning", "error") else self
        less_severe = self if more_severe is duplicate else duplicate
        branch_names = (*more_severe.all_branches, *less_severe.all_branches)
        hint = more_severe.hint
        if self.kind == "index" and less_severe.hint not in (None, hint):
            hint = f"{hint}; {less_severe.hint}"  # each branch needs a separate command
        return replace(more_severe, branches=tuple(dict.fromkeys(branch_names)), hint=hint)

    @property
    def all_branches(self) -> tuple[str, ...]:
        """All affected branches and tags. The first one is `branch`."""
        return self.branches or ((self.branch,) if self.branch is not None else ())

    def __str__(self) -> str:
        location_parts = (", ".join(self.all_branches) or None, self.type_key, self.entity_id)
        location = " ".join(part for part in location_parts if part is not None)
        description = f"{self.severity}: {self.kind}{f' ({location})' if location else ''}: {self.reason}"
        return f"{description} [{self.name}]" if self.name and self.name not in self.reason else description

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON-compatible data. Only findings about an index include a column."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "reason": self.reason,
            "branch": self.branch,
            "branches": list(self.all_branches),
            "type_key": self.type_key,
            "entity_id": self.entity_id,
            "name": self.name,
            "hint": self.hint,
            **({"column": self.column, "index_kind": self.index_kind} if self.kind == "index" else {}),
        }


@dataclass(frozen=True, slots=True)
class Checkup:
    """The result of a check, which is truthy if there are no errors, regardless of warnings.

    `readable` maps each branch and tag to its newest completely readable commit, or to None. `read` contains the number
    of checked items by kind. `more` is the number of findings that were omitted to limit the size of the report.
    """

    findings: tuple[IntegrityFinding, ...] = ()
    readable: Mapping[str, str | None] = field(default_factory=dict)
    read: Mapping[str, int] = field(default_factory=dict)
    more: int = 0

    def __bool__(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    def __repr__(self) -> str:
        verdict = "healthy" if self else format_count(len(self.findings) + self.more, "finding")
        read_counts = ", ".join(f"{number} {noun}" for noun, number in self.read.items())
        return f"<Checkup: {verdict}; {read_counts}>"

    @property
    def damage(self) -> tuple[IntegrityFinding, ...]:
        """The findings about data that cannot be read, as opposed to data that violates a rule."""
        return tuple(finding for finding in self.findings if finding.kind in DAMAGE_KINDS)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        return {
            "ok": bool(self),
            "findings": [finding.to_json() for finding in self.findings],
            "more": self.more,
            "newest_readable": dict(self.readable),
            "read": dict(self.read),
        }
