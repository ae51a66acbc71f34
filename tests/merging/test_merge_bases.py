"""The search for merge bases equals an exhaustive search and reads less."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.history.merge_bases import find_merge_bases, merge_bases


class _Log:
    """Commits by number, and which of them were asked for."""

    def __init__(self, parents: list[tuple[int, ...]]) -> None:
        self.known = {
            f"{at:04}": SimpleNamespace(id=f"{at:04}", parents=tuple(f"{p:04}" for p in some))
            for at, some in enumerate(parents)
        }
        self.asked: set[str] = set()

    def get(self, one: str) -> Any:
        self.asked.add(one)
        return self.known[one]

    def ancestors(self, one: str) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        waiting = [one]
        while waiting:
            at = waiting.pop()
            seen[at] = self.known[at]
            waiting += self.known[at].parents
        return seen


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Commits in order of time, each with one or two earlier parents."""
    parents: list[tuple[int, ...]] = [()]
    for at in range(1, draw(st.integers(2, 24))):
        first = draw(st.integers(max(0, at - 6), at - 1))
        second = draw(st.one_of(st.none(), st.integers(max(0, at - 6), at - 1)))
        parents.append((first,) if second in (None, first) else (first, second))
    return parents


@given(histories(), st.data())
def test_the_walk_finds_the_best_common_ancestors(parents: list[tuple[int, ...]], data: st.DataObject) -> None:
    log = _Log(parents)
    one, other = (f"{data.draw(st.integers(0, len(parents) - 1)):04}" for _ in range(2))
    mine, theirs = log.ancestors(one), log.ancestors(other)
    ours: Any = SimpleNamespace(commit_id=one, log=log)
    found, only = find_merge_bases(ours, SimpleNamespace(commit_id=other, log=log))  # type: ignore[arg-type]
    assert found == merge_bases(mine, theirs)
    assert {c.id for c in only} >= theirs.keys() - mine.keys()
    assert {c.id for c in only} <= theirs.keys()


def test_walk_stops_at_the_common_history() -> None:
    log = _Log([(), *((at,) for at in range(2_000)), (2_000,), (2_000,)])
    ours: Any = SimpleNamespace(commit_id="2001", log=log)
    found, _ = find_merge_bases(ours, SimpleNamespace(commit_id="2002", log=log))  # type: ignore[arg-type]
    assert found == ("2000",)
    assert len(log.asked) < 8
