"""Stop a cleanup before it removes data that lost manifest versions need.

A swap's record contains the version that the swap was based on. A base above the newest existing version proves that
newer versions were published and then lost. Data that only these versions reference must be kept until the versions are
repaired.
"""

from omnigraph.errors import Conflict
from omnigraph.history.recovery_records import list_recovery_records
from omnigraph.maintenance.retention.file_survey import FileSurvey
from omnigraph.storage import layout
from omnigraph.storage.file_roles import attached_version_number, subdirectory_of
from omnigraph.storage.store import Store

_HINT = (
    "run `omnigraph repair`; if it cannot restore the versions, restore the files from a backup, or write"
    " to the branch once to abandon the missing versions"
)


def check_versions_present(store: Store, survey: FileSurvey) -> None:
    """Raise `Conflict`, before anything is removed, if a manifest has lost its newest versions."""
    for manifest_directory, files in survey.manifest_files().items():
        file_names = [listed_file.name for listed_file in files]
        newest_version = max((attached_version_number(file_name) or 0 for file_name in file_names), default=0)
        base_versions = [
            _base_version(file_name) for file_name in file_names if subdirectory_of(file_name) == "_transactions"
        ]
        highest_base = max(base_versions, default=0)
        if not 0 < newest_version < highest_base or _newest_listed_version(store, manifest_directory) >= highest_base:
            continue
        if not _newer_was_set_aside(store, manifest_directory, newest_version):
            missing = f"versions {newest_version + 1} to {highest_base} of {manifest_directory}"
            raise Conflict(f"{missing} are missing; nothing was removed", hint=_HINT)


def _base_version(transaction_name: str) -> int:
    number = transaction_name.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0


def _newest_listed_version(store: Store, manifest_directory: str) -> int:
    """Return the newest version from a fresh listing, because a version may have been published after the survey."""
    version_files = store.objects.list(f"{manifest_directory}/_versions")
    return max((attached_version_number(version_file.name) or 0 for version_file in version_files), default=0)


def _newer_was_set_aside(store: Store, manifest_directory: str, newest_version: int) -> bool:
    """Return whether newer, unacknowledged versions were set aside because they were torn by a power loss."""
    return any(
        torn_version > newest_version
        for outcome in list_recovery_records(store)
        if outcome.kind == "set_aside"
        and (torn_version := parse_torn_version(outcome.operation_id, manifest_directory))
    )


def parse_torn_version(event_id: str, manifest_directory: str) -> int:
    """Return the manifest version that was set aside according to an audit event, or 0 if the event is unrelated.

    >>> parse_torn_version("torn-40d76f1f51639ec0-7-1", "Person")
    7
    >>> parse_torn_version("01J0", "Person")
    0
    """
    prefix = f"torn-{layout.fnv1a64(manifest_directory)}-"
    number = event_id.removeprefix(prefix).partition("-")[0] if event_id.startswith(prefix) else "0"
    return int(number) if number.isdecimal() else 0
