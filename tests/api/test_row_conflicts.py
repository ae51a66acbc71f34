"""Updates and deletes conflict only with changes to what they match, read or write."""
# ruff: noqa: PT012 - a transaction that fails at its end is a block

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError, ReadSetConflict, VersionConflict
from tests.rig.graph_hosts import GraphHost, open_again

SCHEMA = """
node Person { name: String @key  team: String?  age: I32?  note: String?  photo: Blob? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""
PEOPLE = [
    {"name": "ann", "team": "red", "age": 30},
    {"name": "bob", "team": "red", "age": 40},
    {"name": "cyd", "team": "blue", "age": 50},
]
Step = Callable[[Graph], object]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rows") / "g"
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.insert("Person", PEOPLE)
    graph.insert("City", {"name": "rome"}, {"name": "oslo"})
    graph.connect_nodes("Knows", [("ann", "bob"), ("bob", "cyd")])
    return root


@pytest.fixture
def graph(graphs: GraphHost, tmp_path: Path, template: Path) -> Graph:
    shutil.copytree(template, tmp_path / "g")
    return graphs.open(tmp_path / "g", actor="me")


@pytest.fixture
def other(graph: Graph) -> Graph:
    """A handle that shares nothing with the first, as in another process."""
    other = open_again(graph, durability="fsync", actor="rival")
    assert other._handle.branch_state is not graph._handle.branch_state
    return other


def ages(graph: Graph) -> dict[str, int | None]:
    return {row["p.name"]: row["p.age"] for row in graph.query("match { $p: Person } return { $p.name, $p.age }")}


def update(where: str, **values: object) -> Step:
    return lambda graph: graph.update("Person", where=where, set=values)


def delete(where: str, type_name: str = "Person") -> Step:
    return lambda graph: graph.delete(type_name, where=where)


def insert(**values: object) -> Step:
    return lambda graph: graph.insert("Person", values)


def upsert(**values: object) -> Step:
    return lambda graph: graph.upsert("Person", values)


def connect(source: str, target: str) -> Step:
    return lambda graph: graph.connect_nodes("Knows", [(source, target)])


RED, ANN, BOB = "team = 'red'", "name = 'ann'", "name = 'bob'"

LANDING: list[tuple[str, Step, Step]] = [
    ("another node", update(BOB, age=1), update(ANN, age=2)),
    ("a new node", insert(name="dan"), update(ANN, age=2)),
    ("a new node outside the predicate", insert(name="dan", team="blue"), update(RED, age=2)),
    ("a deleted node outside the predicate", delete("name = 'cyd'"), update(RED, age=2)),
    ("another property of the same node", update(ANN, note="x"), update(ANN, age=2)),
    ("another property of all matching nodes", update(RED, note="x"), update(RED, age=2)),
    ("the same values again", update(ANN, age=30), update(ANN, age=2)),
    ("delete beside an update of another node", update(BOB, age=1), delete(ANN)),
    ("delete beside an edge of other nodes", connect("bob", "bob"), delete(ANN)),
    ("delete of an edge beside another edge", connect("cyd", "cyd"), delete("from = 'ann'", "Knows")),
]

CONFLICTING: list[tuple[str, Step, Step, list[str]]] = [
    ("the same property", update(ANN, age=1), update(ANN, age=2), ["ann"]),
    ("a property of the predicate", update(ANN, age=31), update("age < 35", note="x"), ["ann"]),
    ("the predicate gains a node", insert(name="dan", team="red"), update(RED, age=2), ["dan"]),
    ("a node moves into the predicate", update("name = 'cyd'", team="red"), update(RED, age=2), ["cyd"]),
    ("a node moves out of the predicate", update(ANN, team="blue"), update(RED, age=2), ["ann"]),
    ("the predicate loses a node", delete(ANN), update(RED, age=2), ["ann"]),
    ("a node is replaced", upsert(name="ann", team="red", age=7), update(ANN, age=2), ["ann"]),
    ("delete of a node with a new value", update(ANN, note="x"), delete(ANN), ["ann"]),
    ("delete of a deleted node", delete(ANN), delete(ANN), ["ann"]),
    (
        "an update in a second statement",
        update(BOB, note="x"),
        lambda graph: graph.mutate(
            'update Person set { age: 2 } where name = "ann" update Person set { note: "y" } where name = "bob"'
        ),
        ["bob"],
    ),
]


@pytest.mark.parametrize(("theirs", "mine"), [case[1:] for case in LANDING], ids=[case[0] for case in LANDING])
def test_write_lands_beside_a_change_of_something_else(graph: Graph, other: Graph, theirs: Step, mine: Step) -> None:
    theirs(other)
    rival = other.head.id
    mine(graph)
    assert graph.head.parent == rival


@pytest.mark.parametrize(("theirs", "mine", "ids"), [case[1:] for case in CONFLICTING], ids=[c[0] for c in CONFLICTING])
def test_write_conflicts_with_a_change_of_what_it_matches(
    graph: Graph, other: Graph, theirs: Step, mine: Step, ids: list[str]
) -> None:
    theirs(other)
    before = list(graph.export())
    with pytest.raises(VersionConflict) as conflict:
        mine(graph)
    assert list(conflict.value.changed_ids) == ids
    assert (conflict.value.commit_id, conflict.value.actor) == (other.head.id, "rival")
    assert list(graph.export()) == before
    assert graph.retry(mine) is not None


def test_conflict_names_entities_commit_and_actor(graph: Graph, other: Graph) -> None:
    graph.insert("Person", [{"name": f"p{n}", "team": "green"} for n in range(7)])
    other.refresh()
    other.update("Person", where="team = 'green'", set={"age": 1})
    rival = other.head.id
    other.update("Person", where="name = 'cyd'", set={"age": 51})  # a later commit that is not in conflict
    with pytest.raises(VersionConflict) as conflict:
        graph.update("Person", where="team = 'green'", set={"age": 2})
    text = str(conflict.value)
    assert "changed since the read: p0, p1, p2, p3, p4 and 2 more" in text
    assert f"last change in commit {rival} by rival" in text
    assert "graph.retry" in text
    assert conflict.value.to_json()["details"]["changed_ids"] == ("p0", "p1", "p2", "p3", "p4")


def test_own_writes_count_as_seen_beside_changes_of_others(graph: Graph, other: Graph) -> None:
    other.update("Person", where=BOB, set={"age": 1})
    graph.update("Person", where=ANN, set={"age": 2})
    graph.update("Person", where=ANN, set={"age": 3})
    graph.insert("Person", {"name": "dan"})
    other.update("Person", where="name = 'cyd'", set={"age": 4})
    graph.update("Person", where="name = 'dan'", set={"age": 5})
    graph.update("Person", where=ANN, set={"age": 6})
    for name in ("bob", "cyd"):  # never shown to this handle
        with pytest.raises(VersionConflict) as conflict:
            graph.update("Person", where=f"name = '{name}'", set={"age": 7})
        assert (conflict.value.changed_ids, conflict.value.actor) == ((name,), "rival")
    assert ages(graph) == {"ann": 6, "bob": 1, "cyd": 4, "dan": 5}
    assert graph.update("Person", where="age > 0", set={"note": "read"}).nodes == {"Person": 4}


def test_unseen_value_of_a_node_stays_unseen_after_an_own_write_to_it(graph: Graph, other: Graph) -> None:
    other.update("Person", where=ANN, set={"age": 1})
    graph.update("Person", where=ANN, set={"note": "mine"})
    with pytest.raises(VersionConflict):
        graph.update("Person", where=ANN, set={"age": 2})
    assert graph.update("Person", where=ANN, set={"note": "again"})


def test_handle_in_a_long_race_stays_precise(graph: Graph, other: Graph) -> None:
    for number in range(12):
        other.update("Person", where=BOB, set={"age": number})
        graph.update("Person", where=ANN, set={"age": number})
    reads = graph._handle._open_read_set()._tables
    assert max(len(table.unread) for table in reads.values()) == 1  # neighboring steps are joined
    with pytest.raises(VersionConflict):
        graph.update("Person", where=BOB, set={"age": 0})
    assert graph.refresh().update("Person", where=BOB, set={"age": 0})


def test_new_edge_of_a_deleted_node_is_a_conflict(graph: Graph, other: Graph) -> None:
    other.connect_nodes("Knows", [("cyd", "ann")])
    with pytest.raises(VersionConflict) as conflict:
        graph.delete("Person", where=ANN)
    assert conflict.value.type_key == "edge:Knows"
    assert graph.refresh().delete("Person", where=ANN).edges == {"Knows": 2}


def test_blobs_are_compared_by_their_bytes(graph: Graph, other: Graph) -> None:
    graph.update("Person", where=ANN, set={"photo": b"one"})
    other.refresh()
    other.update("Person", where=ANN, set={"age": 1})
    graph.update("Person", where=ANN, set={"photo": b"two"})
    other.refresh()
    graph.refresh()
    other.update("Person", where=ANN, set={"photo": b"three"})
    with pytest.raises(VersionConflict):
        graph.update("Person", where=ANN, set={"photo": b"four"})


def test_large_changes_are_compared_without_keeping_their_rows(
    graph: Graph, other: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.publish import unread_changes

    monkeypatch.setattr(unread_changes, "MAX_COMPARED_ROWS", 0)
    other.update("Person", where=BOB, set={"age": 1})
    graph.update("Person", where=ANN, set={"age": 2})
    graph.update("Person", where=ANN, set={"note": "x"})
    with pytest.raises(VersionConflict) as conflict:
        graph.delete("Person", where=BOB)
    assert conflict.value.changed_ids == ("bob",)
    with pytest.raises(VersionConflict):
        graph.update("Person", where="age < 10", set={"note": "y"})


def test_too_many_kept_rows_are_read_again(graph: Graph, other: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.publish import unread_changes

    monkeypatch.setattr(unread_changes, "MAX_KEPT_BYTES", 0)
    monkeypatch.setattr(unread_changes, "MAX_STEPS", 2)
    for number in range(2):
        other.update("Person", where=BOB, set={"age": number})
        graph.update("Person", where=ANN, set={"age": number})
    with pytest.raises(VersionConflict):
        graph.update("Person", where=BOB, set={"age": 9})
    other.update("Person", where=BOB, set={"age": 5})
    graph.update("Person", where="name = 'cyd'", set={"age": 9})
    with pytest.raises(VersionConflict):  # beyond the limit, own writes count as changes by others
        graph.update("Person", where=ANN, set={"age": 9})
    assert graph.refresh().update("Person", where=ANN, set={"age": 9})


def test_every_row_is_in_doubt_if_the_shown_version_was_cleaned_up(graph: Graph, other: Graph) -> None:
    other.update("Person", where=BOB, set={"age": 1})
    other.maintenance.optimize()
    other.maintenance.cleanup(keep=1, older_than=0, grace=0, confirm=True)
    reopened = open_again(graph, durability="fsync")
    reopened._handle._read_set = graph._handle._open_read_set()  # what a handle has shown, without its open files
    with pytest.raises(VersionConflict) as conflict:
        reopened.update("Person", where=ANN, set={"age": 2})
    assert conflict.value.changed_ids == ()
    assert reopened.refresh().update("Person", where=ANN, set={"age": 2})


def test_schema_change_of_the_type_is_a_conflict(graph: Graph, other: Graph) -> None:
    other.schema.apply(SCHEMA.replace("note: String?", "note: String?  mail: String?"))
    with pytest.raises(OmnigraphError):
        graph.update("Person", where=ANN, set={"age": 2})
    assert graph.refresh().update("Person", where=ANN, set={"age": 2})


# Transactions -----------------------------------------------------------------------------------


def read(text: str) -> Callable[[omnigraph.Transaction], object]:
    return lambda tx: tx.query(text).to_dicts()


ONE = 'match { $p: Person { name: "ann" } } return { $p.age }'
TEAM = 'match { $p: Person  $p.team = "red" } return { $p.name }'
TOTAL = 'match { $p: Person  $p.team = "red" } return { sum($p.age) as total }'
WHOLE = 'match { $p: Person { name: "ann" } } return { $p }'
PAIRS = (
    'match { $p: Person  $q: Person  $p.team = "red"  $q.team = "blue"  $p.age < $q.age } return { $p.name, $q.name }'
)
FRIENDS = 'match { $p: Person { name: "ann" }  $p knows $q } return { $q.name }'
COUNT = "match { $p: Person } return { count($p) as n }"


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        (ONE, update(BOB, age=1)),
        (ONE, update(ANN, note="x")),
        (ONE, insert(name="dan")),
        (TEAM, update(RED, age=1)),
        (TEAM, insert(name="dan", team="blue")),
        (TOTAL, update("team = 'blue'", age=1)),
        (TOTAL, update(RED, note="x")),
        (WHOLE, update(BOB, note="x")),
        (PAIRS, update(RED, note="x")),
        (PAIRS, insert(name="dan", team="green", age=1)),
        (COUNT, update(RED, age=1)),
        (FRIENDS, lambda graph: graph.insert("City", {"name": "bonn"})),
    ],
)
def test_transaction_lands_beside_changes_of_what_it_did_not_read(
    graph: Graph, other: Graph, text: str, theirs: Step
) -> None:
    with graph.transaction() as tx:
        tx.query(text)
        theirs(other)
        tx.insert("City", {"name": "new"})
    assert tx.receipt


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        (ONE, update(ANN, age=1)),
        (ONE, delete(ANN)),
        (TEAM, insert(name="dan", team="red")),
        (TEAM, update(ANN, team="blue")),
        (TEAM, update("name = 'cyd'", team="red")),
        (TOTAL, update(ANN, age=1)),
        (TOTAL, delete(BOB)),
        (WHOLE, update(ANN, note="x")),
        (PAIRS, update("team = 'blue'", age=1)),
        (PAIRS, insert(name="dan", team="blue", age=99)),
        (COUNT, insert(name="dan")),
        (FRIENDS, connect("cyd", "cyd")),
    ],
)
def test_transaction_conflicts_with_a_change_of_what_it_read(
    graph: Graph, other: Graph, text: str, theirs: Step
) -> None:
    with pytest.raises(ReadSetConflict) as conflict, graph.transaction() as tx:
        tx.query(text)
        theirs(other)
        tx.insert("City", {"name": "new"})
    assert (conflict.value.commit_id, conflict.value.actor) == (other.head.id, "rival")
    assert "graph.retry" in (conflict.value.hint or "")
    assert graph.nodes("City").count() == 2


def test_transaction_that_reads_its_own_update_depends_on_the_stored_row(graph: Graph, other: Graph) -> None:
    with pytest.raises(ReadSetConflict), graph.transaction() as tx:
        tx.update("Person", where=ANN, set={"team": "green"})
        assert tx.query('match { $p: Person  $p.team = "green" } return { $p.note }').to_dicts() == [{"p.note": None}]
        other.update("Person", where=ANN, set={"note": "x"})
        tx.insert("City", {"name": "new"})


def test_two_transactions_with_crossed_reads_do_not_both_land(graph: Graph, other: Graph) -> None:
    """Write skew: each reads what the other writes."""
    with pytest.raises(ReadSetConflict), graph.transaction() as mine:
        mine.query(ONE)
        with other.transaction() as theirs:
            theirs.query('match { $p: Person { name: "bob" } } return { $p.age }')
            theirs.update("Person", where=ANN, set={"age": 0})
        mine.update("Person", where=BOB, set={"age": 0})
    assert ages(graph) == {"ann": 0, "bob": 40, "cyd": 50}


def test_writes_of_transactions_count_as_seen_by_the_handle(graph: Graph, other: Graph) -> None:
    other.update("Person", where=BOB, set={"age": 1})
    with graph.transaction() as tx:
        tx.update("Person", where=ANN, set={"age": 2})
    assert graph.update("Person", where=ANN, set={"age": 3})
    with pytest.raises(VersionConflict):
        graph.update("Person", where=BOB, set={"age": 3})


def test_conflict_never_names_the_callers_own_commit(graph: Graph, other: Graph) -> None:
    graph.refresh()
    other.update("Person", where="name = 'ann'", set={"age": 1})
    rival_commit = other.head.id
    for age in range(10):  # more commits of both writers than are compared with the row
        graph.update("Person", where="name = 'bob'", set={"age": age})
        other.update("Person", where="name = 'cyd'", set={"age": age})
    graph.update("Person", where="name = 'bob'", set={"age": 99})
    with pytest.raises(VersionConflict) as conflict:
        graph.update("Person", where="name = 'ann'", set={"age": 2})
    assert conflict.value.changed_ids == ("ann",)
    assert (conflict.value.commit_id, conflict.value.actor) == (rival_commit, "rival")
