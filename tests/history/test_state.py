"""A state round-trips through rows, for every value that rows can hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InternalError
from omnigraph.history.commit import Commit, SchemaRow, TableEntry
from omnigraph.history.state import (
    READ_COLUMNS,
    BranchHead,
    GraphState,
    LogChunk,
    StateMismatch,
    commit_rows,
    from_rows,
    parse_commit_row,
    to_rows,
)

TEXT = st.text('ab/:é"\\ \n𝄞', max_size=12)
NUMBER = st.integers(0, (1 << 63) - 1)
MAYBE = st.none() | TEXT
ENTRIES = st.builds(
    TableEntry,
    key=TEXT,
    location=TEXT,
    version=NUMBER,
    lance_version=st.integers(0, (1 << 64) - 1),
    content_id=TEXT,
    row_count=NUMBER,
    branch=MAYBE,
    max_field_id=st.integers(0, 1 << 31),
)
SCHEMAS = st.builds(SchemaRow, TEXT, TEXT)


@st.composite
def table_maps(draw: st.DrawFn, *, drops: bool = False) -> dict[str, TableEntry | None]:
    found: dict[str, TableEntry | None] = {one.key: one for one in draw(st.lists(ENTRIES, max_size=3))}
    if drops:
        found |= dict.fromkeys(draw(st.lists(TEXT, max_size=2)))
    return found


COMMITS = st.builds(
    Commit,
    id=TEXT,
    parents=st.lists(TEXT, max_size=2).map(tuple),
    operation=TEXT,
    branch=MAYBE,
    manifest_version=NUMBER,
    created_at=NUMBER,
    published_at=NUMBER,
    actor=MAYBE,
    message=MAYBE,
    schema=st.none() | SCHEMAS,
    tables=table_maps(drops=True),
    key=MAYBE,
    request=MAYBE,
)
STATES = st.builds(
    GraphState,
    head=st.builds(BranchHead, TEXT, TEXT, NUMBER, st.booleans(), MAYBE, MAYBE),
    schema=SCHEMAS,
    tables=table_maps(),
    tail=st.lists(COMMITS, max_size=3).map(tuple),
    chunks=st.lists(st.builds(LogChunk, TEXT, NUMBER, TEXT), max_size=3).map(tuple),
    streams=st.dictionaries(TEXT, TEXT, max_size=3),
)


@given(STATES)
def test_state_round_trips_through_rows(state: GraphState) -> None:
    rows = to_rows(state, 7).select(READ_COLUMNS).to_pylist()
    assert from_rows(rows, 7) == state


@given(st.lists(COMMITS, max_size=4))
def test_commits_round_trip_through_sealed_chunks(commits: list[Commit]) -> None:
    assert [parse_commit_row(row) for row in commit_rows(commits).to_pylist()] == commits


@given(STATES)
def test_numbers_beyond_63_bits_are_text(state: GraphState) -> None:
    for row in to_rows(state, 1).to_pylist():
        if row["object_type"] == "table":
            assert f'"lance_version":"{state.tables[row["table_key"]].lance_version}"' in row["metadata"]


def test_unknown_row_kinds_are_ignored() -> None:
    state = GraphState(BranchHead("c", "main"), SchemaRow("h", "l"), {})
    *rows, _ = to_rows(state, 1).to_pylist()
    assert from_rows([*rows, {**rows[0], "object_type": "from the future"}], 1) == state


@given(STATES, st.data())
def test_altered_or_misplaced_row_is_rejected(state: GraphState, data: st.DataObject) -> None:
    rows = to_rows(state, 7).select(READ_COLUMNS).to_pylist()
    with pytest.raises(StateMismatch):
        from_rows(rows, 8)
    place = data.draw(st.integers(0, len(rows) - 2))
    rows[place] |= {"location": f"{rows[place]['location']}x"}
    with pytest.raises(StateMismatch):
        from_rows(rows, 7)


@pytest.mark.parametrize("kept", [0, 1])
def test_a_manifest_without_head_or_schema_is_refused(kept: int) -> None:
    rows = to_rows(GraphState(BranchHead("c", "main"), SchemaRow("h", "l"), {}), 1).to_pylist()
    with pytest.raises(InternalError):
        from_rows([rows[kept]], 1)
