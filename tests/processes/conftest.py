"""Worker processes, kept for the test run and started on demand."""

from collections.abc import Callable, Iterator

import pytest

from tests.processes.worker_processes import Hand

Crew = Callable[[int], list[Hand]]


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    """`crew(n)` gives n other processes, always the same first ones."""
    hands: list[Hand] = []

    def some(count: int) -> list[Hand]:
        hands.extend(Hand() for _ in range(count - len(hands)))
        return hands[:count]

    yield some
    for hand in hands:
        hand.dismiss()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests that use the crew run in one place, so that there is one crew."""
    for item in items:
        if "crew" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("crew"))
