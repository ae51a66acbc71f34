"""Findings of an integrity check, and the report that collects them.

Owns how findings are worded and serialized; it decides nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Severity = Literal["error", "warning"]
Unreadable = Literal["manifest", "ref", "log", "schema", "version", "file"]
Broken = Literal["field", "count", "value", "key", "unique", "endpoint", "cardinality"]
Kind = Unreadable | Broken | Literal["index", "drift", "intent", "record"]
# Kinds that mean data cannot be read (completely), as opposed to a broken rule.
_FILES = frozenset({"version", "file", "index"})
DAMAGE = frozenset({"manifest", "ref", "log", "schema", "version", "file"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault and its location: branch, type, entity, file."""

    kind: Kind
    reason: str
    severity: Severity = "error"
    branch: str | None = None
    type_key: str | None = None
    entity_id: str | None = None
    name: str | None = None
    hint: str | None = None
    branches: tuple[str, ...] = ()

    @property
    def subject(self) -> object:
        """Equal for findings about the same file, whichever branch needs the file."""
        return ("file", self.name) if self.name and self.kind in _FILES else self

    def joined(self, other: "Finding") -> "Finding":
        """Return one finding for two about the same file: the worse, with the branches of both.

        >>> one = Finding("file", "lost", branch="main", name="f")
        >>> str(one.joined(Finding("file", "lost", "warning", branch="side", name="f")))
        'error: file (main, side): lost [f]'
        """
        worse = other if (self.severity, other.severity) == ("warning", "error") else self
        better = self if worse is other else other
        named = (*worse.all_branches, *better.all_branches)
        return replace(worse, branches=tuple(dict.fromkeys(named)))

    @property
    def all_branches(self) -> tuple[str, ...]:
        """All branches and tags that are affected; `branch` is the first."""
        return self.branches or ((self.branch,) if self.branch is not None else ())

    def __str__(self) -> str:
        parts = (", ".join(self.all_branches) or None, self.type_key, self.entity_id)
        where = " ".join(one for one in parts if one is not None)
        said = f"{self.severity}: {self.kind}{f' ({where})' if where else ''}: {self.reason}"
        return f"{said} [{self.name}]" if self.name and self.name not in self.reason else said

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON-compatible data; every member is always present."""
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
        }


@dataclass(frozen=True, slots=True)
class Checkup:
    """Result of a check; true when there is no error. Warnings do not count.

    `readable` maps each branch and tag to its newest commit that is completely readable, or None.
    `read` holds how much was checked. `more` counts findings that were not kept.
    """

    findings: tuple[Finding, ...] = ()
    readable: Mapping[str, str | None] = field(default_factory=dict)
    read: Mapping[str, int] = field(default_factory=dict)
    more: int = 0

    def __bool__(self) -> bool:
        return not any(one.severity == "error" for one in self.findings)

    def __repr__(self) -> str:
        said = "healthy" if self else f"{len(self.findings) + self.more} findings"
        return f"<Checkup: {said}; {', '.join(f'{n} {w}' for w, n in self.read.items())}>"

    @property
    def damage(self) -> tuple[Finding, ...]:
        """Findings about data that cannot be read, without broken rules."""
        return tuple(one for one in self.findings if one.kind in DAMAGE)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        return {
            "ok": bool(self),
            "findings": [one.to_json() for one in self.findings],
            "more": self.more,
            "newest_readable": dict(self.readable),
            "read": dict(self.read),
        }
