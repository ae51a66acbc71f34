"""Run one load on a server: send its parts in one request, or report that they exceed the limit for a request.

Both the Python client and the command line use this module, so it imports neither Arrow nor the schema language.
"""

from collections.abc import Iterable, Sequence
from os import PathLike

from omnigraph.api.results.receipt import BadRow, LoadReport
from omnigraph.errors import ClientError, ResourceLimitExceeded, UsageError
from omnigraph.records.frozen import record

from .exchange import Exchange
from .failures import read_known_members
from .load_limits import find_exceeded_limit, read_load_limit
from .load_parts import LoadPart
from .load_problems import SentFile
from .load_requests import MAX_LISTED_PROBLEMS, LoadSettings, ReportProgress, make_body, send_parts
from .replies import Reply


@record
class ExceededLimit:
    """The outcome of a load that is too large for one request. `limit` is the maximum size of a request in bytes."""

    limit: int


def send_load(
    exchange: Exchange, parts: Sequence[LoadPart], settings: LoadSettings, report_progress: ReportProgress
) -> Reply | ExceededLimit:
    """Send a load in one request. Return the response, or the limit if the load exceeds it."""
    size = make_body(parts, settings.csv).size
    limit = read_load_limit(exchange, size)
    if size > limit:
        return ExceededLimit(limit)
    files = [SentFile(part.label) for part in parts]
    try:
        return send_parts(exchange, parts, files, settings, report_progress=report_progress)
    except ResourceLimitExceeded as error:
        return ExceededLimit(find_exceeded_limit(error, size))


def count_listed_problems(max_errors: int | None, *, wants_report: bool, wants_rejects: bool) -> int | None:
    """Return how many problems the server must list, or None if it reports only the first one."""
    if wants_rejects:
        return MAX_LISTED_PROBLEMS
    if not wants_report:
        return None
    return MAX_LISTED_PROBLEMS if max_errors is None else min(max_errors, MAX_LISTED_PROBLEMS)


def take_report(error: ClientError) -> LoadReport | None:
    """Return the problems that an error lists, and remove them from the error; return None if there are none."""
    if "problems" not in error.details:
        return None
    problems = [read_known_members(BadRow, problem) for problem in error.details.pop("problems")]
    return LoadReport(tuple(problems), error.details.pop("problems_left_out", 0), error=error)


def write_reject_files(folder: str | PathLike[str], problems: Iterable[BadRow]) -> None:
    """Write problems to a folder, as a load into an embedded graph does."""
    from omnigraph.ingest.rejects import REJECT_SCHEMA, write_reject_rows

    write_reject_rows(folder, [{name: getattr(problem, name) for name in REJECT_SCHEMA.names} for problem in problems])


def check_row_limit(max_row_bytes: int | None) -> None:
    """Raise `UsageError` for a maximum row size that is not a positive integer."""
    if max_row_bytes is not None and (type(max_row_bytes) is not int or max_row_bytes < 1):
        raise UsageError(reason=f"max_row_bytes must be a positive integer, not {max_row_bytes!r}")
