"""Compute the lane of each commit in a drawn log, and the points where lanes join and split.

Terminal and notebook drawings share this layout. The layout is deterministic: the same commits in the same order always
produce the same drawing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from omnigraph.history.commit import Commit
from omnigraph.records.frozen import record

_ASCII_TRANSLATION = str.maketrans("●│├─╯╮┼┴┤", "*||-'.+'|")


@record
class PositionedCommit:
    """A commit and its lane.

    `lanes_above` are the lanes in use above the commit, and `joined_lanes` are the lanes that end at it. `parent_lanes`
    are the commit's parents, each with the lane that leads to it. `opened_lanes` are the lanes that start at the
    commit.
    """

    commit: Commit
    lane: int
    lanes_above: tuple[int, ...]
    joined_lanes: tuple[int, ...] = ()
    parent_lanes: tuple[tuple[str, int], ...] = ()
    opened_lanes: tuple[int, ...] = ()


@dataclass(slots=True)
class _LaneState:
    """The lanes in use, each with the commit that it leads to."""

    awaited_ids: list[str | None] = field(default_factory=list)

    def used_lanes(self) -> tuple[int, ...]:
        return tuple(lane for lane, awaited_id in enumerate(self.awaited_ids) if awaited_id is not None)

    def lanes_awaiting(self, commit_id: str) -> list[int]:
        return [lane for lane, awaited_id in enumerate(self.awaited_ids) if awaited_id == commit_id]

    def take_lane(self, commit_id: str, beyond: int = -1) -> int:
        """Take the first free lane to the right of `beyond`, or append one."""
        free_lanes = (lane for lane, awaited_id in enumerate(self.awaited_ids) if awaited_id is None and lane > beyond)
        taken_lane = next(free_lanes, len(self.awaited_ids))
        self.awaited_ids[taken_lane : taken_lane + 1] = [commit_id]
        return taken_lane

    def drop_free_tail(self) -> None:
        while self.awaited_ids and self.awaited_ids[-1] is None:
            self.awaited_ids.pop()


def assign_lanes(commits: Sequence[Commit]) -> list[PositionedCommit]:
    """Assign lanes to commits, children first.

    A lane ends at a commit if none of the commit's parents are in `commits`.
    """
    listed_ids = {commit.id for commit in commits}
    lane_state, positioned_commits = _LaneState(), []
    for commit in commits:
        awaiting_lanes = lane_state.lanes_awaiting(commit.id)
        lane = awaiting_lanes[0] if awaiting_lanes else lane_state.take_lane(commit.id)
        lanes_above = lane_state.used_lanes()
        for joined_lane in awaiting_lanes[1:]:
            lane_state.awaited_ids[joined_lane] = None
        parent_ids = [parent_id for parent_id in commit.parents if parent_id in listed_ids]
        lane_state.awaited_ids[lane] = parent_ids[0] if parent_ids else None
        parent_lanes, opened_lanes = [(parent_id, lane) for parent_id in parent_ids[:1]], []
        for parent_id in parent_ids[1:]:
            existing_lanes = lane_state.lanes_awaiting(parent_id)
            edge_lane = existing_lanes[0] if existing_lanes else lane_state.take_lane(parent_id, lane)
            opened_lanes += [] if existing_lanes else [edge_lane]
            parent_lanes.append((parent_id, edge_lane))
        lane_state.drop_free_tail()
        positioned_commits.append(
            PositionedCommit(
                commit, lane, lanes_above, tuple(awaiting_lanes[1:]), tuple(parent_lanes), tuple(opened_lanes)
            )
        )
    return positioned_commits


def draw_rows(
    positioned_commits: Sequence[PositionedCommit], *, ascii: bool = False
) -> Iterator[tuple[str, Commit | None]]:
    """Yield the drawing one line at a time: lines with a commit, and lines that only join lanes.

    >>> from omnigraph.history.commit import Commit
    >>> def load(id, *parents): return Commit(id, parents, "load", "main", 1, 0, 0)
    >>> log = [load("d", "b", "c"), load("c", "a"), load("b", "a"), load("a")]
    >>> for line, commit in draw_rows(assign_lanes(log)):
    ...     print(line, *([commit.id] if commit else []))
    ●   d
    ├─╮
    │ ● c
    ● │ b
    ├─╯
    ●   a
    """
    drawing_width = max((_drawing_width(positioned_commit) for positioned_commit in positioned_commits), default=0)
    for positioned_commit in positioned_commits:
        for lane_text, commit in _draw_commit_rows(positioned_commit):
            drawn_text = lane_text.translate(_ASCII_TRANSLATION) if ascii else lane_text
            yield drawn_text.ljust(drawing_width) if commit is not None else drawn_text, commit


def _drawing_width(positioned_commit: PositionedCommit) -> int:
    return (
        2
        * max(
            [
                positioned_commit.lane,
                *positioned_commit.lanes_above,
                *(edge_lane for _, edge_lane in positioned_commit.parent_lanes),
            ]
        )
        + 1
    )


def _draw_commit_rows(positioned_commit: PositionedCommit) -> Iterator[tuple[str, Commit | None]]:
    if positioned_commit.joined_lanes:
        lane_marks = dict.fromkeys(positioned_commit.joined_lanes, "┴") | {
            positioned_commit.joined_lanes[-1]: "╯",
            positioned_commit.lane: "├",
        }
        yield _draw_line(positioned_commit.lanes_above, lane_marks), None
    used_lanes = {*positioned_commit.lanes_above, positioned_commit.lane} - {*positioned_commit.joined_lanes}
    yield _draw_line(used_lanes, {positioned_commit.lane: "●"}), positioned_commit.commit
    visible_lanes = used_lanes if positioned_commit.parent_lanes else used_lanes - {positioned_commit.lane}
    for _, edge_lane in positioned_commit.parent_lanes[1:]:
        right_mark = "╮" if edge_lane in positioned_commit.opened_lanes and edge_lane not in visible_lanes else "┤"
        lane_marks = (
            {positioned_commit.lane: "├", edge_lane: right_mark}
            if edge_lane > positioned_commit.lane
            else {edge_lane: "├", positioned_commit.lane: "┤"}
        )
        yield _draw_line(visible_lanes, lane_marks), None
        visible_lanes = visible_lanes | {edge_lane}


def _draw_line(used_lanes: Iterator[int] | set[int] | tuple[int, ...], lane_marks: dict[int, str]) -> str:
    """Draw one line, with the lanes in use and a horizontal stroke from the first to the last marked lane."""
    lane_set, first_marked, last_marked = set(used_lanes), min(lane_marks), max(lane_marks)
    characters = []
    for lane in range(max(lane_set | {last_marked}) + 1):
        is_inside = first_marked < lane < last_marked
        default_mark = ("┼" if is_inside else "│") if lane in lane_set else "─" if is_inside else " "
        characters.append(lane_marks.get(lane, default_mark))
        characters.append("─" if first_marked <= lane < last_marked else " ")
    return "".join(characters).rstrip()
