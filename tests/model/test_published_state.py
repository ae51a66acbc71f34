"""The state that a publish keeps in memory equals what a fresh reader loads.

Random publishes of every kind by two writers that know nothing of one another, with a log that
seals and merges all the time. A plain dictionary is the oracle for the state of every commit.
"""

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.history import commit_log as logs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit, SchemaRow, TableEntry
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import read_manifest, swap_state
from omnigraph.history.state import GraphState
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey
from tests.rig.depth import repeats
from tests.rig.independent_writers import apart
from tests.rig.writes import CITY, append, init_small, rewrite, write

KINDS = "insert rewrite register drop adopt schema stream refused merge fence insert insert".split()
Known = tuple[dict[TableKey, TableEntry], SchemaRow]


@dataclass
class World:
    """A graph, two writers, and what every commit is known to show."""

    root: Path
    writers: tuple[BranchState, BranchState]
    known: dict[str, Known] = field(default_factory=dict)
    head: str = ""
    count: int = 0

    def fresh(self) -> GraphState:
        return read_manifest(apart(self.root).store).state


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fold") / "g"
    write(apart(init_small(root).root.path), append({"rome": 1}), [CITY])
    return root


def _world(template: Path, root: Path) -> World:
    shutil.copytree(template, root)
    world = World(root, (apart(root), apart(root)))
    state = world.fresh()
    log = HistoryLog(apart(root).store, state)
    for one in log.first_parents(state.head.commit_id):
        world.known[one.id] = log.tables_and_schema_at(one.id)
    world.head = state.head.commit_id
    return world


def _entry(key: TableKey, content: str, version: int) -> TableEntry:
    return TableEntry(key, f"nodes/{content}", version, (1 << 63) + version, content, version, "x")


def _foreign(world: World, length: int, start: str) -> Iterator[Commit]:
    """Commits of a branch that forked from a known commit."""
    parent = start
    for n in range(length):
        one = clock_and_ids.new_ulid()
        tables, schema = world.known[parent]
        entry = _entry(TableKey("node:Side"), one, n + 1)
        world.known[one] = ({**tables, entry.key: entry}, schema)
        yield Commit(one, (parent,), "insert", "side", 1, 0, 0, tables={TableKey("node:Side"): entry})
        parent = one


def _plan(world: World, kind: str, dice: st.DataObject) -> PublishPlan:
    tables, _ = world.known[world.head]
    made = sorted(key for key in tables if key.startswith("node:N") or key == "node:Side")
    key = dice.draw(st.sampled_from(made)) if made else None
    name = TableKey.node(f"N{world.count}")
    if kind == "register":
        entry = _entry(name, clock_and_ids.new_ulid(), 1)
        return PublishPlan("schema_apply", new_tables={name: entry})
    if kind == "drop" and key is not None:
        return PublishPlan("schema_apply", dropped_tables=frozenset([key]))
    if kind == "adopt" and key is not None:
        entry = _entry(key, clock_and_ids.new_ulid(), tables[key].version)
        return PublishPlan("revert", adopted_tables={key: entry})
    if kind == "merge":
        start = dice.draw(st.sampled_from(sorted(world.known)))
        side = tuple(_foreign(world, dice.draw(st.integers(1, 7)), start))
        return PublishPlan("merge", incoming_commits=side, merged_head=side[-1].id)
    return _plain(kind, world.count)


def _plain(kind: str, count: int) -> PublishPlan:
    if kind == "schema":
        return PublishPlan("schema_apply", schema=SchemaRow(f"h{count}", "_schemas/s"))
    if kind == "stream":
        return PublishPlan("load", streams={f"s{count % 3}": str(count)})
    return PublishPlan("refused")


def _publish(world: World, line: BranchState, kind: str, dice: st.DataObject) -> Commit | None:
    if kind == "insert":
        return write(line, append({f"r{world.count}": world.count}), [CITY])
    if kind == "rewrite":
        return write(line, rewrite(), [CITY])
    if kind == "fence":
        base = line.reload()
        head = replace(base.state.head, gc_epoch=base.state.head.gc_epoch + 1, nonce=clock_and_ids.new_nonce())
        line.advance(swap_state(line.store, base, replace(base.state, head=head)))
        return None
    plan = _plan(world, kind, dice)
    signature = CommitMetadata("me", f"{kind} é", f"key{world.count}", "r") if world.count % 2 else None
    return publish(line, lambda _: plan, signature)


def _remember(world: World, made: Commit | None) -> None:
    if made is None:
        return
    tables, schema = world.known[world.head]
    after = {key: one for key, one in {**tables, **made.tables}.items() if one is not None}
    world.known[made.id] = (after, made.schema or schema)
    assert made.parent == world.head
    world.head = made.id


def _agree(world: World, line: BranchState) -> None:
    fresh = world.fresh()
    assert line.last_known().state == fresh
    assert (dict(fresh.tables), fresh.schema) == world.known[world.head]
    log = HistoryLog(line.store, fresh)
    sealed = [one.id for chunk in fresh.chunks for one in log.chunk_commits(chunk)]
    counted = Counter([*sealed, *(one.id for one in fresh.tail)])
    assert counted == dict.fromkeys(counted, 1)
    assert set(log.ancestors(world.head)) <= set(counted) == set(world.known)
    assert fresh.tail[-1].id == world.head
    assert [one.commit_count for one in fresh.chunks] == [len(log.chunk_commits(chunk)) for chunk in fresh.chunks]


def _every_commit_shows_what_it_showed(world: World) -> None:
    state = world.fresh()
    for one, then in world.known.items():
        assert HistoryLog(world.writers[0].store, state).tables_and_schema_at(one) == then


def _run(template: Path, seal: int, fan: int, steps: list[tuple[str, int]], dice: st.DataObject) -> None:
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "CHUNK_COMMITS", seal)
        patch.setattr(logs, "MERGE_FAN_IN", fan)
        patch.setattr(logs, "MAX_CHUNK_COMMITS", seal * fan * fan)
        world = _world(template, Path(place) / "g")
        for kind, who in steps:
            world.count += 1
            line = world.writers[who]
            made = _publish(world, line, kind, dice)
            _remember(world, made)
            _agree(world, line) if made else None
        _every_commit_shows_what_it_showed(world)


STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 1)), min_size=4, max_size=24)
QUIET = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)


@settings(max_examples=8, suppress_health_check=QUIET)
@given(seal=st.integers(1, 4), fan=st.integers(2, 3), steps=STEPS, dice=st.data())
def test_published_state_in_memory_equals_the_stored_state(
    template: Path, seal: int, fan: int, steps: list[tuple[str, int]], dice: st.DataObject
) -> None:
    _run(template, seal, fan, steps, dice)


@pytest.mark.full
@pytest.mark.timeout(1200)
@settings(max_examples=repeats(40), suppress_health_check=QUIET)
@given(seal=st.integers(1, 5), fan=st.integers(2, 4), steps=STEPS, dice=st.data())
def test_published_state_of_many_histories_equals_the_stored_state(
    template: Path, seal: int, fan: int, steps: list[tuple[str, int]], dice: st.DataObject
) -> None:
    _run(template, seal, fan, steps, dice)
