"""Write findings as a SARIF 2.1.0 log, a format that code-hosting sites and editors support."""

from collections.abc import Sequence
from typing import Any

import omnigraph
from omnigraph.errors.diagnostics import Diagnostic, SourceText

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def sarif_log(reports: Sequence[tuple[SourceText, Sequence[Diagnostic]]]) -> dict[str, Any]:
    """Return a log with one run that contains all findings.

    >>> log = sarif_log([(SourceText("a.pg", "?"), [Diagnostic("no", code="T1")])])
    >>> log["runs"][0]["results"][0]["ruleId"]
    'T1'
    """
    results = [_sarif_result(source, diagnostic) for source, diagnostics in reports for diagnostic in diagnostics]
    rules = [{"id": code} for code in sorted({result["ruleId"] for result in results})]
    driver = {"name": "omnigraph", "version": omnigraph.__version__, "rules": rules}
    sarif_run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [sarif_run]}


def _file_uri(file_name: str) -> str:
    from pathlib import Path
    from urllib.parse import quote

    return Path(file_name).as_uri() if file_name.startswith("/") else quote(file_name, errors="surrogateescape")


def _sarif_result(source: SourceText, diagnostic: Diagnostic) -> dict[str, Any]:
    end_line, end_column = source.locate(diagnostic.end)
    region = {
        "startLine": diagnostic.line,
        "startColumn": diagnostic.column,
        "endLine": end_line,
        "endColumn": end_column,
    }
    location = {"artifactLocation": {"uri": _file_uri(source.name)}, "region": region}
    return {
        "ruleId": diagnostic.code or diagnostic.kind,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": f"{diagnostic.message}; {diagnostic.hint}" if diagnostic.hint else diagnostic.message},
        "locations": [{"physicalLocation": location}],
    }
