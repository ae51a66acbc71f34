"""Damaged table files: every public method raises a typed error or works without them."""

import random
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.api.branches import Branches
from omnigraph.api.builders.entity_sets import EdgeSet, NodeSet
from omnigraph.api.change_feed.baseline import Baseline
from omnigraph.api.change_feed.feed import BlockChanges, ChangeBlock, Feed
from omnigraph.api.changes import Changes
from omnigraph.api.error_boundary import _GUARDED_SPECIAL_METHODS, guarded
from omnigraph.api.graph import Graph
from omnigraph.api.graph_schema import GraphSchema
from omnigraph.api.maintenance import Maintenance
from omnigraph.api.merge_sessions import MergeResult, MergeSession
from omnigraph.api.operations import Operations
from omnigraph.api.results.diff import Diff, LazyTableChanges
from omnigraph.api.results.result import ResultStream
from omnigraph.api.revisions import Revisions
from omnigraph.api.spark import Spark
from omnigraph.api.tags import Tags
from omnigraph.api.transactions import Transaction
from omnigraph.errors import ConcurrentCommit, OmnigraphError, StorageError
from omnigraph.storage.failures import AbsentError
from omnigraph.storage.manifest_cell import SwapConflict, SwapOutcomeUnknown

SCHEMA = """
node Person { name: String @key  age: I32?  bio: String?  @index(bio, kind=fulltext) }
node City { name: String @key }
edge Knows: Person -> Person
"""
ALL = "match { $p: Person } return { $p.name, $p.age, $p.bio }"
WIDER = SCHEMA.replace("age: I32?", "age: I64?")
COUNT = 40
Door = Callable[[Graph, Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a past, a branch, indexes and deleted rows."""
    place = tmp_path_factory.mktemp("unreadable") / "g"
    graph = omnigraph.init(place, SCHEMA, durability="os")
    people = [{"name": f"p{n}", "age": n, "bio": f"likes the number {n}"} for n in range(COUNT)]
    graph.load({"Person": people, "City": [{"name": "oslo"}]}, mode="append")
    graph.connect_nodes("Knows", [(f"p{n}", f"p{n + 1}") for n in range(COUNT - 1)])
    graph.maintenance.ensure_indices()
    graph.tag("v1")
    graph.branches.create("side").update("Person", where='name = "p3"', set={"age": 7})
    graph.update("Person", where='name = "p5"', set={"age": 37})
    graph.delete("Person", where='name = "p9"')
    return place


def read_lazily(graph: Graph, *, rows: bool) -> None:
    with graph.query(ALL, lazy=True) if not rows else graph.stream(ALL) as stream:
        list(stream.iter_rows() if rows else stream)


def use_transaction(graph: Graph) -> None:
    with graph.transaction() as tx:
        tx.insert("Person", {"name": "new"})
        tx.query(ALL)


def each_block(graph: Graph) -> object:
    return [list(one.changes) for one in graph.changes.feed("beginning")]


READS: dict[str, Door] = {
    "query": lambda g, _: g.query(ALL),
    "lazy query": lambda g, _: read_lazily(g, rows=False),
    "stream": lambda g, _: read_lazily(g, rows=True),
    "explain": lambda g, _: g.explain(ALL, analyze=True),
    "node": lambda g, _: g.node("Person", "p5"),
    "nodes": lambda g, _: list(g.nodes("Person")),
    "edges": lambda g, _: g.edges("Knows").to_arrow(),
    "traversal": lambda g, _: g.query("match { $p: Person  $p knows $q } return { $q.age }"),
    "search": lambda g, _: g.query('match { $p: Person  search($p.bio, "number") } return { $p.bio }'),
    "export": lambda g, _: list(g.export()),
    "export to a file": lambda g, at: g.export(at / "out.ndjson"),
    "at": lambda g, _: g.at("v1").query(ALL),
    "diff": lambda g, _: list(g.diff("v1")),
    "diff of branches": lambda g, _: g.diff("main..side").summary(),
    "changes": lambda g, _: each_block(g),
    "poll_changes": lambda g, _: g.changes.poll("beginning"),
    "commit changes": lambda g, _: [list(g.changes.of_commit(one)) for one in g.log(limit=3)],
    "baseline": lambda g, _: list(g.changes.baseline()),
    "history": lambda g, _: g.revisions.history("Person", "p5"),
    "blame": lambda g, _: g.revisions.blame("Person", "p5"),
    "pending_indices": lambda g, _: g.maintenance.pending_indices(),
    "check": lambda g, _: g.maintenance.check(),
    "status": lambda g, _: g.maintenance.status(),
    "repair": lambda g, _: g.maintenance.repair(),
    "check_absent": lambda g, _: g.maintenance.check_absent("Person", "p9"),
    "merge_session": lambda g, _: g.branches.merge_session("side").conflicts,
}
WRITES: dict[str, Door] = {
    "merge": lambda g, _: g.merge("side"),
    "revert": lambda g, _: g.revisions.revert("HEAD~1"),
    "cherry_pick": lambda g, _: g.revisions.cherry_pick("side"),
    "load in mode merge": lambda g, _: g.load({"Person": [{"name": "p5"}]}, mode="merge"),
    "upsert": lambda g, _: g.upsert("Person", {"name": "p7", "age": 1}),
    "insert": lambda g, _: g.insert("Person", {"name": "new"}),
    "connect_nodes": lambda g, _: g.connect_nodes("Knows", [("p5", "p7")]),
    "update": lambda g, _: g.update("Person", where="age > 3", set={"age": 1}),
    "delete": lambda g, _: g.delete("Person", where='name = "p11"'),
    "delete edges": lambda g, _: g.mutate('delete Knows where from = "p12"'),
    "transaction": lambda g, _: use_transaction(g),
    "apply_schema": lambda g, _: g.schema.apply(WIDER),
    "optimize": lambda g, _: g.maintenance.optimize(),
    "ensure_indices": lambda g, _: g.maintenance.ensure_indices(),
    "cleanup": lambda g, _: g.maintenance.cleanup(keep=1, grace=0, confirm=True),
    "erase": lambda g, _: g.maintenance.cleanup(keep=1, grace=0, confirm=True, erase=True),
    "create a branch": lambda g, _: g.branches.create("new", commit="HEAD~2"),
    "copy_to": lambda g, at: g.maintenance.copy_to(at / "copy"),
}


def spoil_footer(body: bytes) -> bytes:
    """Cut a file short."""
    return body[:-1]


def spoil_all(body: bytes) -> bytes:
    """Replace all bytes."""
    return random.Random(0).randbytes(len(body))


def spoil_body(body: bytes) -> bytes:
    """Replace what stands before the description of the columns."""
    kept = len(body) // 3
    return b"\xff" * kept + body[kept:]


def spoil_metadata(body: bytes) -> bytes:
    """Replace the description of the columns, and leave the footer."""
    kept = len(body) // 2
    return body[:kept] + b"\xff" * (len(body) - kept - 40) + body[-40:]


@pytest.mark.parametrize(
    ("part", "spoil"),
    [
        ("data", spoil_all),
        ("_deletions", spoil_footer),
        *(
            pytest.param(*one, marks=pytest.mark.full)
            for one in product(["data", "_deletions"], [spoil_body, spoil_metadata])
        ),
    ],
)
def test_every_method_ends_in_a_typed_error(
    made: Path, tmp_path: Path, part: str, spoil: Callable[[bytes], bytes]
) -> None:
    shutil.copytree(made, tmp_path / "spoilt")
    for path in sorted(tmp_path.glob(f"spoilt/*/*/{part}/*")):
        if path.parts[-4] in ("nodes", "edges"):
            path.write_bytes(spoil(path.read_bytes()))
    refused = {name: outcome(tmp_path / "spoilt", door) for name, door in READS.items()}
    for name, door in WRITES.items():
        place = tmp_path / name / "g"
        shutil.copytree(tmp_path / "spoilt", place)
        refused[name] = outcome(place, door)
    for name, error in refused.items():
        if error is not None:
            assert isinstance(error, OmnigraphError), f"{name}: {error!r}"
            assert error.hint, f"{name}: {error!r}"
            assert error.effect == "none" or name in ("cleanup", "erase"), f"{name}: {error!r}"
    assert isinstance(refused["diff"], StorageError)


def outcome(place: Path, door: Door) -> BaseException | None:
    """What a method of a graph raises, which is opened for it alone."""
    try:
        door(omnigraph.open(place, durability="os"), place.parent)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no `Exception`
        return error
    return None


@pytest.mark.parametrize("verb", ["query", "diff", "update", "load in mode merge"])
def test_mistakes_of_callers_keep_their_types(made: Path, tmp_path: Path, verb: str) -> None:
    """A file that cannot be read is none of the caller's mistakes, and the other way round."""
    shutil.copytree(made, tmp_path / "g")
    graph = omnigraph.open(tmp_path / "g", durability="os")
    mistakes: dict[str, Callable[[], object]] = {
        "query": lambda: graph.query("match { $p: Nobody } return { $p }"),
        "diff": lambda: graph.diff("v1", types=["Nobody"]),
        "update": lambda: graph.update("Person", where="age > 3", set={"age": "many"}),
        "load in mode merge": lambda: graph.load({"Person": [{"age": 1}]}, mode="merge"),
    }
    with pytest.raises(OmnigraphError) as told:
        mistakes[verb]()
    assert not isinstance(told.value, StorageError)


@pytest.mark.parametrize("mistake", [pa.ArrowInvalid("x"), RuntimeError("x"), ValueError("x")])
def test_exceptions_of_other_libraries_pass_unchanged(made: Path, mistake: Exception) -> None:
    graph = omnigraph.open(made, durability="os")

    def fail(_: Graph) -> None:
        raise mistake

    with pytest.raises(type(mistake)) as told:
        graph.retry(fail)
    assert told.value is mistake


@pytest.mark.parametrize(
    ("signal", "kind", "effect"),
    [
        (AbsentError("nodes/x is not there"), ConcurrentCommit, "none"),
        (SwapConflict(), ConcurrentCommit, "none"),
        (SwapOutcomeUnknown("timeout"), StorageError, "unknown"),
    ],
)
def test_internal_exceptions_do_not_escape(signal: Exception, kind: type[OmnigraphError], effect: str) -> None:
    @guarded
    def method() -> None:
        raise signal

    with pytest.raises(kind) as told:
        method()
    assert type(told.value) is kind
    assert told.value.effect == effect
    assert told.value.__cause__ is signal


PUBLIC: tuple[type[Any], ...] = (
    *(Graph, Branches, Tags, Revisions, GraphSchema, Changes, Maintenance, Operations, Spark),
    *(Transaction, NodeSet, EdgeSet, ResultStream, Diff, LazyTableChanges, Feed),
    *(ChangeBlock, BlockChanges, Baseline, MergeResult, MergeSession),
)


@pytest.mark.parametrize("cls", PUBLIC)
def test_every_public_method_is_guarded(cls: type[Any]) -> None:
    own = [one for one in cls.__mro__ if one.__module__.startswith("omnigraph.")]
    for one in own:
        for name in list(vars(one)):
            getattr(one, name)  # a delegated method is loaded on first access
            member = vars(one)[name]
            if name in _GUARDED_SPECIAL_METHODS or not name.startswith("_"):
                call = getattr(member, "fget", None) or getattr(member, "func", None) or member
                if callable(call) and not isinstance(member, type | classmethod | staticmethod):
                    assert call.__dict__.get("guarded"), f"{one.__name__}.{name}"
