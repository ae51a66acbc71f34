"""`CommitLog`: a list of commits that draws itself, for terminals and for notebooks.

Owns the labels next to the drawn lanes. Names of branches and tags are looked up only when a log is
drawn.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from html import escape
from typing import Any

import pyarrow as pa

from omnigraph.extras import extra
from omnigraph.history.commit import Commit
from omnigraph.lanes import Placed, place, rows

Names = Callable[[], Mapping[str, tuple[str, ...]]]  # branch and tag names by commit id
LIMIT = 50  # commits in a drawing
_STEP, _LANE = 26, 18  # pixels between two rows, and between two lanes
_COLORS = ("#3b7dd8", "#d8703b", "#3ba55d", "#a855c7", "#c7a01f", "#2aa5a5")
_LONGEST = 100


def _nobody() -> Mapping[str, tuple[str, ...]]:
    return {}


class CommitLog(list[Commit]):
    """Commits, newest first."""

    def __init__(self, commits: Iterable[Commit] = (), names: Names = _nobody) -> None:
        super().__init__(commits)
        self._names = names

    def draw(self, *, limit: int | None = LIMIT) -> "Picture":
        """Draw the graph of the newest commits: `str()` is text, a notebook shows a picture."""
        return Picture(self if limit is None else self[:limit], self._names(), len(self))

    def to_arrow(self) -> pa.Table:
        """One row per commit."""
        found = [
            {
                "id": one.id,
                "parents": list(one.parents),
                "branch": one.branch,
                "operation": one.operation,
                "actor": one.actor,
                "published": one.published,
                "message": one.message,
            }
            for one in self
        ]
        return pa.Table.from_pylist(found, schema=_SCHEMA)

    def to_pandas(self) -> Any:
        """Return the same as a pandas DataFrame."""
        extra("pandas")
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


class Picture:
    """A drawn log. `str()` is text, `.svg` a picture without scripts or external resources."""

    def __init__(
        self, commits: Iterable[Commit], names: Mapping[str, tuple[str, ...]], total: int
    ) -> None:
        self.placed = place(list(commits))
        self.names = names
        self.left = total - len(self.placed)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def text(
        self,
        *,
        ascii: bool = False,
        label: Callable[[Commit, tuple[str, ...]], str] | None = None,
    ) -> str:
        """Return lanes and one line per commit; `label` makes the text next to a commit."""
        told = label or line_of
        lines = [
            stroke if one is None else f"{stroke}  {told(one, self.names.get(one.id, ()))}"
            for stroke, one in rows(self.placed, ascii=ascii)
        ]
        more = f"{self.left} older commit{'s'[: self.left > 1]} not shown"
        return "\n".join([*lines, *([more] if self.left else [])])

    @property
    def svg(self) -> str:
        """The drawing as SVG: lanes of branches, and next to each commit its message and author."""
        height = _STEP * (len(self.placed) + (1 if self.left else 0)) + 8
        widest = max((one for each in self.placed for one in _lanes(each)), default=0)
        beside = _LANE * (widest + 1) + 12
        body = [*self._edges(), *(self._dot(at, beside) for at in range(len(self.placed)))]
        if self.left:
            y = _y(len(self.placed))
            body.append(f'<text x="{beside}" y="{y + 4}" opacity=".6">{self.left} older</text>')
        style = "font:12px sans-serif;color-scheme:light dark"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{beside + 640}" height="{height}"'
            f' role="img" fill="currentColor" style="{style}">{"".join(body)}</svg>'
        )

    def _repr_html_(self) -> str:
        return f'<div class="og" style="overflow:auto">{self.svg}</div>'

    def _edges(self) -> Iterable[str]:
        where = {one.commit.id: (at, one.lane) for at, one in enumerate(self.placed)}
        for at, one in enumerate(self.placed):
            for parent, way in one.edges:
                below, lane = where[parent]
                path = _path((at, one.lane), way, (below, lane))
                color = _COLORS[way % len(_COLORS)]
                yield f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"/>'

    def _dot(self, at: int, beside: int) -> str:
        one = self.placed[at]
        commit, names = one.commit, self.names.get(one.commit.id, ())
        color = _COLORS[one.lane % len(_COLORS)]
        tip = "\n".join(_facts(commit))
        marks = "".join(f'<tspan font-weight="bold">{_safe(name)}</tspan> ' for name in names)
        said = _safe(commit.message or commit.operation)
        who = _safe(f"{commit.actor or 'unknown actor'}, {_when(commit.published)}")
        return (
            f'<g><title>{escape(tip)}</title><circle cx="{_x(one.lane)}" cy="{_y(at)}" r="5"'
            f' fill="{color}"/><text x="{beside}" y="{_y(at) + 4}">{marks}{said}'
            f' <tspan opacity=".6">{who}</tspan></text></g>'
        )


def line_of(one: Commit, names: tuple[str, ...]) -> str:
    """Return a commit on one line, with the branches and tags that point to it."""
    parts = [one.id, _when(one.published), one.actor or "-", one.operation]
    parts += [_one_line(one.message)] if one.message else []
    return "  ".join([*parts, *([f"({', '.join(names)})"] if names else [])])


def _facts(one: Commit) -> list[str]:
    author = one.actor or "unknown actor"
    told = [one.id, f"{one.operation} by {author}, {_when(one.published)} UTC"]
    told += [one.message[:_LONGEST]] if one.message else []
    counts = (f"{key}: {entry.rows if entry else 'dropped'}" for key, entry in one.tables.items())
    return [*told, *sorted(counts)[:20]]


def _when(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _safe(text: str) -> str:
    return escape(_one_line(text))


def _lanes(one: Placed) -> list[int]:
    return [one.lane, *one.above, *(way for _, way in one.edges)]


def _x(lane: int) -> int:
    return _LANE * lane + 12


def _y(row: int) -> int:
    return _STEP * row + 16


def _path(child: tuple[int, int], way: int, parent: tuple[int, int]) -> str:
    """Return the SVG path from a commit into a lane, along the lane, and into the parent."""
    (top, one), (bottom, other) = child, parent
    path = [f"M{_x(one)} {_y(top)}"]
    if bottom - top > 1:
        path += [f"L{_x(way)} {_y(top + 1)}", f"L{_x(way)} {_y(bottom - 1)}"]
    elif way not in (one, other):
        path.append(f"L{_x(way)} {(_y(top) + _y(bottom)) // 2}")
    return "".join([*path, f"L{_x(other)} {_y(bottom)}"])


_SCHEMA = pa.schema(
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
