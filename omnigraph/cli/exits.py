"""The program's exit codes.

Codes that distinguish more kinds of errors are used only with `OMNIGRAPH_EXIT_CODES=extended`.
"""

import os
from collections.abc import Iterable

from omnigraph import errors
from omnigraph.errors.diagnostics import Diagnostic

OK = 0
FAILED = 1
DIFFERENCES = 5
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143


def error_exit_code(error: Exception) -> int:
    """Return the exit code for an error.

    >>> error_exit_code(errors.ParseError("no"))
    1
    """
    if not isinstance(error, errors.OmnigraphError):
        return FAILED
    use_extended = os.environ.get("OMNIGRAPH_EXIT_CODES") == "extended"
    return error.extended_exit_code if use_extended else error.exit_code


def diagnostics_exit_code(diagnostics: Iterable[Diagnostic], *, strict: bool = False) -> int:
    """Return the exit code for a check: 1 for errors, 5 for warnings if `strict` is set, and otherwise 0.

    >>> diagnostics_exit_code([Diagnostic("hm", severity="warning")], strict=True)
    5
    """
    severities = {diagnostic.severity for diagnostic in diagnostics}
    if "error" in severities:
        return FAILED
    return DIFFERENCES if strict and "warning" in severities else OK
