"""Findings as a SARIF 2.1.0 log, the format read by code hosts and editors."""

from collections.abc import Sequence
from typing import Any

import omnigraph
from omnigraph.diagnostics import Diagnostic, Source

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def log(reports: Sequence[tuple[Source, Sequence[Diagnostic]]]) -> dict[str, Any]:
    """Return a log with one run that holds all findings.

    >>> made = log([(Source("a.pg", "?"), [Diagnostic("no", code="T1")])])
    >>> made["runs"][0]["results"][0]["ruleId"]
    'T1'
    """
    results = [_result(source, one) for source, found in reports for one in found]
    rules = [{"id": code} for code in sorted({result["ruleId"] for result in results})]
    tool = {"name": "omnigraph", "version": omnigraph.__version__, "rules": rules}
    run = {"tool": {"driver": tool}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _uri(name: str) -> str:
    from pathlib import Path
    from urllib.parse import quote

    return Path(name).as_uri() if name.startswith("/") else quote(name, errors="surrogateescape")


def _result(source: Source, one: Diagnostic) -> dict[str, Any]:
    end_line, end_column = source.locate(one.end)
    region = {
        "startLine": one.line,
        "startColumn": one.column,
        "endLine": end_line,
        "endColumn": end_column,
    }
    place = {"artifactLocation": {"uri": _uri(source.name)}, "region": region}
    return {
        "ruleId": one.code or one.kind,
        "level": _LEVELS[one.severity],
        "message": {"text": f"{one.message}; {one.hint}" if one.hint else one.message},
        "locations": [{"physicalLocation": place}],
    }
