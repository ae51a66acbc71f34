"""Every public member of a graph is tested on an embedded graph and on a graph on a server, with the same test."""

from typing import Any

import pytest

from omnigraph.api import facet_surfaces
from omnigraph.api.schema_surface import GraphSchemaSurface
from omnigraph.api.stored_queries import StoredQueries
from omnigraph.api.surface import GraphSurface
from omnigraph.client.unsupported import LIMITATIONS
from tests.rig.embedded_only import EMBEDDED_ONLY, TESTS
from tests.rig.exercised_members import exercised_members, members_used_in, names_of_tests

FACETS: dict[str, type[Any]] = {
    "branches": facet_surfaces.BranchesSurface,
    "tags": facet_surfaces.TagsSurface,
    "revisions": facet_surfaces.RevisionsSurface,
    "schema": GraphSchemaSurface,
    "changes": facet_surfaces.ChangesSurface,
    "maintenance": facet_surfaces.MaintenanceSurface,
    "spark": facet_surfaces.SparkSurface,
}


# An embedded graph raises an error that says what to use instead, so a test of the client covers these members.
SERVER_ONLY = {"queries": StoredQueries}


def public_names(protocol: type[Any]) -> set[str]:
    return {name for name in dir(protocol) if not name.startswith("_")}


def offered_members() -> set[str]:
    """The members that a graph on a server offers."""
    members = public_names(GraphSurface)
    for facet, protocol in FACETS.items():
        members |= {f"{facet}.{name}" for name in public_names(protocol)} if facet not in LIMITATIONS else set()
    return members - set(LIMITATIONS)


def test_every_member_is_tested_on_both_hosts() -> None:
    assert offered_members() - exercised_members() == set()


@pytest.mark.parametrize("facet", SERVER_ONLY)
def test_every_member_that_only_a_server_has_is_tested(facet: str) -> None:
    offered = {f"{facet}.{name}" for name in public_names(SERVER_ONLY[facet])}
    assert offered - members_used_in(TESTS / "client" / f"test_stored_{facet}.py") == set()


@pytest.mark.parametrize("name", sorted({name for names in EMBEDDED_ONLY.values() for name in names}))
def test_listed_tests_exist(name: str) -> None:
    file, _, test_name = name.partition("::")
    assert (TESTS / file).exists()
    assert not test_name or test_name in names_of_tests(TESTS / file)
