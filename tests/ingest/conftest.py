"""The small graph of the mutation tests, and one for rejected loads."""

import pytest

from tests.engine.writes.conftest import World, make, world

__all__ = ["make", "world"]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A graph for loads that are refused."""
    return World(tmp_path_factory.mktemp("quiet") / "g")
