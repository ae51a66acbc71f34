"""Tasks of worker processes: write, increment, race for a name."""

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from omnigraph.errors import AlreadyExists, BranchNotFound, Conflict, VersionConflict
from omnigraph.history import branches
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.publish import branch_lifecycle
from omnigraph.publish.publish import publish
from omnigraph.publish.read_set import ReadSet
from omnigraph.publish.requirements import SameContent
from omnigraph.publish.write_plan import CommitMetadata, PreparePlan, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.scan import find_rows
from omnigraph.storage.stage_rows import stage_change
from omnigraph.storage.store import open_store
from omnigraph.values.clock_and_ids import random_fraction
from omnigraph.values.table_key import TableKey
from tests.rig.timeouts import PATIENCE
from tests.rig.writes import (
    CITY,
    LIVES_IN,
    PERSON,
    append,
    delete,
    line_at,
    overwrite,
    plan,
    rewrite,
    shaped,
    update,
    write,
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a writer reports: acknowledged commits, conflicts it was told of, swaps it lost."""

    commits: tuple[Commit, ...]
    conflicts: int
    lost: int


def insert_many(root: str, branch: str, who: str, count: int) -> Told:
    """Insert rows one by one; a conflict is counted and tried again."""
    line = line_at(root, branch)
    done: list[Commit] = []
    conflicts, before = 0, lost_swaps(line)
    while len(done) < count:
        try:
            made = write(line, append({f"{who}-{len(done)}": 1}))
        except Conflict:
            conflicts += 1
        else:
            assert made is not None
            done.append(made)
    return Told(tuple(done), conflicts, lost_swaps(line) - before)


def lost_swaps(line: BranchState) -> int:
    """How often a state of this line was written and then not swapped in."""
    counts = line.store.effects.counts_by_kind()
    return counts["state"] - counts["publish"]


def increment_many(root: str, key: str, times: int) -> Told:
    """Read a number by key and write it back one higher, keeping its row id."""
    line = line_at(root)
    before = lost_swaps(line)
    done: list[Commit] = []
    for _ in range(times):
        done.append(_increment(line, key))
        time.sleep(0.02 * random_fraction())  # the rewriter wins now and then
    return Told(tuple(done), 0, lost_swaps(line) - before)


def _increment(line: BranchState, key: str) -> Commit:
    def prepare(txn: WriteTxn) -> PublishPlan:
        table = txn.table(PERSON)
        found = find_rows(table, "id", [key], ["id", "n"])
        rows = shaped(table, {key: found["n"][0].as_py() + 1})
        row_ids, addresses = found["_rowid"].to_pylist(), found["_rowaddr"].to_pylist()
        staged = stage_change(line.store, table, removed_addresses=addresses, replacements=(row_ids, rows))
        return PublishPlan("update", {PERSON: staged}, gc_epoch=txn.base.state.head.gc_epoch)

    made = publish(line, prepare)
    assert made is not None
    return made


def tidy_until(root: str, stop: str) -> int:
    """Rewrite the fragments of a table again and again, once at least; gives how often."""
    line, done = line_at(root), 0
    while not done or not Path(stop).exists():
        line.refresh()
        done += write(line, rewrite()) is not None
    return done


def tidy(root: str) -> Commit | None:
    """Rewrite the fragments of a table once."""
    return write(line_at(root), rewrite())


def put(root: str, change: str, rows: dict[str, int], branch: str = "main") -> Commit | None:
    """One write on the newest state."""
    kinds = {"append": append, "update": update}
    return write(line_at(root, branch), kinds[change](rows))


def remove(root: str, ids: list[str]) -> Commit | None:
    """Delete rows on the newest state."""
    return write(line_at(root), delete(ids))


def put_with_key(root: str, key: str, rows: dict[str, int], gate: str) -> str | None:
    """One keyed write whose table is staged before all others begin to swap."""
    line = line_at(root)

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        made = plan(txn, append(rows))
        meet(gate)
        return made

    made = publish(line, prepare, CommitMetadata(idempotency_key=key, request_hash="r"))
    return made.id if made else None


def update_what_was_shown(root: str, rows: dict[str, int], gate: str) -> str:
    """A strict update decided on what was seen before all others had decided, too."""
    line = line_at(root)
    shown = ReadSet(line.refresh().state.tables)
    meet(gate)
    try:
        made = write(line, update(rows), conditions=[shown.require_unchanged([PERSON])])
    except VersionConflict as error:
        return f"{error.code} {error.expected} {error.actual}"
    return "written" if made else "nothing"


def join_if_city(root: str, city: str, gate: str, careful: bool) -> bool:
    """Write an edge to a city that is there; careful: only while the cities have not changed."""

    def decide(txn: WriteTxn) -> PublishPlan | None:
        if not find_rows(txn.table(CITY), "id", [city], ["id"]).num_rows:
            return None
        return plan(txn, append({"edge": 1}), [LIVES_IN])

    return _decided(root, decide, CITY if careful else None, gate)


def drop_city_if_free(root: str, gate: str, careful: bool) -> bool:
    """Remove all cities while no edge leads to one; careful: only while edges have not changed."""

    def decide(txn: WriteTxn) -> PublishPlan | None:
        if txn.table(LIVES_IN).dataset.count_rows():
            return None
        return plan(txn, overwrite({}), [CITY])

    return _decided(root, decide, LIVES_IN if careful else None, gate)


def _decided(root: str, decide: PreparePlan, read: TableKey | None, gate: str) -> bool:
    """Publish what was decided, having planned before anybody swapped."""
    line, met = line_at(root), False

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        nonlocal met
        made, entry = decide(txn), txn.table_entry(read or TableKey(""))
        if not met:
            met = True
            meet(gate)
        if made is None or entry is None:
            return made
        same = SameContent(entry.key, entry.content_id, entry.version)
        return replace(made, requirements=(*made.requirements, same))

    return publish(line, prepare) is not None


def insert_if_absent(root: str, rows: dict[str, int], gate: str) -> str:
    """A strict insert: an id that exists is a conflict, told to the caller."""
    line = line_at(root)
    met = False

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        nonlocal met
        made = plan(txn, append(rows))
        assert made is not None
        for one in made.requirements:
            one.check(txn)
        if not met:
            met = True
            meet(gate)
        return made

    try:
        publish(line, prepare)
    except Conflict as error:
        return error.code
    return "written"


def meet(gate: str) -> None:
    """Wait until the file `gate` names as many as should come: `<directory>/<count>`."""
    place, wanted = Path(gate).parent, int(Path(gate).name)
    place.mkdir(parents=True, exist_ok=True)
    (place / f"came-{time.monotonic_ns()}-{id(place)}").touch()
    end = time.monotonic() + PATIENCE
    while len(list(place.glob("came-*"))) < wanted:
        if time.monotonic() > end:
            raise TimeoutError("the others did not come")
        time.sleep(0.002)


def create_and_delete(root: str, name: str, rounds: int) -> tuple[list[str], int, int]:
    """Create and delete one branch name again and again.

    Gives what was created, how many more were deleted by others at once, and the own deletions.
    """
    store = open_store(root, durability="os")
    main = branches.open_branch(store, "main")
    created, at_once, deleted = [], 0, 0
    for _ in range(rounds):
        try:
            created.append(branch_lifecycle.create_branch(store, name, main).ulid)
        except AlreadyExists:
            pass
        except BranchNotFound:
            at_once += 1
        with suppress(BranchNotFound):
            branch_lifecycle.delete_branch(store, name)
            deleted += 1
    return created, at_once, deleted


def create(root: str, name: str) -> str:
    """Create a branch from main: its name, or the code of the refusal."""
    store = open_store(root, durability="os")
    try:
        branch_lifecycle.create_branch(store, name, branches.open_branch(store, "main"))
    except AlreadyExists as error:
        return error.code
    return name
