"""Exit codes of the program, defined in one place.

The extended codes are used only with `OMNIGRAPH_EXIT_CODES=extended`.
"""

import os
from collections.abc import Iterable

from omnigraph import errors
from omnigraph.diagnostics import Diagnostic

OK = 0
FAILED = 1
DIFFERENCES = 5
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143


def code_of(error: Exception) -> int:
    """Return the exit code for an error.

    >>> code_of(errors.ParseError("no"))
    1
    """
    if not isinstance(error, errors.OmnigraphError):
        return FAILED
    extended = os.environ.get("OMNIGRAPH_EXIT_CODES") == "extended"
    return error.extended_exit_code if extended else error.exit_code


def of_findings(found: Iterable[Diagnostic], *, strict: bool = False) -> int:
    """Return the exit code of a check: 1 for errors; 5 for warnings if `strict`.

    >>> of_findings([Diagnostic("hm", severity="warning")], strict=True)
    5
    """
    severities = {one.severity for one in found}
    if "error" in severities:
        return FAILED
    return DIFFERENCES if strict and "warning" in severities else OK
