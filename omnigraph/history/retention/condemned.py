"""What a collector is about to remove, as others see it: the condemned lists of all runs.

Owns the look that comes before anything old is named: who stands under an intent and finds all
that it names in no list, and there, may name it. It never removes anything.
"""

from collections.abc import Iterable

from omnigraph.errors import ConcurrentCommit, HistoryReclaimed
from omnigraph.history.commit import TableEntry
from omnigraph.history.state import State
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import version_files

from .live import Live

CONDEMNED = "condemned"


def list_runs(store: Store) -> list[str]:
    """The runs of collectors that have a condemned list: one listing."""
    names = (one.name.rpartition("/")[2] for one in store.objects.list(layout.GC))
    return [name.removesuffix(f".{CONDEMNED}") for name in names if name.endswith(CONDEMNED)]


def read_condemned(store: Store, run: str) -> list[str] | None:
    """The names in the list of one run; None when it is over."""
    facts = store.objects.read_json(layout.gc_name(run, CONDEMNED))
    return None if facts is None else list(facts["names"])


def check_kept(store: Store, state: State, commit_id: str) -> None:
    """Refuse to name a state of the past that is gone, or that a collector may just remove.

    The caller's intent stands already: what no list names now is seen by every later look.
    """
    listed = [name for run in list_runs(store) for name in read_condemned(store, run) or ()]
    if store.objects.read(state.schema.location) is None:
        raise reclaimed(commit_id)
    live = Live(names={state.schema.location})
    try:
        for one in state.tables.values():
            # Opened anew: a handle that is held proves nothing about files.
            add_version(store, live, one) if listed else store.open(one.location, one.lance_version)
    except FileNotFoundError as error:
        raise reclaimed(commit_id) from error
    if any(live.holds(name) for name in listed):
        raise ConcurrentCommit(
            f"a cleanup is about to remove the state of commit {commit_id}",
            hint="try again in a moment; if the cleanup was cut off, run it again first",
        )


def add_version(store: Store, live: Live, entry: TableEntry) -> None:
    """Everything that a table version consists of."""
    files = version_files(store, entry.location, entry.lance_version)
    live.add_version(entry.location, entry.lance_version, files)


def reclaimed(commit_id: str) -> HistoryReclaimed:
    """The error of a state that cleanup took."""
    message = f"cleanup removed the state of commit {commit_id}"
    return HistoryReclaimed(
        message,
        first_unreadable_commit_id=commit_id,
        hint="name a newer commit; `omnigraph cleanup` keeps as many as --keep says",
    )


def all_listed(store: Store, runs: Iterable[str]) -> set[str]:
    """The names in the lists of some runs."""
    return {name for run in runs for name in read_condemned(store, run) or ()}
