"""The same small graph as for mutations; one of them for what is refused."""

import pytest

from tests.mutate.conftest import World, make, world

__all__ = ["make", "world"]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A graph for loads that are refused."""
    return World(tmp_path_factory.mktemp("quiet") / "g")
