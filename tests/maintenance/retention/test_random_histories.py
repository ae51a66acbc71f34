"""Random histories with cleanups: retained data equals a model, the rest is removed.

The model is a dictionary per commit, and a retention of its own: it knows nothing of files.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.merge_bases import merge_bases
from omnigraph.history.snapshot import load_snapshot
from omnigraph.history.tags import list_tags, open_tag
from omnigraph.maintenance.retention.collect_garbage import cleanup, preview_cleanup
from omnigraph.maintenance.retention.policy import RetentionPolicy
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.tag_lifecycle import create_tag, delete_tag
from omnigraph.storage.store import Store, open_store
from tests.rig.depth import repeats
from tests.rig.writes import (
    CITY,
    PERSON,
    TABLES,
    append,
    delete,
    init_small,
    overwrite,
    read_rows,
    rewrite,
    update,
    write,
)

Rows = dict[str, dict[str, int]]  # by table, then by id
STEP = st.tuples(
    st.sampled_from("append append append update delete overwrite rewrite branch drop tag untag clean".split()),
    st.integers(0, 5),
    st.integers(0, 5),
)


@dataclass
class Model:
    """Every commit as a dictionary, the line of every branch, and the tags."""

    commits: dict[str, Rows] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    reclaimed: set[str] = field(default_factory=set)

    def clean(self, keep: int) -> None:
        """What a cleanup may forget: what no branch keeps, no tag, and no merge to come needs."""
        kept = {one for line in self.lines.values() for one in line[-keep:]}
        kept |= set(self.tags.values()) | self.bases()
        self.reclaimed |= self.commits.keys() - kept

    def bases(self) -> set[str]:
        """Without merges, the base of two branches is the last commit that both have."""
        lines = list(self.lines.values())
        found = set()
        for at, one in enumerate(lines):
            for other in lines[at + 1 :]:
                found.add([a for a, b in zip(one, other, strict=False) if a == b][-1])
        return found


class Life:
    """One graph and its model."""

    def __init__(self, root: str) -> None:
        self.store = init_small(root)
        self.model = Model()
        self.count = 0
        head = open_branch(self.store, "main").refresh().state.head.commit_id
        self.model.commits[head] = {key: {} for key in TABLES}
        self.model.lines["main"] = [head]

    def step(self, what: str, n: int, m: int) -> None:
        names = sorted(self.model.lines)
        branch = names[n % len(names)]
        if what in ("append", "update", "delete", "overwrite", "rewrite"):
            self.write(what, branch, m)
        elif what == "branch":
            self.branch(branch, n, m)
        elif what == "drop" and branch != "main":
            delete_branch(self.store, branch)
            del self.model.lines[branch]
        elif what == "tag" and f"t{m}" not in self.model.tags:
            commit = self.old(branch, n)
            if commit not in self.model.reclaimed:
                create_tag(self.store, f"t{m}", open_branch(self.store, branch), commit_id=commit)
                self.model.tags[f"t{m}"] = commit
        elif what == "untag" and f"t{m}" in self.model.tags:
            delete_tag(self.store, f"t{m}")
            del self.model.tags[f"t{m}"]
        elif what == "clean":
            self.clean(1 + m % 3)

    def old(self, branch: str, back: int) -> str:
        line = self.model.lines[branch]
        return line[max(0, len(line) - 1 - back)]

    def write(self, what: str, branch: str, m: int) -> None:
        line = open_branch(self.store, branch)
        before = self.model.commits[self.model.lines[branch][-1]]
        key = (PERSON, CITY)[m % 2]
        present = sorted(before[key])
        self.count += 1
        after = dict(before[key])
        if what == "append":
            after[f"r{self.count}"] = m
            change = append({f"r{self.count}": m})
        elif what == "update":
            after |= dict.fromkeys(present[:2], 100 + m)
            change = update(dict.fromkeys(present[:2], 100 + m))
        elif what == "delete":
            after = {one: n for one, n in after.items() if one not in present[:1]}
            change = delete(present[:1])
        elif what == "overwrite":
            after = {f"o{self.count}": m}
            change = overwrite(after)
        else:
            change = rewrite()
        made = write(line, change, (key,))
        if made is not None:
            self.model.commits[made.id] = {**before, key: after}
            self.model.lines[branch].append(made.id)

    def branch(self, source: str, n: int, m: int) -> None:
        name = f"b{m % 3}"
        commit = self.old(source, n)
        if name in self.model.lines or commit in self.model.reclaimed:
            return
        create_branch(self.store, name, open_branch(self.store, source), commit_id=commit)
        line = self.model.lines[source]
        self.model.lines[name] = line[: line.index(commit) + 1]

    def clean(self, keep: int) -> None:
        policy = RetentionPolicy(keep=keep, grace=timedelta())
        assert not cleanup(self.store, policy).failed
        self.model.clean(keep)
        self.compare(open_store(self.store.root.uri))
        assert preview_cleanup(self.store, policy).datasets == ()

    def compare(self, store: Store) -> None:
        """Every commit that is retained is there and right, and no file of another one is."""
        assert list_branches(store) == sorted(self.model.lines)
        kept: set[tuple[str, int]] = set()
        for name, line in self.model.lines.items():
            for one in line:
                if one not in self.model.reclaimed:
                    shown = load_snapshot(store, open_branch(store, name), one)
                    kept |= {(e.location, e.lance_version) for e in shown.tables.values()}
                    assert self.read(store, shown.tables) == self.model.commits[one]
        assert {one.name: one.commit_id for one in list_tags(store)} == self.model.tags
        for tag, commit in self.model.tags.items():
            shown = open_tag(store, tag)
            kept |= {(e.location, e.lance_version) for e in shown.tables.values()}
            assert self.read(store, shown.tables) == self.model.commits[commit]
        listed = [one.name for kind in ("nodes", "edges") for one in store.objects.list(kind)]
        found = sum("/_versions/d" in name for name in listed)
        detached = {one for one in kept if one[1] > 1}
        assert found == len(detached)

    def read(self, store: Store, tables: object) -> Rows:
        return {key: dict(read_rows(store, one)) for key, one in tables.items()}  # type: ignore[attr-defined]


def live(steps: list[tuple[str, int, int]]) -> None:
    with TemporaryDirectory() as place:
        life = Life(str(Path(place) / "g"))
        for step in steps:
            life.step(*step)
        life.clean(2)
        life.clean(1)


def test_merge_bases_of_the_model_are_those_of_the_log(tmp_path: Path) -> None:
    life = Life(str(tmp_path / "g"))
    for step in [("append", 0, 1), ("branch", 0, 0), ("append", 0, 1), ("append", 1, 1)]:
        life.step(*step)
    logs = []
    for name in sorted(life.model.lines):
        state = open_branch(life.store, name).refresh().state
        logs.append(HistoryLog(life.store, state).ancestors(state.head.commit_id))
    assert set(merge_bases(*logs)) == life.model.bases()


_quiet = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@settings(_quiet, max_examples=4)
@given(st.lists(STEP, min_size=12, max_size=20))
def test_random_histories_with_cleanups_match_the_model(steps: list[tuple[str, int, int]]) -> None:
    live(steps)


@pytest.mark.full
@pytest.mark.timeout(1800)
@settings(
    max_examples=repeats(40), derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
@given(st.lists(STEP, min_size=20, max_size=50))
def test_many_long_random_histories_match_the_model(steps: list[tuple[str, int, int]]) -> None:
    live(steps)
