"""Killed cleanups, optimizes and writers lose no retained data and leave no garbage."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.maintenance.check import check_graph
from omnigraph.maintenance.retention import claim
from omnigraph.maintenance.retention.collect_garbage import cleanup, preview_cleanup
from omnigraph.publish import intent as intents
from omnigraph.storage.store import Store, open_store
from tests.maintenance.retention.graph_workers import POLICY
from tests.maintenance.retention.killed_workers import entries, play_until
from tests.maintenance.retention.test_cleanup_beside_workers import read_retained
from tests.rig.depth import repeats
from tests.rig.invariants import check_invariants
from tests.rig.plugin import S3
from tests.rig.writes import read_branch

CLEANUPS = repeats(12)
EXPIRED = timedelta(seconds=-1000)


def judge(root: str, place: Path, patch: pytest.MonkeyPatch) -> None:
    """Acknowledged writes are there, retained states can be read, one more cleanup ends all."""
    noted = entries(place)
    assert [one for one in noted if one[0] == "FAILED"] == []
    patch.setattr(intents, "LEASE_DURATION", EXPIRED)
    patch.setattr(claim, "CLAIM_LEASE", EXPIRED)
    omnigraph.open(root, durability="os").close()
    store = open_store(root, durability="os")
    for _ in range(2):
        assert not cleanup(store, POLICY).failed
    lines = {line.ulid: line for line in (open_branch(store, name) for name in list_branches(store))}
    rows = {ulid: _ids(read_branch(line)) for ulid, line in lines.items()}
    written = [one[1:] for one in noted if one[0] == "wrote"]
    assert [name for ulid, name in written if ulid in rows and name not in rows[ulid]] == []
    read_retained(store, lines.values())
    assert left_over(store) == []
    # Edges of these writers have no nodes; everything else must be as it should be.
    assert [one for one in check_graph(store).findings if one.kind != "endpoint"] == []


def left_over(store: Store) -> list[str]:
    """Claims, lists and intents that nobody owns any more, and files that a cleanup would take."""
    names = [one.name for top in ("__gc", "__recovery") for one in store.objects.list(top)]
    return names + [one.type_key or "" for one in preview_cleanup(store, POLICY).datasets]


def _ids(tables: dict[str, list[tuple[str, int]]]) -> set[str]:
    return {one for rows in tables.values() for one, _ in rows}


def expect(counts: Counter[str], cleanups: int) -> None:
    print(dict(counts))
    assert counts["cleaned"] >= cleanups
    assert min(counts[one] for one in ("wrote", "optimized", "compared")) > 0
    assert min(counts[f"killed {job}"] for job in ("clean", "tend", "write")) >= cleanups // 10


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_many_cleanups_with_killed_workers_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(tmp_path / "g")
    counts = play_until(root, tmp_path, CLEANUPS, 1)
    judge(root, tmp_path, monkeypatch)
    check_invariants(tmp_path / "g")
    expect(counts, CLEANUPS)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_many_cleanups_with_killed_workers_on_s3(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.server.environment.items():  # without the proxy, which is slow
        monkeypatch.setenv(name, value)
    counts = play_until(s3.url, tmp_path, CLEANUPS, 2)
    judge(s3.url, tmp_path, monkeypatch)
    expect(counts, CLEANUPS)
