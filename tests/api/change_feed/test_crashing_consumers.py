"""Consumers that crash anywhere end equal to the graph.

Random programs (branches of branches, merges in all directions, deletes and new inserts, moved
files, failing stores, branches deleted and made again, other schemas, cleanups) run beside one
reader for each branch.
"""

import shutil
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import pytest

from omnigraph import Graph
from omnigraph.errors import ChangeCursorRejected, ChangeFeedGap, ChangeSchemaBoundary
from tests.api.change_feed.consumer import Consumer, exported
from tests.model.program_runner import Run, Template
from tests.model.random_programs import Author, Program, script, shrunk
from tests.rig.depth import repeats

QUICK, FULL = 7, repeats(120)


class Watched(Run):
    """A program whose branches are read while it runs; what the model checks is left to others."""

    def __init__(self, root: Path, seed: int) -> None:
        self.dice = Random(seed)
        self.readers: dict[str, Consumer] = {}
        super().__init__(root)

    def agree(self, branch: str) -> Graph:
        """Nothing: the programs are checked elsewhere."""
        return self.handle(branch)

    def read(self, branch: str) -> None:
        """A reader of a branch reads on, or begins."""
        graph = self.handle(branch)
        reader = self.readers.setdefault(branch, Consumer(self.dice))
        if reader.cursor is None and self.dice.random() < 0.3:
            reader.take_baseline(graph)
            return
        how = self.dice.choice((reader.read_blocks, reader.read_pages))
        try:
            how(graph)
        except ChangeCursorRejected as error:
            if "deleted and recreated" not in str(error):
                raise
            self.readers[branch] = Consumer(self.dice)
        except (ChangeSchemaBoundary, ChangeFeedGap):
            # What lies between cannot be told: it begins again with everything.
            reader = self.readers[branch] = Consumer(self.dice)
            while not reader.take_baseline(graph):
                pass

    def catch_up(self) -> None:
        """Every reader reads to the end: it has what the graph has, in the order of its commits."""
        for branch in sorted(self.model.heads):
            graph = self.handle(branch)
            head = graph.head.id
            for _ in range(200):
                self.read(branch)
                if head in self.readers[branch].seen or not graph.head.parents:
                    break
            reader = self.readers[branch]
            assert reader.rows == exported(graph), branch
            line = [one.id for one in graph.snapshot.log.first_parents(head)][::-1]
            assert reader.seen == line[len(line) - len(reader.seen) :], "another order"


def failure(program: Program, seed: int) -> BaseException | None:
    """How the readers of a program fail, if they do."""
    place = Path(mkdtemp())
    try:
        Template.copy(place / "g")
        watched = Watched(place / "g", seed)
        for step in program:
            watched.step(step)
            branch = watched.dice.choice(sorted(watched.model.heads))
            watched.read(branch)
        watched.catch_up()
    except Exception as error:
        return error
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return None


def check(seed: int, size: int) -> None:
    """Run one program with readers; a failing one is made small and told."""
    program = Author(seed).program(size)
    first = failure(program, seed)
    if first is not None:
        small = shrunk(program, lambda one: type(failure(one, seed)) is type(first))
        told = failure(small, seed) or first
        pytest.fail(f"program {seed} of {size}: {told!r}\n\n{script(small)}")


def test_crashing_readers_equal_the_graph_in_small_programs() -> None:
    for seed in range(QUICK):
        check(seed, 5 + seed % 7)


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(4))
def test_crashing_readers_equal_the_graph_in_many_programs(part: int) -> None:
    for seed in range(QUICK + part, QUICK + FULL, 4):
        check(seed, 5 + seed % 21)
