"""Generated names: each is rejected before any effect, or works everywhere."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.history.branches import open_branch
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.storage.store import open_store
from tests.rig.depth import repeats
from tests.rig.invariants import check_invariants
from tests.rig.plugin import S3
from tests.values.names import name_lifecycle
from tests.values.names.generated_names import COUNT, generate_names, sample_names

SOME = sample_names(150)
FEW = sample_names(16)
sizes = pytest.mark.parametrize(
    "names", [SOME, pytest.param(sample_names(min(COUNT, repeats(400))), marks=pytest.mark.full)], ids=["some", "many"]
)


def test_generated_names_include_valid_and_invalid_ones() -> None:
    names = generate_names()
    assert len(set(names)) == COUNT
    assert generate_names() == names
    for some in (names, SOME, FEW):
        accepted = sum(map(name_lifecycle.is_accepted, some))
        assert len(some) / 6 < accepted < len(some) / 2


@sizes
@pytest.mark.timeout(1800)
def test_a_refused_name_leaves_the_root_as_it_was(tmp_path: Path, names: list[str]) -> None:
    graph = name_lifecycle.make_graph(str(tmp_path / "g"))
    for name in names:
        if not name_lifecycle.is_accepted(name):
            name_lifecycle.check_refused(graph, name)
        if not name_lifecycle.is_accepted_stream(name):
            name_lifecycle.check_refused_stream(graph, name)
    name_lifecycle.check_at_rest(graph)


@pytest.mark.filterwarnings("ignore::omnigraph.errors.AmbiguousRevision")  # some names look like dates
def test_some_accepted_names_work_on_a_disk(tmp_path: Path) -> None:
    accepted = list(filter(name_lifecycle.is_accepted, SOME))
    _check_lives(str(tmp_path / "g"), accepted[::2], accepted[1::2])


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore::omnigraph.errors.AmbiguousRevision")  # some names look like dates
def test_many_accepted_names_work_on_a_disk(tmp_path: Path) -> None:
    accepted = list(filter(name_lifecycle.is_accepted, sample_names(min(COUNT, repeats(400)))))
    for start in range(0, len(accepted), 100):  # listings grow with the names that were ever used
        some = accepted[start : start + 100]
        _check_lives(str(tmp_path / f"g{start}"), some, some)


def _check_lives(root: str, branches: list[str], tags: list[str]) -> None:
    graph = name_lifecycle.make_graph(root)
    for name in branches:
        name_lifecycle.check_branch_life(graph, name)
    for name in tags:
        name_lifecycle.check_tag_life(graph, name)
    check_invariants(root)


@pytest.mark.parametrize(
    "names", [FEW, pytest.param(sample_names(min(COUNT, repeats(80))), marks=pytest.mark.full)], ids=["few", "many"]
)
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore::omnigraph.errors.AmbiguousRevision")
def test_an_accepted_name_works_on_s3(s3: S3, names: list[str]) -> None:
    graph = name_lifecycle.make_graph(s3.url)
    for name in names:
        if name_lifecycle.is_accepted(name):
            name_lifecycle.check_branch_life(graph, name)
            name_lifecycle.check_tag_life(graph, name)
        else:
            name_lifecycle.check_refused(graph, name)


@pytest.mark.filterwarnings("ignore::omnigraph.errors.AmbiguousRevision")
@pytest.mark.parametrize("names", [FEW, pytest.param(SOME, marks=pytest.mark.full)], ids=["few", "some"])
@pytest.mark.filterwarnings("ignore::omnigraph.errors.AmbiguousRevision")  # branches and tags share names
def test_a_root_with_accepted_names_moves_between_disk_and_s3(tmp_path: Path, s3: S3, names: list[str]) -> None:
    graph = name_lifecycle.make_graph(str(tmp_path / "g"))
    created = name_lifecycle.create_all(graph, list(filter(name_lifecycle.is_accepted, names)))
    assert set(created) < set(graph.branches.names())
    graph.maintenance.copy_to(s3.url)
    there = omnigraph.open(s3.url)
    assert there.branches.names() == graph.branches.names()
    name_lifecycle.check_copy(there, str(tmp_path / "back"))


@sizes
def test_an_accepted_stream_name_is_stored_and_copied(tmp_path: Path, names: list[str]) -> None:
    graph = name_lifecycle.make_graph(str(tmp_path / "g"))
    tokens = dict.fromkeys(filter(name_lifecycle.is_accepted_stream, names), "query:1")
    publish(open_branch(graph._handle.store, "main"), lambda _: PublishPlan("load", streams=tokens))
    graph.maintenance.copy_to(tmp_path / "copy")
    for root in ("g", "copy"):
        store = open_store(str(tmp_path / root), durability="os")
        assert open_branch(store, "main").last_known().state.streams == tokens
