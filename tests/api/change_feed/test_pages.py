"""Pages and tokens: bounded, complete, and valid only for their feed."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ChangeCursorRejected, InputError, ResourceLimitExceeded, UsageError
from tests.api.change_feed.conftest import FIVE, SCHEMA, build, told


def polled(graph: Graph, first: Any, **options: Any) -> list[Any]:
    """All pages, from poll to poll, until one is caught up."""
    pages = [graph.changes.poll(first, **options)]
    while not pages[-1].caught_up:
        last = pages[-1]
        assert (last.cursor is None) != (last.next_page_token is None)
        assert (last.cursor is None) == (last.caught_up is None)
        where: Any = {"cursor": last.cursor, "page_token": last.next_page_token}
        pages.append(graph.changes.poll(**where, **options))
    return pages


def together(pages: list[Any]) -> dict[str, list[Any]]:
    """The changes of all pages by commit, in the order in which they came."""
    found: dict[str, list[Any]] = {}
    for page in pages:
        for part in page.blocks:
            found.setdefault(part.commit.id, []).extend(part.to_json()["changes"])
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("commits", [1, 2, 128])
def test_pages_concatenate_to_the_blocks(shared: Graph, limit: int, commits: int) -> None:
    pages = polled(shared, "beginning", limit=limit, max_commits=commits)
    wanted = {one.commit.id: one.to_json()["changes"] for one in shared.changes.feed("beginning")}
    found = together(pages)
    assert found == wanted
    assert list(found) == list(wanted)
    assert all(sum(len(one.changes) for one in page.blocks) <= limit for page in pages)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_cursor_is_returned_only_at_commit_boundaries(shared: Graph, limit: int) -> None:
    whole = {one.commit.id: len(one.changes) for one in shared.changes.feed("beginning")}
    seen: dict[str, int] = {}
    for page in polled(shared, "beginning", limit=limit):
        for part in page.blocks:
            seen[part.commit.id] = seen.get(part.commit.id, 0) + len(part.changes)
        complete = all(whole[one] == count for one, count in seen.items())
        assert (page.cursor is not None) == complete
        if page.cursor is not None:
            assert told(shared.changes.feed(cursor=page.cursor)) == FIVE[len(seen) :]


def test_commits_during_a_poll_are_left_to_the_next(graph: Graph) -> None:
    page = graph.changes.poll("beginning", limit=1)
    graph.insert("Firm", {"name": "late"})
    pages = [page]
    while pages[-1].next_page_token:
        pages.append(graph.changes.poll(page_token=pages[-1].next_page_token))
    assert told(pages[-1].blocks)[-1] == FIVE[-1]
    assert pages[-1].caught_up
    last = graph.changes.poll(cursor=pages[-1].cursor)
    assert (told(last.blocks), last.caught_up) == ([[("insert", "Firm", "late")]], True)


def test_poll_is_bounded_and_reports_more(shared: Graph) -> None:
    page = shared.changes.poll("beginning", max_commits=2)
    assert (told(page.blocks), page.caught_up) == (FIVE[:2], False)
    page = shared.changes.poll(cursor=page.cursor, max_commits=3)
    assert (told(page.blocks), page.caught_up) == (FIVE[2:], True)


def test_oversized_change_gets_a_page_of_its_own(graph: Graph) -> None:
    start = graph.changes.feed().cursor
    rows = [{"name": name, "face": b"x" * size} for name, size in (("a", 9), ("b", 9000), ("c", 9))]
    graph.insert("Person", *rows)
    sizes = [
        [[one.id for one in part.changes] for part in page.blocks] for page in polled_from(graph, start, max_bytes=4096)
    ]
    assert sizes == [[["a"]], [["b"]], [["c"]]]


def polled_from(graph: Graph, cursor: str, **options: Any) -> list[Any]:
    """The pages of one poll."""
    pages = [graph.changes.poll(cursor=cursor, **options)]
    while pages[-1].next_page_token:
        pages.append(graph.changes.poll(page_token=pages[-1].next_page_token, **options))
    return pages


def test_pages_of_one_commit(graph: Graph) -> None:
    graph.insert("Person", *({"name": f"p{n:03}"} for n in range(25)))
    pages = list(graph.changes.commit_pages("HEAD", limit=10))
    assert [len(one.changes) for one in pages] == [10, 10, 5]
    token = pages[0].next_page_token
    again = graph.changes.commit_page("HEAD", limit=10, page_token=token)
    assert again.to_json() == pages[1].to_json()
    assert "next_page_token" not in pages[2].to_json()
    fresh = omnigraph.open(graph.uri, read_only=True)  # what remembers nothing says the same
    assert fresh.changes.commit_page("HEAD", limit=10, page_token=token).changes == pages[1].changes
    with pytest.raises(ChangeCursorRejected, match="a different commit"):
        graph.changes.commit_page("HEAD~1", page_token=token)


@pytest.mark.parametrize("length", [255, 256, 257, 3000])
def test_page_token_resumes_at_long_ids(graph: Graph, length: int) -> None:
    names = ["é" * (length // 2) + "z" * (length % 2 + n) for n in range(4)]
    start = graph.changes.feed().cursor
    graph.insert("Person", *({"name": one} for one in names))
    pages = polled_from(graph, start, limit=1)
    assert [one.id for page in pages for part in page.blocks for one in part.changes] == names
    assert all(len(one.next_page_token or "") <= 4096 for one in pages)


def refused(call: Any) -> str:
    with pytest.raises(ChangeCursorRejected) as error:
        call()
    assert error.value.message.startswith("change cursor rejected: ")
    assert (error.value.status, error.value.effect) == (400, "none")
    return str(error.value.reason)


def test_tokens_are_rejected_outside_their_feed(graph: Graph, tmp_path: Path) -> None:
    cursor = graph.changes.feed("beginning").cursor
    page = graph.changes.poll("beginning", limit=1).next_page_token
    inside = graph.changes.commit_page("HEAD~1", limit=1).next_page_token
    other = build(omnigraph.init(tmp_path / "h", SCHEMA, durability="os"))
    side = graph.branches.create("side")
    filters: list[Any] = [{"types": ["Person"]}, {"kinds": ["node"]}, {"ops": ["insert"]}, {"types": []}]
    reasons = [
        refused(lambda: other.changes.feed(cursor=cursor)),
        refused(lambda: side.changes.feed(cursor=cursor)),
        refused(lambda: side.changes.poll(page_token=page)),
        refused(lambda: graph.changes.feed(cursor=page)),
        refused(lambda: graph.changes.feed(cursor=inside)),
        refused(lambda: graph.changes.poll(page_token=cursor)),
        refused(lambda: graph.changes.commit_page("HEAD~1", page_token=page)),
        *(refused(lambda f=f: graph.changes.feed(cursor=cursor, **f)) for f in filters),
        *(refused(lambda f=f: graph.changes.poll(page_token=page, **f)) for f in filters[:3]),
    ]
    assert reasons == [
        "the token was created for a different graph",
        *["the token was created for a different branch"] * 2,
        "expected a cursor, got a page token",
        "expected a cursor, got a page token for a single commit",
        "expected a page token, got a cursor",
        "expected a page token for a single commit, got a page token",
        *["the token was created with a different filter"] * 7,
    ]
    same: list[Any] = [{"kinds": ["edge", "node"]}, {"ops": ["update", "insert", "delete"]}]
    assert all(told(graph.changes.feed(cursor=cursor, **one)) == FIVE for one in same)


def test_altered_token_is_rejected(shared: Graph) -> None:
    cursor = shared.changes.feed("beginning").cursor
    for at in range(0, len(cursor), 7):
        flipped = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        refused(lambda text=flipped: shared.changes.feed(cursor=text))
    last = cursor[:-1] + chr(ord(cursor[-1]) + 1)  # the same bytes in another spelling, perhaps
    for text in (cursor[:-1], cursor + "=", cursor + "A", last, "", "é", "x" * 5000, " " + cursor):
        refused(lambda text=text: shared.changes.feed(cursor=text))


FORGED: list[Any] = [
    [],
    {},
    {"at": 5},
    {"place": {"kind": "x", "type": 1, "id": "a"}},
    {"place": {"kind": "node", "type": "1", "id": "a"}},
    {"place": {"kind": "node", "type": 1, "id": 7}},
    {"place": {"kind": "node", "type": 2, "prefix": "a", "digest": "b"}},
    {"place": None},
    {"commit": "nowhere"},
    {"commit": None},
    {"cut": "nowhere"},
]


@pytest.mark.parametrize("forged", FORGED, ids=json.dumps)
def test_forged_token_is_rejected(shared: Graph, forged: Any) -> None:
    token = shared.changes.poll("beginning", limit=1).next_page_token
    assert token is not None
    facts = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[:-32])
    if isinstance(forged, dict) and forged.keys() & {"place", "commit", "cut"}:
        facts["at"] |= forged
    elif isinstance(forged, dict) and forged:
        facts |= forged
    else:
        facts = forged
    body = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    raw = body + hashlib.sha256(body).digest()
    text = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    refused(lambda: shared.changes.poll(page_token=text))


def test_page_limits_are_validated(shared: Graph) -> None:
    few: list[Any] = [{"limit": 0}, {"max_bytes": 0}, {"max_commits": 0}, {"limit": -1}]
    for options in few:
        with pytest.raises(InputError, match="at least 1"):
            shared.changes.poll(**options)
    most: Any = {"limit": 8_192, "max_bytes": 32 << 20, "max_commits": 512}
    shared.changes.poll(**most)
    for name, value in most.items():
        given: Any = {name: value + 1}
        with pytest.raises(ResourceLimitExceeded) as error:
            shared.changes.poll(**given)
        assert (error.value.limit, error.value.actual) == (value, value + 1)
    with pytest.raises(UsageError, match="start and cursor"):
        shared.changes.feed("now", cursor="x")
    for start in ("yesterday", "", "after"):
        with pytest.raises(InputError, match="expected now, beginning"):
            shared.changes.feed(start)
