"""The text of a merged schema keeps comments, order and layout."""

import re
from pathlib import Path

import pytest

from omnigraph.lang.schema.merge import SchemaVersion, merge_schemas

from .versions import assert_sound, first_version, next_version

FILES = sorted((Path(__file__).parents[2] / "cases" / "schema_merge" / "texts").glob("*.txt"))
_TITLE = re.compile(r"^# case ", re.MULTILINE)
_SECTION = re.compile(r"^--- (\w+)\n", re.MULTILINE)
TEXTS = [text for file in FILES for text in _TITLE.split(file.read_text("utf-8"))[1:]]


def _sections(text: str) -> dict[str, str]:
    _, *parts = _SECTION.split(text)
    return {name: f"{body.strip()}\n" for name, body in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.partition("\n")[0])
def test_a_merged_text(text: str) -> None:
    sections = _sections(text)
    base = first_version(sections["base"])
    ours, theirs = (next_version(base, [sections[side]]) for side in ("ours", "theirs"))
    merge = merge_schemas(base, ours, theirs)
    assert_sound(base, ours, theirs, merge)
    assert merge.conflicts == ()
    assert merge.source == sections["merged"]


def test_a_text_that_does_not_match_its_schema_is_printed_anew() -> None:
    base = first_version('node Book { title: String @index @ui("a")  year: I32  @range(year, 0..) @index(title) }')
    ours, theirs = (
        next_version(base, [text])
        for text in (
            'node Book { title: String @index @ui("a")  year: I64  @range(year, 0..) }',
            'node Book { title: String? @index @ui("a")  year: I32  @range(year, 0..) }',
        )
    )
    stale_base, stale_ours, stale_theirs = (SchemaVersion("node Other {}", side.ir) for side in (base, ours, theirs))
    merge = merge_schemas(stale_base, stale_ours, stale_theirs)
    assert merge.conflicts == ()
    assert merge.source == (
        'node Book {\n    title: String? @index @ui("a")\n    year: I64\n    @range(year, 0..)\n}\n'
    )


def test_an_unknown_decision_is_refused() -> None:
    base = first_version("node A { x: I32 }")
    ours, theirs = (next_version(base, [f"node A {{ x: {name} }}"]) for name in ("I64", "F64"))
    with pytest.raises(
        ValueError, match=r"unknown decision 'mine' for node:A\.x; expected 'ours', 'theirs', 'base' or None"
    ):
        merge_schemas(base, ours, theirs, lambda _: "mine")


def test_a_conflict_reads_as_a_sentence() -> None:
    base = first_version("node A { x: I32 }")
    ours, theirs = (next_version(base, [f"node A {{ x: {name} }}"]) for name in ("I64", "F64"))
    (conflict,) = merge_schemas(base, ours, theirs).conflicts
    assert str(conflict) == "node:A.x: changed differently (base: I32, ours: I64, theirs: F64)"
