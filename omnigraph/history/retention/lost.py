"""Stop a cleanup before it removes what lost manifest versions need.

The record of a swap names the version it was based on. A base above the newest existing version
proves that newer versions were published and are lost: data that only they reference must stay
until a repair.
"""

from omnigraph.errors import Conflict
from omnigraph.history.audit import list_outcomes
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .survey import Survey, kind_of, version_number

_HINT = (
    "run `omnigraph repair`; if it cannot restore them, restore the files from a backup, or write"
    " to the branch once to give them up"
)


def check_versions_present(store: Store, survey: Survey) -> None:
    """Raise `Conflict` if a manifest has lost its newest versions; nothing was removed then."""
    for place, files in survey.manifests().items():
        names = [one.name for one in files]
        newest = max((version_number(name) or 0 for name in names), default=0)
        bases = [_base(name) for name in names if kind_of(name) == "_transactions"]
        above = max(bases, default=0)
        if not 0 < newest < above or _newest_now(store, place) >= above:
            continue
        if not _were_set_aside(store, place, newest):
            message = f"versions {newest + 1} to {above} of {place} are missing"
            raise Conflict(f"{message}; nothing was removed", hint=_HINT)


def _base(name: str) -> int:
    number = name.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0


def _newest_now(store: Store, place: str) -> int:
    """Return the newest version by a fresh listing: it may have been published since the survey."""
    listed = store.objects.list(f"{place}/_versions")
    return max((version_number(one.name) or 0 for one in listed), default=0)


def _were_set_aside(store: Store, place: str, newest: int) -> bool:
    """Whether newer versions were torn by a power loss and set aside: never acknowledged."""
    return any(
        number > newest
        for one in list_outcomes(store)
        if one.kind == "set_aside" and (number := torn_version_of(one.operation_id, place))
    )


def torn_version_of(event: str, place: str) -> int:
    """Parse the version that an audit event set aside from a manifest; 0 for any other manifest.

    >>> torn_version_of("torn-40d76f1f51639ec0-7-1", "Person"), torn_version_of("01J0", "Person")
    (7, 0)
    """
    prefix = f"torn-{layout.fnv1a64(place)}-"
    number = event.removeprefix(prefix).partition("-")[0] if event.startswith(prefix) else "0"
    return int(number) if number.isdecimal() else 0
