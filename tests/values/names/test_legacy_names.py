"""Existing names that would be rejected today stay readable, listable, copyable, deletable."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import CatalogError, InputError
from omnigraph.history import name_conflicts
from omnigraph.history.branches import open_branch
from omnigraph.history.schemas import StoredSchema
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from omnigraph.publish.init import init_graph
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.storage.store import open_store
from omnigraph.values import clock_and_ids
from tests.rig.invariants import check_invariants
from tests.rig.plugin import S3
from tests.values.names import name_lifecycle

REFUSED = (
    "x" * 255, "a/" * 63 + "b", ".hidden", "a.", "-x", "b.lock/c", "01J8ZC9Q3M0000000000000000",
    "0000000001.json", "Main",
)  # fmt: skip
# Branches and tags share names, and some names look like times.
pytestmark = pytest.mark.filterwarnings("ignore::omnigraph.errors.AmbiguousRevision")
LONG_TYPE = "T" * 300
LONG_PROPERTY = "p" * 300
SCHEMA = f"node {LONG_TYPE} {{ name: String @key  {LONG_PROPERTY}: I64? @index }}"
SHORT = f"""
node Short @rename_from("{LONG_TYPE}") {{
    name: String @key
    n: I64? @index @rename_from("{LONG_PROPERTY}")
    more: String?
}}
"""


@contextmanager
def _unjudged() -> Iterator[None]:
    """Names are taken as an earlier release took them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name_conflicts, "check_new_ref_name", name_conflicts.strip_name)
        patch.setattr(name_conflicts, "check_disjoint", lambda *_: None)
        patch.setattr(name_conflicts, "find_case_variant", lambda *_: None)
        yield


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = name_lifecycle.make_graph(str(tmp_path / "g"))
    with _unjudged():
        for name in (*REFUSED, "Twin", "twin"):
            graph.branches.create(name)
            graph.tag(name)
    return omnigraph.open(graph.uri, durability="os")


def test_legacy_names_are_readable_and_writable(graph: Graph) -> None:
    for name in REFUSED:
        assert not name_lifecycle.is_accepted(name)
        there = graph.checkout(name)
        assert there.branch_name == name
        assert there.head.id == graph.branches[name].fork_commit
        there.insert("Person", {"name": "eve"})
        assert graph.merge(name, dry_run=True).outcome == "fast_forward"
        assert len(graph.log(name)) == len(graph.log()) + 1


def test_legacy_names_can_be_renamed(graph: Graph) -> None:
    for number, name in enumerate((*REFUSED, "Twin")):
        assert graph.branches.rename(name, f"new-{number}").branch_name == f"new-{number}"
    assert not set(REFUSED) & set(graph.branches)
    name_lifecycle.check_at_rest(graph)
    check_invariants(graph.uri)


def test_legacy_names_can_be_deleted_but_not_recreated(graph: Graph) -> None:
    for name in REFUSED:
        graph.branches.delete(name, force=True)
        graph.tags.delete(name)
        name_lifecycle.check_refused(graph, name)
    assert graph.branches.names() == ["Twin", "base-branch", "main", "twin"]
    assert [tag.name for tag in graph.tags.values()] == ["Twin", "base-tag", "twin"]


def test_legacy_names_are_copied(graph: Graph, tmp_path: Path) -> None:
    name_lifecycle.check_copy(graph, str(tmp_path / "copy"))


def test_name_valid_only_on_s3_is_readable_there(s3: S3) -> None:
    name = "x" * 900
    graph = name_lifecycle.make_graph(s3.url)
    with _unjudged():
        graph.branches.create(name)
    assert graph.checkout(name).node("Person", "ada") is not None
    graph.branches.rename(name, "short")
    assert graph.branches.names() == ["base-branch", "main", "short"]
    name_lifecycle.check_refused(graph, name)


def test_stream_with_a_legacy_name_continues(graph: Graph) -> None:
    name = " padded " + "s" * 300
    with pytest.raises(InputError, match="cannot be used as a stream name"):
        graph.spark.stream_load(None, "Person", name=name, checkpoint="c")
    tokens = {name: "query:1"}
    publish(open_branch(graph._handle.store, "main"), lambda _: PublishPlan("load", streams=tokens))
    with pytest.raises(InputError, match="not a stream"):  # the frame is looked at next
        graph.spark.stream_load(None, "Person", name=name, checkpoint="c")


def test_schema_with_legacy_names_can_be_used_and_changed(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="cannot be used as a type name: it is 300 bytes long"):
        omnigraph.init(tmp_path / "new", SCHEMA)
    assert not (tmp_path / "new").exists()
    catalog = compile_schema(SCHEMA, existing_names={LONG_TYPE, LONG_PROPERTY})
    contract = StoredSchema(SCHEMA, new_identity(catalog, clock_and_ids.new_ulid()))
    init_graph(open_store(str(tmp_path / "g"), durability="os"), contract)
    graph = omnigraph.open(tmp_path / "g", durability="os")
    graph.insert(LONG_TYPE, {"name": "ada", LONG_PROPERTY: 1})
    graph.maintenance.ensure_indices()
    assert graph.nodes(LONG_TYPE).where(**{LONG_PROPERTY: 1}).count() == 1
    graph.schema.apply(SCHEMA.replace("}", " more: String? }"))
    with pytest.raises(CatalogError, match="cannot be used as a property name"):
        graph.schema.apply(SCHEMA.replace("}", f" {'q' * 201}: String? }}"))
    graph.schema.apply(SHORT)
    assert graph.nodes("Short").where(n=1).count() == 1
