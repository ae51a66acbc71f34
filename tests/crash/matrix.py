"""The crash matrix: every verb, every durable effect, every kind of crash, and the state left.

`python -m tests.crash.matrix` prints the whole table, which is kept as a golden file.
"""

import multiprocessing
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from omnigraph.api import opening as graphs
from omnigraph.errors import AlreadyExists, BranchNotFound, GraphNotInitialized, OmnigraphError
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import manifest_exists, read_manifest
from omnigraph.history.refs import find_ref
from omnigraph.history.tags import list_tags
from omnigraph.maintenance.index_maintenance import MAINTENANCE_ACTOR
from omnigraph.publish.recover import recover
from omnigraph.storage.effects import DurableEffect, Fault
from omnigraph.storage.layout import MAIN, TAGS
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.table import open_table
from tests.crash.verbs import EXIT, VERBS, copy_beside, end_after, make_start, overdue, write_elsewhere
from tests.rig.invariants import check_invariants, files
from tests.rig.writes import append, write

How = Literal["exit", "before", "after"]
Elsewhere = Callable[[str, str], object]  # one more write by a process that knows nothing
HOWS: tuple[How, ...] = ("exit", "before", "after")
_SPAWN = multiprocessing.get_context("spawn")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{27,}|[0-9A-Z]{26}|[0-9a-f]{16,}|[0-9]{10,}")


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything a reader sees: the rows and the history of every branch; None: no graph."""

    rows: Any
    history: Any


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    verb: str
    at: int
    effect: str
    outcomes: tuple[str, ...]

    def __str__(self) -> str:
        cells = (f"{self.verb:<18}", f"{self.at:<2}", f"{self.effect:<34}")
        return "  ".join((*cells, *(f"{one:<24}" for one in self.outcomes))).rstrip()


class Matrix:
    """Cuts verbs off in copies of a few graphs below one directory."""

    def __init__(self, place: Path, elsewhere: Elsewhere) -> None:
        self.place = place
        self.elsewhere = elsewhere
        self.count = 0

    def rows(self, verb: str, hows: Sequence[How] = HOWS, every: int = 1) -> Iterator[Row]:
        """The lines of a verb; with `every`, only each so many effects are cut."""
        before, after, effects = self.whole(verb)
        for at, effect in list(enumerate(effects, 1))[::every]:
            outcomes = tuple(self.cut(verb, at, how, before, after) for how in hows)
            yield Row(verb, at, f"{effect.kind} {anonymous(effect.target)}", outcomes)

    def whole(self, verb: str) -> tuple[Shape, Shape, list[DurableEffect]]:
        """What a verb that nobody cuts off does: before, after, and the effects between."""
        root = self.copy(verb)
        made = VERBS[verb].made_at(root)
        before = shape(made, quiet=VERBS[verb].quiet)
        effects = _effects(verb, root)
        return before, shape(made, quiet=VERBS[verb].quiet), effects

    def copy(self, verb: str) -> str:
        """A fresh copy of the graph that a verb starts from."""
        self.count += 1
        start = make_start(VERBS[verb].start, self.place)
        return str(shutil.copytree(start, self.place / f"{verb}-{self.count}"))

    def cut(self, verb: str, at: int, how: How, before: Shape, after: Shape) -> str:
        """Cut a verb off at one effect, and say what is left: at once, and when all is settled."""
        cut = Cut(verb, self.copy(verb))
        told = _end(verb, cut.root, at) if how == "exit" else _fail(verb, cut.store, at, how)
        outcome = cut.judged(told, before, after, self.elsewhere)
        shutil.rmtree(cut.root)
        return outcome


class Cut:
    """A graph in which a verb is cut off, and a handle on it that was open before."""

    def __init__(self, verb: str, root: str) -> None:
        self.verb, self.root, self.made = verb, root, VERBS[verb].made_at(root)
        self.store = open_store(root, durability="os")
        self.line = open_branch(self.store, MAIN) if manifest_exists(self.store) else None
        self.source = files(self.store)
        self.past = past(root, VERBS[verb].keeps) if self.line is not None else {}

    def judged(self, told: str, before: Shape, after: Shape, elsewhere: Elsewhere) -> str:
        """What is left, at once and when all is settled, and what the caller was told."""
        beside, verb = self.made != self.root, VERBS[self.verb]
        assert not beside or files(self.store) == self.source
        left = _which(shape(self.made, quiet=verb.quiet), before, after)
        assert read_past(self.root, self.past) == self.past, "the past is not what it was"
        alone = self.line is not None and verb.alone
        commits = [] if self.line is None or alone else [_next(self.line)]
        _settle(self.root, self.store)
        if self.line is not None and alone:
            commits = [_next(self.line)]
        settled = _which(shape(self.made, {"next"}, quiet=verb.quiet), before, after)
        # A handle that was open goes on, and so does a process that knows nothing.
        elsewhere(self.root, "elsewhere")
        assert read_past(self.root, self.past) == self.past, "the past is not what it was"
        if verb.end is not None:
            verb.end(open_store(self.root, durability="os"))
        check_invariants(self.root, acknowledged=commits, drifted=verb.drifted)
        if beside:
            _judge_copy(self.store, self.made, settled)
        if not self.verb.startswith("recover"):
            _truth(told, left, settled)
        return f"{left if left == settled else f'{left} > {settled}'} {told}".strip()


def shape(root: Path | str, ignored: Set[str] = frozenset(), *, quiet: bool = False) -> Shape:
    """What a reader sees; rows and commits of `ignored` ids, added by the test, are left out.

    So are, when it is `quiet`, commits of maintenance.
    """
    store = open_store(str(root))
    if not manifest_exists(store):
        return Shape(None, None)
    rows, history = {}, {}
    refs = [find_ref(store, name) for name in list_branches(store)]
    refs += [find_ref(store, one.name, TAGS) for one in list_tags(store)]
    for ref in refs:
        name, state = f"{ref.directory}/{ref.name}", read_manifest(store, ref.ulid).state
        if not state.head.closed:
            tables = {key: whole_rows(store, one) for key, one in state.tables.items()}
            rows[name] = {k: [r for r in v if r[0] not in ignored] for k, v in tables.items()}
            line = list(HistoryLog(store, state).first_parents(state.head.commit_id))
            line = [one for one in line if not (quiet and one.actor == MAINTENANCE_ACTOR)]
            history[name] = [one.operation for one in line if one.message not in ignored]
    return Shape(rows, history)


Past = dict[tuple[str, str], dict[str, list[tuple[Any, ...]]]]


def whole_rows(store: Store, entry: TableEntry) -> list[tuple[Any, ...]]:
    """Every row of a table version with all its values, by id."""
    rows = open_table(store, entry.location, entry.lance_version).dataset.to_table().to_pylist()
    return sorted((row.pop("id"), *sorted(row.items())) for row in rows)


def past(root: Path | str, keep: int) -> Past:
    """The rows of the newest commits of every branch."""
    store = open_store(str(root))
    found: list[tuple[str, str]] = []
    for name in list_branches(store) if keep else ():
        state = read_manifest(store, find_ref(store, name).ulid).state
        commits = list(HistoryLog(store, state).first_parents(state.head.commit_id))[:keep]
        found += [(name, one.id) for one in commits]
    return read_past(root, found)


def read_past(root: Path | str, commits: Iterable[tuple[str, str]]) -> Past:
    """The rows of commits, read by a store that knows nothing yet."""
    store = open_store(str(root))
    found: Past = {}
    for name, commit_id in commits:
        log = HistoryLog(store, read_manifest(store, find_ref(store, name).ulid).state)
        tables, _ = log.tables_and_schema_at(commit_id)
        found[name, commit_id] = {key: whole_rows(store, one) for key, one in tables.items()}
    return found


def _effects(verb: str, root: str) -> list[DurableEffect]:
    store = open_store(root, durability="os")
    with overdue(), store.effects.recording() as seen:
        VERBS[verb].run(store)
    return seen


def _end(verb: str, root: str, at: int) -> str:
    child = _SPAWN.Process(target=end_after, args=(verb, root, at))
    child.start()
    child.join()
    assert child.exitcode == EXIT, f"{verb} {at}: ended with {child.exitcode}"
    return ""


def _fail(verb: str, store: Store, at: int, how: Literal["before", "after"]) -> str:
    """Run a verb that fails, and say what its caller was told."""
    with overdue(), store.effects.failing(Fault(at, how)):
        try:
            done = VERBS[verb].run(store)
        except OmnigraphError as error:
            return f"({error.effect})"
        except OSError:
            return "(unknown)"
    return told_by(done)


def told_by(done: object) -> str:
    """What a caller is told who gets an answer: all was done, or something could not be."""
    return "(in part)" if getattr(done, "failed", ()) else "(done)"


def _next(line: Any) -> Commit:
    from omnigraph.publish.write_plan import CommitMetadata

    commit = write(line, append({"next": 0}), signature=CommitMetadata(message="next"))
    assert commit is not None
    return commit


def _settle(root: str, store: Store) -> None:
    """Open as the next process would, twice: the second time there is nothing left to do."""
    if not manifest_exists(store):
        return
    with overdue():
        graphs.open(root, durability="os")
        for name in list_branches(store):
            try:
                open_branch(store, name)
            except BranchNotFound:
                assert name not in list_branches(store)
        before = files(store)
        assert recover(store) == []
        assert files(store) == before


def _judge_copy(source: Store, made: str, settled: str) -> None:
    """A copy is a graph that goes on; or it is refused, and can be made again when it is gone."""
    if settled == "after":
        graphs.open(made, durability="os")
        check_invariants(made, acknowledged=[_next(open_branch(open_store(made), MAIN))])
    else:
        with pytest.raises(GraphNotInitialized):
            graphs.open(made)
        if files(open_store(made)):
            with pytest.raises(AlreadyExists, match="not empty"):
                copy_beside(source)
            _clear(made)
        copy_beside(source)
        assert shape(made) == shape(source.root.uri)
    _clear(made)


def _clear(made: str) -> None:
    store = open_store(made)
    if store.root.is_local:
        shutil.rmtree(made)
    for name in files(store):
        store.objects.remove(name)


def _which(found: Shape, before: Shape, after: Shape) -> str:
    if before == after:
        assert found == before
        return "same"
    if found == before:
        return "before"
    if found == _refused(before):
        return "refused"
    if before.rows and found == _union(before, after) != after:
        return "both"  # names of one branch: the new one is there, the old one still
    assert found == after, f"between: {found}\nbefore: {before}\nafter: {after}"
    return "after"


def _union(one: Shape, other: Shape) -> Shape:
    return Shape({**one.rows, **other.rows}, {**one.history, **other.history})


def _refused(before: Shape) -> Shape:
    """As before, with the refusal of a long operation on main."""
    told = {
        name: ["refused", *line] if name.endswith(f"/{MAIN}") else line for name, line in (before.history or {}).items()
    }
    return Shape(before.rows, told)


def _truth(told: str, left: str, settled: str) -> None:
    """A failure without effect has none, for ever; what was done is there at once."""
    if settled == "same":
        return
    if told == "(none)":
        assert (left, settled) == ("before", "before")
    if told == "(done)":
        assert settled == "after"


def anonymous(target: str) -> str:
    """A name without what is new each time."""
    return _ID.sub("*", target)


@contextmanager
def another_process() -> Iterator[Elsewhere]:
    """A process beside this one that writes when it is asked to."""
    with ProcessPoolExecutor(1, mp_context=_SPAWN) as pool:
        yield lambda root, row: pool.submit(write_elsewhere, root, row).result()


def main(verbs: Sequence[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as place, another_process() as elsewhere:
        matrix = Matrix(Path(place), elsewhere)
        for verb in verbs or VERBS:
            for row in matrix.rows(verb):
                print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
