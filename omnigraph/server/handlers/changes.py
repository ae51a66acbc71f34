"""The change feed (pages, long polls, events and baselines), and the differences between two revisions."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from typing import Any

import orjson

from omnigraph.api.change_feed.diff_documents import iter_diff_documents
from omnigraph.api.change_feed.feed import describe_schema_change
from omnigraph.api.change_feed.pages import DEFAULT_PAGE_BYTES, DEFAULT_PAGE_CHANGES, DEFAULT_POLL_COMMITS, ChangePage
from omnigraph.errors import CommitNotFound, InputError, SnapshotNotFound
from omnigraph.history.entities import EntityChange
from omnigraph.server import engine_access
from omnigraph.server.branch_watch import BranchWatch
from omnigraph.server.call import ServerCall
from omnigraph.server.engine_access import graph_for_request
from omnigraph.server.lanes import LaneContext
from omnigraph.server.models.requests import ChangeBaselineRequest
from omnigraph.server.route_model import EVENTS, JSON
from omnigraph.server.wire.answer import Answer, AnyAnswer, EventAnswer, StreamAnswer, json_answer
from omnigraph.server.wire.values import to_wire_value
from omnigraph.storage.layout import MAIN
from omnigraph.values import clock_and_ids

from .exports import NDJSON_UTF8, ExportChunks
from .reads import SNAPSHOT_HEADER

_MAX_WAIT_SECONDS = 60.0
_HEARTBEAT_SECONDS = 15.0
_DEFAULT_DIFF_CHANGES = 1000


def commit_changes(call: ServerCall) -> Answer:
    """Return a page of the changes in one commit."""
    values, graph = call.query_values, call.graph_for_read().refresh()
    try:
        commit_id = graph.revisions.commit(call.path_values["commit_id"]).id
    except (InputError, SnapshotNotFound):
        raise CommitNotFound("commit not found") from None
    page = graph.changes.commit_page(
        commit_id, page_token=values.get("page_token"), **_page_limits(call), **_change_filters(call)
    )
    return Answer(orjson.dumps(page.to_json(), default=str))


async def poll_changes(call: ServerCall) -> Answer:
    """Return a page of the feed. With `wait`, wait for a commit if there is no new commit yet."""
    wait = call.query_values.get("wait") or 0.0
    if not 0 <= wait <= _MAX_WAIT_SECONDS:
        raise InputError(f"`wait` must be between 0 and {_MAX_WAIT_SECONDS:.0f}", reason="invalid value")
    deadline = clock_and_ids.monotonic() + wait
    page = await _run_in_lane(call, partial(_read_page, call, call.query_values))
    if wait and _is_idle(page):
        page = await _wait_for_page(call, page, deadline)
    return Answer(orjson.dumps(page.to_json(), default=str))


async def _wait_for_page(call: ServerCall, page: ChangePage, deadline: float) -> ChangePage:
    """Return the next page with changes, or an empty one at the deadline."""
    with _subscribe(call) as watch:
        while _is_idle(page) and not call.state.stopping.is_set():
            seen_count = watch.change_count
            page = await _read_next_page(call, page)
            seconds = deadline - clock_and_ids.monotonic()
            if not _is_idle(page) or seconds <= 0:
                break
            await watch.wait_for_change(seen_count, seconds)
    return page


def _subscribe(call: ServerCall) -> AbstractContextManager[BranchWatch]:
    """Watch the branch of a request. All requests for the same branch share one watch."""
    served, state, branch = call.graph, call.state, call.query_values.get("branch") or MAIN
    lane_context = LaneContext()

    def read_head() -> str:
        return graph_for_request(served.opened, None, branch).refresh().head.id

    async def read_head_in_lane() -> str:
        state.metrics.count_feed_read("head")
        return await state.lanes.read.run(read_head, lane_context, is_admitted=True)

    return state.watches.subscribe((served.graph_id, branch), read_head_in_lane)


async def _read_next_page(call: ServerCall, page: ChangePage) -> ChangePage:
    """Return the page that follows the given page."""
    position = {"cursor": page.cursor} if page.next_page_token is None else {"page_token": page.next_page_token}
    call.state.metrics.count_feed_read("page")
    read = partial(_read_page, call, {**_without_position(call), **position})
    return await call.state.lanes.read.run(read, call.lane_context, is_admitted=True)


def _is_idle(page: ChangePage) -> bool:
    return not page.blocks and page.next_page_token is None and bool(page.caught_up)


def _without_position(call: ServerCall) -> dict[str, Any]:
    return {name: value for name, value in call.query_values.items() if name not in ("start", "cursor", "page_token")}


async def _run_in_lane(call: ServerCall, read: Callable[[], ChangePage]) -> ChangePage:
    return await call.state.lanes.read.run(read, call.lane_context)


def _read_page(call: ServerCall, values: Any) -> ChangePage:
    graph = call.graph_for_read(values.get("branch"))
    return graph.changes.poll(
        values.get("start"),
        cursor=values.get("cursor"),
        page_token=values.get("page_token"),
        max_commits=_value_or(call, "max_commits", DEFAULT_POLL_COMMITS),
        **_page_limits(call),
        **_change_filters(call),
    )


def _page_limits(call: ServerCall) -> dict[str, Any]:
    return {
        "limit": _value_or(call, "limit", DEFAULT_PAGE_CHANGES),
        "max_bytes": _value_or(call, "max_bytes", DEFAULT_PAGE_BYTES),
    }


def _value_or(call: ServerCall, name: str, default: int) -> int:
    value: int | None = call.query_values.get(name)
    return default if value is None else value


def _change_filters(call: ServerCall) -> dict[str, Any]:
    values = call.query_values
    return {"types": values.get("type"), "kinds": values.get("kind"), "ops": values.get("op")}


async def stream_changes(call: ServerCall) -> EventAnswer:
    """Follow the feed as server-sent events, one per page. An event that completes a commit has a cursor as its id."""
    values = dict(call.query_values)
    last_event = call.headers.get("last-event-id")
    if last_event:
        values.pop("start", None)
        values["cursor"] = last_event
    page = await _run_in_lane(call, partial(_read_page, call, values))
    return EventAnswer(_iter_events(call, page), EVENTS, headers={"Cache-Control": "no-store"})


async def _iter_events(call: ServerCall, page: ChangePage) -> AsyncIterator[bytes]:
    yield b": connected\n\n"
    seen_count = -1  # the first page was read before the watch began
    with _subscribe(call) as watch:
        while not call.state.stopping.is_set():
            if page.blocks or page.next_page_token:
                yield _encode_event(page)
            if page.caught_up:
                async for heartbeat in _iter_heartbeats(call, watch, seen_count):
                    yield heartbeat
            seen_count = watch.change_count
            page = await _read_next_page(call, page)


async def _iter_heartbeats(call: ServerCall, watch: BranchWatch, seen_count: int) -> AsyncIterator[bytes]:
    """Yield comments that keep the connection open, until the branch changes or the worker stops."""
    while watch.change_count == seen_count and not call.state.stopping.is_set():
        await watch.wait_for_change(seen_count, _HEARTBEAT_SECONDS)
        if watch.change_count == seen_count:
            yield b": heartbeat\n\n"


def _encode_event(page: ChangePage) -> bytes:
    """Return a page as one event. Only an event that completes a commit has an id from which clients can resume."""
    event_id = b"" if page.cursor is None else b"id: " + page.cursor.encode() + b"\n"
    return event_id + b"event: changes\ndata: " + orjson.dumps(page.to_json(), default=str) + b"\n\n"


def capture_baseline(call: ServerCall) -> StreamAnswer:
    """Return all entities of a branch, then a record with the cursor from which the feed continues."""
    body = call.body or ChangeBaselineRequest()
    graph = call.graph_for_read(body.branch)
    baseline = graph.changes.baseline(types=body.type_ or None, kinds=body.kind or None, ops=body.op or None)
    headers = {SNAPSHOT_HEADER: baseline.commit_id}
    return StreamAnswer(ExportChunks(call, engine_access.baseline_parts(baseline)), NDJSON_UTF8, headers=headers)


def diff(call: ServerCall) -> AnyAnswer:
    """Return the entities that differ between two revisions."""
    values = call.query_values
    limit = values.get("limit", _DEFAULT_DIFF_CHANGES)
    if limit < 1:
        raise InputError("limit must be at least 1", reason="invalid value")
    graph = call.graph_for_read().refresh()
    compared = graph.diff(values["from"], values.get("to"), **_change_filters(call))
    if call.media_type != JSON:
        return StreamAnswer(_diff_lines(iter(compared)), NDJSON_UTF8)
    is_feed = values.get("images") == "feed"
    documents = iter_diff_documents(graph, compared) if is_feed else map(_diff_document, compared)
    changes = list(islice(documents, limit + 1))
    document = {
        "from_commit_id": compared.from_commit,
        "to_commit_id": compared.to_commit,
        "summary": compared.summary(),
        "changes": [] if is_feed else changes[:limit],
        **({"feed_changes": changes[:limit]} if is_feed else {}),
        "truncated": len(changes) > limit,
        **describe_schema_change(compared.schema_change),
    }
    return json_answer(document)


def _diff_lines(changes: Iterator[EntityChange]) -> Iterator[bytes]:
    while lines := [
        orjson.dumps(_diff_document(change), option=orjson.OPT_APPEND_NEWLINE) for change in islice(changes, 500)
    ]:
        yield b"".join(lines)


def _diff_document(change: EntityChange) -> dict[str, Any]:
    document: dict[str, Any] = {"kind": change.kind, "type": change.type, "id": change.id, "op": change.op}
    document["changed"] = list(change.changed)
    images = {"before": change.before, "after": change.after}
    document |= {name: to_wire_value(image) for name, image in images.items() if image is not None}
    if change.endpoints:
        document["endpoints"] = {"from": change.endpoints["src"], "to": change.endpoints["dst"]}
    return document
