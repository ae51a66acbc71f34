"""The crash matrix on S3: the client crashes at its k-th PUT, inside whatever call sends it.

The request may still reach the store or not; after it nothing is answered any more. What is sent
in parts is there with the POST that ends it: where the last object is such a one, it is cut, too.
So is every removal of a cleanup: they go one after another here, so that each can be told.
`python -m tests.crash.matrix_s3` prints the whole table, which is kept as a golden file.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from omnigraph.errors import OmnigraphError
from omnigraph.storage import file_removal
from omnigraph.storage import root as roots
from omnigraph.storage.store import Store, open_store
from omnigraph.values import clock_and_ids
from tests.crash.matrix import Cut, Elsewhere, Row, Shape, anonymous, another_process, shape, told_by
from tests.crash.verbs import VERBS, make_start, overdue
from tests.rig.plugin import S3
from tests.rig.proxy import Proxy, requests_of
from tests.rig.request_log import Traffic
from tests.rig.seaweed import seaweed
from tests.rig.upload import bring

ARRIVES = (True, False)
_MANY = 16  # removals that only a cleanup needs
_AT_ONCE = {"nodes", "edges", "_commits", "_schemas"}  # what a copy sends in any order


class Sent(NamedTuple):
    """A request that writes: the `at`-th of its method, and the name without what is new."""

    method: str
    at: int
    name: str

    def __str__(self) -> str:
        return self.name if self.method == "PUT" else f"{self.method} {self.name}"


class S3Matrix:
    """Cuts verbs off in copies of a few graphs beside one place in a bucket."""

    def __init__(self, s3: S3, place: Path, elsewhere: Elsewhere) -> None:
        self.s3 = s3
        self.place = place
        self.elsewhere = elsewhere
        self.count = 0

    def rows(self, verb: str, every: int = 1) -> Iterator[Row]:
        """The lines of a verb; with `every`, only each so many requests are cut."""
        before, after, sent = self.whole(verb)
        for at, request in list(enumerate(sent, 1))[::every]:
            outcomes = (self.cut(verb, request, before, after, arrives=one) for one in ARRIVES)
            yield Row(verb, at, str(request), tuple(outcomes))

    def whole(self, verb: str) -> tuple[Shape, Shape, list[Sent]]:
        """What a verb that nobody cuts off does: before, after, and the requests between."""
        root = self.copy(verb)
        made = VERBS[verb].made_at(root)
        before = shape(made, quiet=VERBS[verb].quiet)
        store = open_store(root)
        with overdue(), requests_of(self.s3.proxy) as traffic:
            VERBS[verb].run(store)
        top = made.removeprefix(f"s3://{self.s3.server.bucket}/")
        after = shape(made, quiet=VERBS[verb].quiet)
        return before, after, _sent(traffic, top, at_once=made != root)

    def copy(self, verb: str) -> str:
        """A fresh copy of the graph that a verb starts from: made on a disk, and brought here."""
        self.count += 1
        root = f"{self.s3.url}-{verb}-{self.count}"
        start = make_start(VERBS[verb].start, self.place)
        bring(self.s3.server, start, root)
        return root

    def cut(self, verb: str, at: Sent, before: Shape, after: Shape, *, arrives: bool) -> str:
        """Cut a verb off at one request, and say what is left: at once, and when all is settled."""
        cut = Cut(verb, self.copy(verb))
        rule = self.s3.proxy.cut(at.at, at.method, forward=arrives)
        told = _run(verb, cut.store)
        self.s3.proxy.heal()
        assert rule.hit.is_set(), f"{verb} sent no {at.at} {at.method}"
        return cut.judged(told, before, after, self.elsewhere)


def _sent(traffic: Traffic, top: str, *, at_once: bool) -> list[Sent]:
    def names(method: str) -> list[str]:
        keys = [one.key.removeprefix(f"{top}/") for one in traffic.seen if one.method == method]
        return _in_order(keys) if at_once else [anonymous(one) for one in keys]

    puts, posts = names("PUT"), names("POST")
    last = [Sent("POST", len(posts), posts[-1])] if posts else []
    sent = [Sent("PUT", at, name) for at, name in enumerate(puts, 1)]
    return [*sent, *last, *_swept(names("DELETE"))]


def _swept(names: Sequence[str]) -> list[Sent]:
    """Every removal of a cleanup; others remove little, and nothing that is missed."""
    swept = names if len(names) >= _MANY else ()
    return [Sent("DELETE", at, name) for at, name in enumerate(swept, 1)]


def _in_order(names: Sequence[str]) -> list[str]:
    """Names without what is new each time; those that go at once are sorted."""
    groups = groupby(names, lambda name: name.partition("/")[0] in _AT_ONCE)
    parts = [(data, [anonymous(one) for one in group]) for data, group in groups]
    return [one for data, part in parts for one in (sorted(part) if data else part)]


def _run(verb: str, store: Store) -> str:
    with overdue():
        try:
            done = VERBS[verb].run(store)
        except OmnigraphError as error:
            return f"({error.effect})"
    return told_by(done)


@contextmanager
def impatient() -> Iterator[None]:
    """Clients that give up at once."""
    kept = roots._DEFAULT_TIMEOUTS["client_max_retries"]
    roots._DEFAULT_TIMEOUTS["client_max_retries"] = "0"
    try:
        yield
    finally:
        roots._DEFAULT_TIMEOUTS["client_max_retries"] = kept


@contextmanager
def removing(at_once: int) -> Iterator[None]:
    """So many removals go at once; if one, in their order."""
    kept, file_removal._PARALLEL_REMOVALS = file_removal._PARALLEL_REMOVALS, at_once
    try:
        yield
    finally:
        file_removal._PARALLEL_REMOVALS = kept


@contextmanager
def _server(place: Path) -> Iterator[S3]:
    with seaweed(place) as server:
        proxy = Proxy(server.port)
        os.environ.update(server.behind(proxy.port).environment)
        try:
            yield S3(proxy, f"s3://{server.bucket}/graph-{clock_and_ids.new_nonce()}", server)
        finally:
            proxy.stop()


def main(verbs: Sequence[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name, "starts")
        Path(name, "server").mkdir()
        with _server(Path(name, "server")) as s3, another_process() as elsewhere, impatient(), removing(1):
            matrix = S3Matrix(s3, place, elsewhere)
            for verb in verbs or VERBS:
                for row in matrix.rows(verb):
                    print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
