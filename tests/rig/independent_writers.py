"""Writers in this process that share no state, like other processes, and file removal.

A line made here shares nothing with the lines of the process: no memory, no queue.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from omnigraph.history import refs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import layout, manifest_cell
from omnigraph.storage.store import open_store
from omnigraph.values.table_key import TableKey
from tests.rig.writes import PERSON, Change, append, plan

_LAST = (1 << 64) - 1


def apart(root: str | Path, branch: str = "main") -> BranchState:
    """A line that knows nothing yet and waits for nobody."""
    store = open_store(str(root), durability="os")
    return BranchState(store, branch, refs.find_ref(store, branch).ulid)


def once(action: Callable[[], object]) -> Callable[[], None]:
    """The action, the first time only."""
    done: list[bool] = []

    def run() -> None:
        if not done:
            done.append(True)
            action()

    return run


def write_while(
    line: BranchState,
    change: Change,
    meanwhile: Callable[[], object],
    keys: tuple[TableKey, ...] = (PERSON,),
    signature: CommitMetadata | None = None,
) -> Commit | None:
    """One write; when it has staged its tables for the first time, something else happens."""
    happen = once(meanwhile)

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        made = plan(txn, change, keys)
        happen()
        return made

    return publish(line, prepare, signature)


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> Iterator[None]:
    """The next swap is held back on its way to the store until something else has happened.

    It lands by its number alone, as a request does that was sent before the others came.
    """
    happen = once(meanwhile)
    real = manifest_cell._commit_strictly

    def commit(store: Any, one: Any, transaction: Any) -> Any:
        happen()
        return real(store, one, transaction)

    with monkeypatch.context() as patch:
        patch.setattr(manifest_cell, "_commit_strictly", commit)
        yield


def people(count: int, start: int = 0) -> Change:
    """New rows `p<n>`."""
    return append({f"p{n}": n for n in range(start, start + count)})


def version_file(line: BranchState, version: int) -> Path:
    """The file of one manifest version on disk."""
    directory = Path(line.store.root.path, layout.manifest_directory(line.ulid), "_versions")
    return directory / f"{_LAST - version:020}.manifest"
