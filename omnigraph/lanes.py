"""The lane of each commit in a drawn log, and how lanes join and split.

Owns the layout that terminal and notebook drawings share. Pure: the same commits in the same order
always give the same drawing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from omnigraph.history.commit import Commit

_PLAIN = str.maketrans("●│├─╯╮┼┴┤", "*||-'.+'|")


@dataclass(frozen=True, slots=True)
class Placed:
    """A commit in its lane.

    `lanes_above` are the lanes in use when it is reached, `joined_lanes` those that end in it, and
    `parent_lanes` its parents with the lane that leads to each. `opened_lanes` are new ones.
    """

    commit: Commit
    lane: int
    above: tuple[int, ...]
    joined: tuple[int, ...] = ()
    edges: tuple[tuple[str, int], ...] = ()
    opened: tuple[int, ...] = ()


@dataclass(slots=True)
class _Lanes:
    """The lanes in use, each with the commit that it leads to."""

    waiting: list[str | None] = field(default_factory=list)

    def used(self) -> tuple[int, ...]:
        return tuple(at for at, one in enumerate(self.waiting) if one is not None)

    def of(self, commit_id: str) -> list[int]:
        return [at for at, one in enumerate(self.waiting) if one == commit_id]

    def take(self, commit_id: str, beyond: int = -1) -> int:
        """Take the first free lane to the right of `beyond`, or append one."""
        free = (at for at, one in enumerate(self.waiting) if one is None and at > beyond)
        found = next(free, len(self.waiting))
        self.waiting[found : found + 1] = [commit_id]
        return found

    def trim(self) -> None:
        while self.waiting and self.waiting[-1] is None:
            self.waiting.pop()


def place(commits: Sequence[Commit]) -> list[Placed]:
    """Assign lanes to commits, children first. A parent that is not listed ends its lane."""
    known = {one.id for one in commits}
    lanes, placed = _Lanes(), []
    for one in commits:
        found = lanes.of(one.id)
        lane = found[0] if found else lanes.take(one.id)
        above = lanes.used()
        for at in found[1:]:
            lanes.waiting[at] = None
        parents = [parent for parent in one.parents if parent in known]
        lanes.waiting[lane] = parents[0] if parents else None
        edges, opened = [(parent, lane) for parent in parents[:1]], []
        for parent in parents[1:]:
            there = lanes.of(parent)
            way = there[0] if there else lanes.take(parent, lane)
            opened += [] if there else [way]
            edges.append((parent, way))
        lanes.trim()
        placed.append(Placed(one, lane, above, tuple(found[1:]), tuple(edges), tuple(opened)))
    return placed


def rows(placed: Sequence[Placed], *, ascii: bool = False) -> Iterator[tuple[str, Commit | None]]:
    """Yield the drawing line by line: lines with a commit, and lines that only join lanes.

    >>> from omnigraph.history.commit import Commit
    >>> def made(id, *parents): return Commit(id, parents, "load", "main", 1, 0, 0)
    >>> log = [made("d", "b", "c"), made("c", "a"), made("b", "a"), made("a")]
    >>> for line, commit in rows(place(log)): print(line, *([commit.id] if commit else []))
    ●   d
    ├─╮
    │ ● c
    ● │ b
    ├─╯
    ●   a
    """
    width = max((_width(one) for one in placed), default=0)
    for one in placed:
        for line, commit in _rows(one):
            text = line.translate(_PLAIN) if ascii else line
            yield text.ljust(width) if commit is not None else text, commit


def _width(one: Placed) -> int:
    return 2 * max([one.lane, *one.above, *(way for _, way in one.edges)]) + 1


def _rows(one: Placed) -> Iterator[tuple[str, Commit | None]]:
    if one.joined:
        ends = dict.fromkeys(one.joined, "┴") | {one.joined[-1]: "╯", one.lane: "├"}
        yield _line(one.above, ends), None
    used = {*one.above, one.lane} - {*one.joined}
    yield _line(used, {one.lane: "●"}), one.commit
    shown = used if one.edges else used - {one.lane}
    for _, way in one.edges[1:]:
        right = "╮" if way in one.opened and way not in shown else "┤"
        ends = {one.lane: "├", way: right} if way > one.lane else {way: "├", one.lane: "┤"}
        yield _line(shown, ends), None
        shown = shown | {way}


def _line(used: Iterator[int] | set[int] | tuple[int, ...], ends: dict[int, str]) -> str:
    """Draw one line: the lanes in use, and a stroke from the first to the last marked lane."""
    lanes, first, last = set(used), min(ends), max(ends)
    cells = []
    for at in range(max(lanes | {last}) + 1):
        inside = first < at < last
        plain = ("┼" if inside else "│") if at in lanes else "─" if inside else " "
        cells.append(ends.get(at, plain))
        cells.append("─" if first <= at < last else " ")
    return "".join(cells).rstrip()
