"""A graph on a server has every public method of an embedded graph, or names it as unavailable."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Blob, Graph, Transaction
from omnigraph.api.branches import Branches
from omnigraph.api.change_feed.baseline import Baseline
from omnigraph.api.change_feed.feed import BlockChanges, ChangeBlock, Feed
from omnigraph.api.change_feed.pages import ChangePage, CommitPage
from omnigraph.api.changes import Changes
from omnigraph.api.graph_schema import GraphSchema
from omnigraph.api.maintenance import Maintenance
from omnigraph.api.merge_sessions import MergeSession
from omnigraph.api.operations import Operations
from omnigraph.api.revisions import Revisions
from omnigraph.api.tags import Tags
from omnigraph.client import (
    baselines,
    blobs,
    branches,
    change_blocks,
    changes,
    maintenance,
    merge_sessions,
    operations,
    revisions,
    schema,
    tags,
)
from omnigraph.client.graph import RemoteGraph
from omnigraph.client.transactions import RemoteTransaction
from omnigraph.client.unsupported import LIMITATIONS
from omnigraph.errors import NotSupportedRemotely
from tests.api.test_surface import parameters, public_names

PAIRS: list[tuple[str, type[Any], type[Any]]] = [
    ("", Graph, RemoteGraph),
    ("branches.", Branches, branches.RemoteBranches),
    ("tags.", Tags, tags.RemoteTags),
    ("revisions.", Revisions, revisions.RemoteRevisions),
    ("schema.", GraphSchema, schema.RemoteSchema),
    ("changes.", Changes, changes.RemoteChanges),
    ("maintenance.", Maintenance, maintenance.RemoteMaintenance),
    ("operations.", Operations, operations.RemoteOperations),
    ("transaction.", Transaction, RemoteTransaction),
    ("session.", MergeSession, merge_sessions.RemoteMergeSession),
    ("blob.", Blob, blobs.RemoteBlob),
    ("feed.", Feed, changes.RemoteFeed),
    ("block.", ChangeBlock, change_blocks.RemoteBlock),
    ("block.changes.", BlockChanges, change_blocks.RemoteBlockChanges),
    ("page.", ChangePage, change_blocks.RemoteChangePage),
    ("commit_page.", CommitPage, change_blocks.RemoteCommitPage),
    ("baseline.", Baseline, baselines.RemoteBaseline),
]
# What only the implementation of an embedded graph uses, although its name is public.
INTERNAL = {"feed.commit_range", "feed.change_filter", "feed.cursor_binding", "block.block", "block.changes.tables"}


def names_of(cls: type[Any]) -> set[str]:
    """The public names of a class, with those that only its instances have."""
    assigned = {name for base in cls.__mro__ for name in getattr(base, "__annotations__", {})}
    init = getattr(cls.__init__, "__code__", None)
    assigned |= set(init.co_names) if init is not None and cls.__module__.startswith("omnigraph.client") else set()
    return public_names(cls) | {name for name in assigned if not name.startswith("_")}


@pytest.mark.parametrize(("prefix", "embedded", "remote"), PAIRS, ids=[pair[2].__name__ for pair in PAIRS])
def test_every_public_method_exists_with_the_same_parameters(
    prefix: str, embedded: type[Any], remote: type[Any]
) -> None:
    differences = []
    for name in sorted(public_names(embedded)):
        if f"{prefix}{name}" in LIMITATIONS or f"{prefix}{name}" in INTERNAL:
            continue
        here, there = getattr(embedded, name), getattr(remote, name, None)
        if name not in names_of(remote):
            differences.append(f"{prefix}{name} is missing")
        elif callable(here) and [(n, kind) for n, kind, _ in parameters(here)] != [
            (n, kind)
            for n, kind, _ in parameters(there)  # type: ignore[arg-type]
        ]:
            differences.append(f"{prefix}{name} takes other parameters")
        elif callable(here) and not same_defaults(here, there):
            differences.append(f"{prefix}{name} has other defaults")
    assert differences == []


def same_defaults(here: Any, there: Any) -> bool:
    return [default for _, _, default in parameters(here)] == [default for _, _, default in parameters(there)]


def test_the_how_to_page_lists_all_limitations(checkout: Path) -> None:
    page = (checkout / "docs/how-to/use-a-server-from-python.md").read_text()
    rows = "".join(f"| `{name}` | {hint} |\n" for name, hint in LIMITATIONS.items())
    assert f"| member | instead |\n|---|---|\n{rows}\n" in page


def attributes_of_limitations() -> list[str]:
    """The members without a route, without options that only some calls have."""
    return [name for name in LIMITATIONS if name.replace(".", "").replace("_", "").isalpha()]


@pytest.mark.parametrize("name", attributes_of_limitations())
def test_a_member_without_a_route_says_what_to_do_instead(url: str, name: str) -> None:
    arguments: dict[str, tuple[Any, ...]] = {
        "table": ("Person",),
        "acting": ("ann",),
        "maintenance.copy_to": ("x",),
        "maintenance.check_absent": ("Person", "ada"),
        "transaction.blob": ("Doc", "a", "body"),
    }
    *path, member = name.split(".")

    def use_member(target: Any) -> None:
        for part in path:
            target = target.transaction().__enter__() if part == "transaction" else getattr(target, part)
        getattr(target, member)(*arguments.get(name, ()))

    with omnigraph.open(url) as graph, pytest.raises(NotSupportedRemotely) as raised:
        use_member(graph)
    assert raised.value.hint == LIMITATIONS[name]
