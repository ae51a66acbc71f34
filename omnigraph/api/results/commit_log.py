"""`CommitLog`: a list of commits that can be drawn in terminals and notebooks.

This module writes the labels next to the drawn lanes. Branch and tag names are looked up only when a log is drawn.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

from omnigraph.api.commit_lanes import PositionedCommit, assign_lanes, draw_rows
from omnigraph.api.optional_imports import import_optional
from omnigraph.history.commit import Commit

if TYPE_CHECKING:
    import pyarrow as pa

RefNamesLoader = Callable[[], Mapping[str, tuple[str, ...]]]  # branch and tag names, keyed by commit id
MAX_DRAWN_COMMITS = 50  # maximum number of commits in a drawing
_ROW_HEIGHT, _LANE_WIDTH = 26, 18  # distance between two rows and between two lanes, in pixels
_LANE_COLORS = ("#3b7dd8", "#d8703b", "#3ba55d", "#a855c7", "#c7a01f", "#2aa5a5")
_MAX_LABEL_LENGTH = 100


def _no_ref_names() -> Mapping[str, tuple[str, ...]]:
    return {}


class CommitLog(list[Commit]):
    """Commits, newest first."""

    def __init__(self, commits: Iterable[Commit] = (), load_ref_names: RefNamesLoader = _no_ref_names) -> None:
        super().__init__(commits)
        self._load_ref_names = load_ref_names

    def draw(self, *, limit: int | None = MAX_DRAWN_COMMITS, ascii: bool = False) -> "LogDrawing":
        """Draw the newest commits. `str()` returns the drawing as text, and a notebook shows it as a picture.

        If `ascii` is true, the lanes are drawn with ASCII characters, for terminals and files without Unicode, and a
        notebook shows the text.
        """
        return LogDrawing(self if limit is None else self[:limit], self._load_ref_names(), len(self), ascii=ascii)

    def dag(self) -> "dict[str, tuple[str, ...]]":
        """Return the parents of each commit, keyed by commit id, newest first.

        Parents that the log does not contain, because of its limit or filters, are left out, so that every id is a key.

        >>> from omnigraph import testing
        >>> with testing.graph("node Person { name: String @key }") as graph:
        ...     _ = graph.insert("Person", {"name": "ada"})
        ...     commits = graph.log()
        ...     commits.dag() == {commits[0].id: (commits[1].id,), commits[1].id: ()}
        True
        """
        logged_ids = {commit.id for commit in self}
        return {commit.id: tuple(parent for parent in commit.parents if parent in logged_ids) for commit in self}

    def ref_names(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names of branches and tags, grouped by the id of the commit that they point to."""
        return self._load_ref_names()

    def to_arrow(self) -> "pa.Table":
        """Return an Arrow table with one row per commit."""
        commit_rows = [
            {
                "id": commit.id,
                "parents": list(commit.parents),
                "branch": commit.branch,
                "operation": commit.operation,
                "actor": commit.actor,
                "published": commit.published,
                "message": commit.message,
            }
            for commit in self
        ]
        import pyarrow as pa

        return pa.Table.from_pylist(commit_rows, schema=_log_schema())

    def to_pandas(self) -> Any:
        """Return the commits as a pandas DataFrame."""
        import_optional("pandas")
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


class LogDrawing:
    """A drawn log. `str()` returns it as text, and `.svg` is a picture without scripts or external resources."""

    def __init__(
        self,
        commits: Iterable[Commit],
        ref_names: Mapping[str, tuple[str, ...]],
        total_count: int,
        *,
        ascii: bool = False,
    ) -> None:
        self._ascii = ascii
        self.positioned_commits = assign_lanes(list(commits))
        self.ref_names = ref_names
        self.hidden_count = total_count - len(self.positioned_commits)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def text(self, *, ascii: bool | None = None, label: Callable[[Commit, tuple[str, ...]], str] | None = None) -> str:
        """Return the drawing as text, by default with the characters that `draw` chose.

        `label` returns the text to show next to a commit.
        """
        make_label = label or format_commit_line
        uses_ascii = self._ascii if ascii is None else ascii
        drawn_lines = [
            lane_text if commit is None else f"{lane_text}  {make_label(commit, self.ref_names.get(commit.id, ()))}"
            for lane_text, commit in draw_rows(self.positioned_commits, ascii=uses_ascii)
        ]
        footer = f"{self.hidden_count} older commit{'s'[: self.hidden_count > 1]} not shown"
        return "\n".join([*drawn_lines, *([footer] if self.hidden_count else [])])

    @property
    def svg(self) -> str:
        """The drawing as SVG, with branch lanes and each commit's message and author."""
        image_height = _ROW_HEIGHT * (len(self.positioned_commits) + (1 if self.hidden_count else 0)) + 8
        last_lane = max(
            (lane for positioned_commit in self.positioned_commits for lane in _touched_lanes(positioned_commit)),
            default=0,
        )
        label_x = _LANE_WIDTH * (last_lane + 1) + 12
        svg_elements = [
            *self._svg_edges(),
            *(self._svg_dot(row_index, label_x) for row_index in range(len(self.positioned_commits))),
        ]
        if self.hidden_count:
            footer_y = _row_y(len(self.positioned_commits))
            svg_elements.append(f'<text x="{label_x}" y="{footer_y + 4}" opacity=".6">{self.hidden_count} older</text>')
        svg_style = "font:12px sans-serif;color-scheme:light dark"
        return (
            '<svg xmlns="http://www.w3.org/2000/svg"'
            f' width="{label_x + 640}" height="{image_height}"'
            f' role="img" fill="currentColor" style="{svg_style}">{"".join(svg_elements)}</svg>'
        )

    def _repr_html_(self) -> str:
        if self._ascii:
            return f"<pre>{escape(self.text())}</pre>"
        return f'<div class="og" style="overflow:auto">{self.svg}</div>'

    def _svg_edges(self) -> Iterable[str]:
        dot_positions = {
            positioned_commit.commit.id: (row_index, positioned_commit.lane)
            for row_index, positioned_commit in enumerate(self.positioned_commits)
        }
        for row_index, positioned_commit in enumerate(self.positioned_commits):
            for parent_id, edge_lane in positioned_commit.parent_lanes:
                parent_row, parent_lane = dot_positions[parent_id]
                svg_path = _svg_edge_path((row_index, positioned_commit.lane), edge_lane, (parent_row, parent_lane))
                lane_color = _LANE_COLORS[edge_lane % len(_LANE_COLORS)]
                yield f'<path d="{svg_path}" fill="none" stroke="{lane_color}" stroke-width="2"/>'

    def _svg_dot(self, row_index: int, label_x: int) -> str:
        positioned_commit = self.positioned_commits[row_index]
        commit = positioned_commit.commit
        ref_names = self.ref_names.get(commit.id, ())
        dot_x, dot_y = _lane_x(positioned_commit.lane), _row_y(row_index)
        lane_color = _LANE_COLORS[positioned_commit.lane % len(_LANE_COLORS)]
        tooltip = "\n".join(_tooltip_lines(commit))
        ref_labels = "".join(f'<tspan font-weight="bold">{_escape_label(ref_name)}</tspan> ' for ref_name in ref_names)
        description = _escape_label(commit.message or commit.operation)
        author = _escape_label(f"{commit.actor or 'unknown actor'}, {_format_time(commit.published)}")
        return (
            f"<g><title>{escape(tooltip)}</title>"
            f'<circle cx="{dot_x}" cy="{dot_y}" r="5" fill="{lane_color}"/>'
            f'<text x="{label_x}" y="{dot_y + 4}">{ref_labels}{description}'
            f' <tspan opacity=".6">{author}</tspan></text></g>'
        )


def format_commit_line(commit: Commit, ref_names: tuple[str, ...]) -> str:
    """Return a commit on one line, with the branches and tags that point to it."""
    label_fields = [commit.id, _format_time(commit.published), commit.actor or "-", commit.operation]
    label_fields += [_shorten_to_line(commit.message)] if commit.message else []
    return "  ".join([*label_fields, *([f"({', '.join(ref_names)})"] if ref_names else [])])


def _tooltip_lines(commit: Commit) -> list[str]:
    author = commit.actor or "unknown actor"
    tooltip = [commit.id, f"{commit.operation} by {author}, {_format_time(commit.published)} UTC"]
    tooltip += [commit.message[:_MAX_LABEL_LENGTH]] if commit.message else []
    table_counts = (
        f"{table_key}: {table_entry.row_count if table_entry else 'dropped'}"
        for table_key, table_entry in commit.tables.items()
    )
    return [*tooltip, *sorted(table_counts)[:20]]


def _format_time(published_at: datetime) -> str:
    return f"{published_at:%Y-%m-%d %H:%M:%S}"


def _shorten_to_line(message: str) -> str:
    single_line = " ".join(message.split())
    return single_line if len(single_line) <= _MAX_LABEL_LENGTH else f"{single_line[: _MAX_LABEL_LENGTH - 1]}…"


def _escape_label(label: str) -> str:
    return escape(_shorten_to_line(label))


def _touched_lanes(positioned_commit: PositionedCommit) -> list[int]:
    return [
        positioned_commit.lane,
        *positioned_commit.lanes_above,
        *(edge_lane for _, edge_lane in positioned_commit.parent_lanes),
    ]


def _lane_x(lane: int) -> int:
    return _LANE_WIDTH * lane + 12


def _row_y(row_index: int) -> int:
    return _ROW_HEIGHT * row_index + 16


def _svg_edge_path(child_position: tuple[int, int], edge_lane: int, parent_position: tuple[int, int]) -> str:
    """Return the SVG path from a commit into a lane, along the lane, and into the parent commit."""
    (child_row, child_lane), (parent_row, parent_lane) = child_position, parent_position
    path_commands = [f"M{_lane_x(child_lane)} {_row_y(child_row)}"]
    if parent_row - child_row > 1:
        path_commands += [
            f"L{_lane_x(edge_lane)} {_row_y(child_row + 1)}",
            f"L{_lane_x(edge_lane)} {_row_y(parent_row - 1)}",
        ]
    elif edge_lane not in (child_lane, parent_lane):
        path_commands.append(f"L{_lane_x(edge_lane)} {(_row_y(child_row) + _row_y(parent_row)) // 2}")
    return "".join([*path_commands, f"L{_lane_x(parent_lane)} {_row_y(parent_row)}"])


def _log_schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.string()),
            ("parents", pa.list_(pa.string())),
            ("branch", pa.string()),
            ("operation", pa.string()),
            ("actor", pa.string()),
            ("published", pa.timestamp("us", "UTC")),
            ("message", pa.string()),
        ]
    )
