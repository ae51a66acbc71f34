"""Neighbor lists patched from another version equal rebuilt lists."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.engine.adjacency.neighbor_lists import NeighborLists
from omnigraph.engine.adjacency.topology import EdgeTables, Topology, build_topology
from omnigraph.engine.adjacency.topology_patch import patch_topology
from omnigraph.storage.version_difference import compare_versions, read_changes
from omnigraph.values.table_key import TableKey
from tests.engine.unchecked_graph import SmallGraph, small_graph

PERSON, KNOWS = TableKey("node:Person"), TableKey("edge:Knows")
NAMES = [f"p{at}" for at in range(6)]


def tables_of(graph: SmallGraph) -> EdgeTables:
    context = graph.context()
    person = context.table(PERSON)
    return EdgeTables(context.table(KNOWS), person, person)


def plain(lists: NeighborLists) -> tuple[object, ...]:
    """The content of lists, with rows that have none at the end left out."""
    last = int(np.flatnonzero(np.diff(lists.starts)).max(initial=-1)) + 1
    repeats = [one.tolist() for one in lists.repeats or ()]
    edges = lists.edges.tolist() if lists.edges is not None else None
    return lists.starts[: last + 1].tolist(), lists.values.tolist(), edges, repeats or [[], [], []]


def same(one: Topology, other: Topology) -> bool:
    return (plain(one.by_source), plain(one.by_target)) == (plain(other.by_source), plain(other.by_target))


name = st.sampled_from(NAMES)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("link"), st.lists(st.tuples(name, name), min_size=1, max_size=4)),
        st.tuples(st.just("unlink"), st.lists(st.integers(0, 20), min_size=1, max_size=3)),
        st.tuples(st.just("turn"), st.tuples(st.integers(0, 20), name, name)),
        st.tuples(st.just("age"), st.lists(name, min_size=1, max_size=3, unique=True)),
        st.tuples(st.just("leave"), name),
        st.tuples(st.just("come back"), name),
        st.tuples(st.just("compact nodes"), st.none()),
        st.tuples(st.just("compact edges"), st.none()),
        st.tuples(st.just("overwrite"), st.lists(st.tuples(name, name), max_size=4)),
    ),
    min_size=1,
    max_size=6,
)


def apply(graph: SmallGraph, change: tuple[str, object], fresh: list[int]) -> None:
    """Carry a random change out, if it makes sense now."""
    kind, given_ = change
    people = sorted(graph.ids(PERSON).values())
    edges = sorted(graph.ids(KNOWS).values())
    match kind, given_:
        case "link", list(ends):
            start = fresh[0]
            fresh[0] += len(ends)
            graph.edges(KNOWS, ends, [f"k{start + at:03}" for at in range(len(ends))])
        case "unlink", list(places):
            graph.delete(KNOWS, sorted({edges[at % len(edges)] for at in places}) if edges else [])
        case "turn", (int(at), str(one), str(other)) if edges:
            graph.update(KNOWS, [edges[at % len(edges)]], {"src": [one], "dst": [other]})
        case "age", list(names) if set(names) & set(people):
            known = [one for one in names if one in people]
            graph.update(PERSON, known, {"age": list(range(len(known)))})
        case "leave", str(who) if who in people:
            graph.delete(PERSON, [who])
        case "come back", str(who) if who not in people:
            graph.nodes(PERSON, [who])
        case "compact nodes", _:
            graph.rewrite(PERSON)
        case "compact edges", _:
            graph.rewrite(KNOWS)
        case "overwrite", list(ends):
            start = fresh[0]
            fresh[0] += len(ends)
            graph.overwrite(
                KNOWS,
                {
                    "id": [f"k{start + at:03}" for at in range(len(ends))],
                    "src": [one for one, _ in ends],
                    "dst": [one for _, one in ends],
                },
            )


@settings(max_examples=settings().max_examples // 5)
@given(changes=CHANGES)
def test_patched_lists_equal_rebuilt_lists(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, object]]
) -> None:
    graph = small_graph(tmp_path_factory.mktemp("g") / "g")
    graph.nodes(PERSON, NAMES[:4])
    graph.edges(KNOWS, [("p0", "p1"), ("p0", "p1"), ("p1", "p2"), ("p3", "p3")], ["a", "b", "c", "d"])
    fresh = [0]
    before = tables_of(graph)
    old = {edges: build_topology(before, with_edge_ids=edges) for edges in (False, True)}
    steps = [(before, old)]
    for change in changes:
        apply(graph, change, fresh)
        after = tables_of(graph)
        new = {edges: build_topology(after, with_edge_ids=edges) for edges in (False, True)}
        for base, lists in (steps[0], steps[-1]):
            for edges in (False, True):
                found = patch_topology(lists[edges], base, after)
                assert found is None or same(found, new[edges])
                back = patch_topology(new[edges], after, base)
                assert back is None or same(back, lists[edges])
        steps.append((after, new))


@pytest.fixture
def graph(tmp_path: Path) -> SmallGraph:
    made = small_graph(tmp_path / "g")
    made.nodes(PERSON, NAMES[:4])
    made.edges(KNOWS, [("p0", "p1"), ("p0", "p1"), ("p1", "p2")], ["a", "b", "c"])
    return made


def patched(graph: SmallGraph, before: EdgeTables) -> Topology | None:
    return patch_topology(build_topology(before, with_edge_ids=False), before, tables_of(graph))


def test_small_changes_are_patched_instead_of_rebuilt(graph: SmallGraph) -> None:
    """The property above holds for a patch that always gives up, too."""
    before = tables_of(graph)
    graph.nodes(PERSON, ["p4"])
    graph.edges(KNOWS, [("p4", "p0")], ["d"])
    assert patched(graph, before) is not None
    graph.delete(KNOWS, ["a"])
    graph.update(PERSON, ["p0", "p1"], {"age": [1, 2]})
    assert patched(graph, before) is not None
    graph.rewrite(PERSON)
    graph.rewrite(KNOWS)
    found = patched(graph, before)
    assert found is not None
    assert found.by_source.values.tolist() == [1, 2, 0]
    assert found.by_source.repeats is not None
    assert len(found.by_source.repeats[0]) == 0


def test_reinserted_id_is_a_new_row(graph: SmallGraph) -> None:
    before = tables_of(graph)
    graph.delete(PERSON, ["p1"])
    graph.nodes(PERSON, ["p1"])
    assert patched(graph, before) is None
    # With its edges gone as well, nothing is left that could mean the old row.
    graph.delete(KNOWS, ["a", "b", "c"])
    found = patched(graph, before)
    assert found is not None
    assert len(found.by_source.values) == 0


def test_edge_with_a_missing_endpoint_appears_once_it_exists(graph: SmallGraph) -> None:
    graph.edges(KNOWS, [("p0", "p5")], ["d"])
    before = tables_of(graph)
    assert build_topology(before, with_edge_ids=False).dangling_count == 1
    graph.nodes(PERSON, ["p5"])
    assert patched(graph, before) is None


def test_moved_rows_are_not_changes(graph: SmallGraph) -> None:
    before = graph.table(PERSON)
    graph.nodes(PERSON, ["p4", "p5"])
    graph.delete(PERSON, ["p4"])
    graph.rewrite(PERSON)
    graph.update(PERSON, ["p1"], {"age": [7]})
    lost, won = read_changes(compare_versions(before, graph.table(PERSON)), ["id"])
    assert (lost["id"].to_pylist(), won["id"].to_pylist()) == ([], ["p5"])
    lost, won = read_changes(compare_versions(before, graph.table(PERSON)), ["id", "age"])
    assert (lost["age"].to_pylist(), sorted(won["id"].to_pylist())) == ([None], ["p1", "p5"])


def test_a_deletion_reads_only_what_was_deleted(graph: SmallGraph) -> None:
    before = graph.table(PERSON)
    graph.delete(PERSON, ["p2"])
    found = compare_versions(before, graph.table(PERSON))
    assert (found.removed, found.added, len(found.redeleted), found.max_rows_read) == ((), (), 1, 1)
    lost, won = read_changes(compare_versions(before, graph.table(PERSON)), ["id", "age"])
    assert (lost.to_pylist(), won.num_rows) == ([{"id": "p2", "age": None, "_rowid": 2}], 0)


def test_second_deletion_of_a_fragment_reports_only_its_rows(graph: SmallGraph) -> None:
    graph.delete(PERSON, ["p0"])
    before = graph.table(PERSON)
    graph.delete(PERSON, ["p2"])
    lost, won = read_changes(compare_versions(before, graph.table(PERSON)), ["id"])
    assert (lost["id"].to_pylist(), won.num_rows) == (["p2"], 0)
    back, forth = read_changes(compare_versions(graph.table(PERSON), before), ["id"])
    assert (back.num_rows, forth["id"].to_pylist()) == (0, ["p2"])


def test_equal_row_ids_on_two_branches_are_distinct_nodes(graph: SmallGraph) -> None:
    from omnigraph.publish.branch_lifecycle import create_branch

    other = SmallGraph(create_branch(graph.line.store, "other", graph.line))
    graph.nodes(PERSON, ["mine"])
    graph.edges(KNOWS, [("mine", "p0")])
    other.nodes(PERSON, ["yours"])
    other.edges(KNOWS, [("p2", "yours"), ("yours", "yours")])
    one, two = tables_of(graph), tables_of(other)
    for bags in (False, True):
        found = patch_topology(build_topology(one, with_edge_ids=bags), one, two)
        assert found is None or same(found, build_topology(two, with_edge_ids=bags))
