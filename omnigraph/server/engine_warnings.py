"""Collect the warnings that the engine issues during one request, and write them to a header of the response.

The engine calls `add` for each warning, in the threads of the request. The header must never show where a graph is
stored.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.records.frozen import record

from .locations import hide_locations

WARNINGS_HEADER = "Omnigraph-Warnings"
_MAX_WARNINGS = 16
_MAX_HEADER_CHARACTERS = 8 << 10


@record
class EngineWarning:
    """A warning: the name of its class, its message, and its facts."""

    code: str
    message: str
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the warning as JSON."""
        document: dict[str, Any] = {"code": self.code, "message": self.message}
        return document | {"details": dict(self.details)} if self.details else document


class EngineWarnings:
    """The warnings of one request, without duplicates."""

    def __init__(self) -> None:
        self.collected: list[EngineWarning] = []

    def add(self, code: str, message: str, details: Mapping[str, Any]) -> None:
        """Add a warning."""
        warning = EngineWarning(code, message, details)
        if warning not in self.collected and len(self.collected) < _MAX_WARNINGS:
            self.collected.append(warning)

    def to_header(self, secret_names: Iterable[str], shown_location: str) -> str:
        """Return the warnings as a JSON array in ASCII, without those that would make the header too long.

        >>> warnings = EngineWarnings()
        >>> warnings.add("AmbiguousRevision", "in s3://b/g", {})
        >>> warnings.to_header(["s3://b/g"], "/graphs/g")
        '[{"code": "AmbiguousRevision", "message": "in /graphs/g"}]'
        """
        roots, texts, size = tuple(secret_names), list[str](), 0
        for warning in self.collected:
            text = json.dumps(hide_locations(warning.to_json(), roots, shown_location))
            size += len(text) + 2
            if size > _MAX_HEADER_CHARACTERS:
                break
            texts.append(text)
        return f"[{', '.join(texts)}]"
