"""Process a request: find its route, caller and graph, authorize and admit it, read its body, and run its handler.

The body of a rejected request is not read, so it uses no memory. This module defines the order of these steps, which
determines what an unauthorized caller can learn. Only this module turns exceptions into responses. Handlers perform the
operations.
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from omnigraph.errors import OmnigraphError, Shutdown
from omnigraph.values import clock_and_ids

from .access.admission import SMALL_REQUEST_BYTES
from .access.permissions import NO_BRANCH, authorize
from .access.scopes import branch_scope
from .call import ServerCall
from .cross_origin import CrossOrigin
from .disconnects import DisconnectWatch, wait_for_read
from .engine_warnings import WARNINGS_HEADER
from .lanes import LaneContext
from .large_bodies import BodySpooling
from .request_log import log_failure, log_request
from .responses import (
    BrokenStreamError,
    ResponseStream,
    Send,
    send_answer,
    send_events,
    send_rejection,
    send_stream,
)
from .route_model import REQUEST_ID_HEADER, Route
from .routing import MatchedRoute, Router
from .timing import ENGINE_PHASE
from .wire.answer import Answer, AnyAnswer, EventAnswer, StreamAnswer
from .wire.body import (
    BodyReader,
    ClientGoneError,
    Receive,
    decode_body,
    parse_content_length,
    require_plain_encoding,
)
from .wire.body_memory import BodyAccount
from .wire.errors import encode_error
from .wire.media_types import check_content_type
from .wire.query_values import read_query_values
from .wire.request_headers import RequestHeaders
from .wire.shared_timer import TaskLimit
from .worker_state import WorkerState

if TYPE_CHECKING:
    from .tracing import RequestTracer

_REQUEST_ID_PATTERN = re.compile(r"[\w-]{1,64}", re.ASCII)
_CLIENT_GONE_STATUS = 499
_LIMITED_RESOURCES = {"load": "graph_batch_request_bytes", "query": "query_request_bytes"}
Handler = Callable[[ServerCall], AnyAnswer]


class ServerApp:
    """The ASGI application of a worker."""

    def __init__(self, state: WorkerState, routes: Sequence[Route]) -> None:
        self._state = state
        self._router = Router(routes, state.settings.flat_graph_id)
        self._handlers = {route: _load_handler(route.handler) for route in routes}
        self._coroutines = {
            route: handler for route, handler in self._handlers.items() if inspect.iscoroutinefunction(handler)
        }
        self._prechecks = {route: _load_handler(route.precheck) for route in routes if route.precheck is not None}
        self._decoders = {
            route: msgspec.json.Decoder(route.body | None if route.body_optional else route.body)
            for route in routes
            if route.is_json_body
        }
        self._cross_origin = CrossOrigin(state.settings.cors_origins)
        self.spooling = BodySpooling(state.settings.runtime_directory, state.settings.limits.write_seconds)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            await _Exchange(self, scope, receive, send).serve()

    def match(self, method: str, scope: Any) -> MatchedRoute:
        """Return the route of a request."""
        return self._router.match(method, scope["raw_path"])

    async def _prepare_call(self, call: ServerCall, asgi_scope: Any) -> None:
        """Authenticate the caller, find the graph and authorize the action, in this order, without reading the body."""
        route, state = call.route, self._state
        if not route.is_public:
            with call.timing.measure("auth"):
                call.principal = await state.authenticator.authenticate(call.headers.get("authorization"))
        if route.is_graph_route:
            call.served = state.graphs.find(call.path_values["graph_id"])
        call.query_values = read_query_values(route, asgi_scope["query_string"], ignores_unknown=call.is_flat)
        if route in self._prechecks:
            self._prechecks[route](call)
        if route.action is not None:
            is_branch_known = route.is_graph_route and not route.is_json_body
            authorize(call.principal, route.action, branch_scope(call) if is_branch_known else NO_BRANCH)
        _ = call.condition, call.idempotency_key, call.media_type  # reject malformed headers before the handler runs

    async def _read_body(self, call: ServerCall, receive: Receive, account: BodyAccount) -> None:
        """Read the body, and authorize the action for the branch that the body names."""
        route, headers, limits = call.route, call.headers, self._state.settings.limits
        if route.body is None:
            return
        require_plain_encoding(headers.get("content-encoding"))
        content_length = parse_content_length(headers.get("content-length"))
        is_empty = content_length in (None, 0) and "transfer-encoding" not in headers
        check_content_type(headers.get("content-type"), route.body_media_types, is_empty=is_empty)
        limit = self._body_limit(route)
        resource = _LIMITED_RESOURCES.get(route.body_limit, "request_bytes")
        message_time = TaskLimit(self._state.timer, limits.body_seconds) if limits.body_seconds else nullcontext()
        reader = BodyReader(receive, content_length, limit, resource, message_time)
        if route.is_raw_body:
            call.body = await reader.read_file()
            return
        data = b"" if is_empty else await reader.read_bytes(account)
        if not (route.body_optional and (not data or data.isspace())):
            call.body = await decode_body(data, self._decoders[route])
        if route.action is not None and route.is_graph_route:
            authorize(call.principal, route.action, branch_scope(call))

    async def answer(self, call: ServerCall, scope: Any, receive: Receive) -> AnyAnswer:
        """Return the response to a request."""
        await self._prepare_call(call, scope)
        admission, memory = self._state.admission, self._state.body_memory
        admitted = admission.admit_write(call.actor, self._expected_size(call)) if call.writes else nullcontext()
        with admitted, memory.open_account() as account:
            await self._read_body(call, receive, account)
            return await self._run_call(call, receive)

    def _expected_size(self, call: ServerCall) -> int:
        """Return the body size that the request declares, or the route's limit if it declares none."""
        if not _has_body(call.headers):
            return SMALL_REQUEST_BYTES
        announced = parse_content_length(call.headers.get("content-length"))
        return self._body_limit(call.route) if announced is None else announced

    def _body_limit(self, route: Route) -> int:
        limit: int = getattr(self._state.settings.limits, f"{route.body_limit}_bytes", 0)
        return limit

    async def _run_call(self, call: ServerCall, receive: Receive) -> AnyAnswer:
        route = call.route
        call.has_begun = True
        if route in self._coroutines:
            answer: AnyAnswer = await self._coroutines[route](call)
            return answer
        lane = self._state.lanes.heavy if route.lane == "heavy" else self._state.lanes.read
        work = partial(_run_handler, self._handlers[route], call, clock_and_ids.monotonic())
        if call.writes:
            return await lane.run(work, call.lane_context)
        future = lane.start(work, call.lane_context)
        return await wait_for_read(future, DisconnectWatch(receive, call.lane_context, self._state.timer))


class _Exchange:
    """One request and its response."""

    def __init__(self, app: ServerApp, scope: Any, receive: Receive, send: Send) -> None:
        self._app, self._state = app, app._state
        self._scope, self._receive_message, self._send = scope, receive, send
        self._is_body_complete = False
        self._headers = RequestHeaders(scope)
        self._request_id = _read_request_id(self._headers)
        self._call: ServerCall | None = None
        self._status = _CLIENT_GONE_STATUS

    async def serve(self) -> None:
        """Serve the request. An exception that this method raises closes the connection."""
        started = clock_and_ids.monotonic()
        try:
            await self._send_response()
        except ClientGoneError:
            self._status = _CLIENT_GONE_STATUS
        except BrokenStreamError as error:
            log_failure(self._call, error.__cause__ or error, self._request_id)
            raise
        finally:
            self._record_request(started, clock_and_ids.monotonic())

    async def _receive(self) -> Any:
        """Receive a message, and note the end of the request body."""
        message = await self._receive_message()
        self._is_body_complete |= message["type"] == "http.request" and not message.get("more_body", False)
        return message

    async def _send_response(self) -> None:
        preflight = self._app._cross_origin.preflight(self._scope["method"], self._headers)
        if preflight is not None:
            await self._send_answer(preflight)
            return
        try:
            matched = self._app.match(self._scope["method"], self._scope)
            call = self._call = ServerCall(
                self._state,
                matched.route,
                self._headers,
                self._request_id,
                matched.path_values,
                is_flat=matched.is_flat,
            )
            await self._send_answer(await self._app.answer(call, self._scope, self._receive))
        except (ClientGoneError, BrokenStreamError):
            raise
        except asyncio.CancelledError:
            if self._is_rejected_by_shutdown():
                await self._send_error(Shutdown())
            raise
        except Exception as error:
            await self._send_error(error)
            _release_frames(error)

    def _is_rejected_by_shutdown(self) -> bool:
        """Return whether the request is rejected because the worker is stopping.

        Clients repeat a rejected request, so a request is rejected only if it has not taken effect and its response has
        not started. If a write has begun, its outcome is unknown, so its connection is closed instead.
        """
        call, has_response = self._call, self._status != _CLIENT_GONE_STATUS
        has_effect = call is not None and call.writes and call.has_begun
        return self._state.is_draining and not has_response and not has_effect

    async def _send_answer(self, answer: AnyAnswer) -> None:
        headers = self._response_headers()
        self._status = 200 if isinstance(answer, EventAnswer) else answer.status
        headers["Cache-Control"] = "private, no-cache" if "ETag" in answer.headers else "no-store"
        if isinstance(answer, Answer):
            await send_answer(answer, self._send, headers, self._app.spooling)
            return
        stream = ResponseStream(self._receive, self._send, self._state.settings.limits.write_seconds)
        if isinstance(answer, StreamAnswer):
            lane_context = self._call.lane_context if self._call is not None else LaneContext()
            await send_stream(answer, self._state.lanes.heavy, lane_context, stream, headers)
        else:
            await send_events(answer, stream, headers)

    async def _send_error(self, error: Exception) -> None:
        call = self._call
        if not isinstance(error, OmnigraphError) or error.http_code == "internal":
            log_failure(call, error, self._request_id)
        roots = call.served.secret_names if call is not None and call.served is not None else ()
        uses_old_names = call is not None and call.uses_old_names
        wire_error = encode_error(error, self._request_id, roots=roots, with_old_names=uses_old_names)
        self._status = wire_error.status
        headers = {**self._response_headers(), **wire_error.headers}
        answer = Answer(wire_error.body, status=wire_error.status)
        if self._is_body_complete or not _has_body(self._headers):
            await send_answer(answer, self._send, headers, self._app.spooling)
        else:
            await send_rejection(answer, self._send, self._receive, headers)

    def _response_headers(self) -> dict[str, str]:
        headers = {REQUEST_ID_HEADER: self._request_id, "X-Content-Type-Options": "nosniff"}
        call = self._call
        if call is not None:
            if call.timing.intervals:
                headers["Server-Timing"] = call.timing.to_header()
            if call.warnings.collected and call.served is not None:
                shown_location = f"/graphs/{call.served.graph_id}"
                headers[WARNINGS_HEADER] = call.warnings.to_header(call.served.secret_names, shown_location)
            if call.route.deprecated:
                headers |= {"Deprecation": "true", "Link": f'<{call.route.successor}>; rel="successor-version"'}
        if self._state.is_draining:
            headers["Connection"] = "close"
        return headers | self._app._cross_origin.response_headers(self._headers)

    def _record_request(self, started: float, ended: float) -> None:
        seconds = ended - started
        route = self._call.route.path if self._call is not None else "unknown"
        method = self._scope["method"] if self._call is not None else "unknown"
        self._state.metrics.observe(route, method, self._status, seconds)
        trace_id = None if self._state.tracer is None else self._record_spans(self._state.tracer, started, ended)
        log_request(self._call, method, self._status, seconds, self._request_id, trace_id=trace_id)

    def _record_spans(self, tracer: "RequestTracer", started: float, ended: float) -> str:
        from .tracing import RequestFacts

        call = self._call
        route, intervals = (None, ()) if call is None else (call.route.path, call.timing.intervals)
        facts = RequestFacts(self._scope["method"], route, self._status, self._request_id, started, ended)
        return tracer.record_request(facts, self._headers, intervals)


def _run_handler(handler: Handler, call: ServerCall, submitted: float) -> AnyAnswer:
    """Run a handler in a thread, and measure how long it waited for the thread."""
    call.timing.add("queue", submitted, clock_and_ids.monotonic())
    with call.timing.measure(ENGINE_PHASE):
        return handler(call)


def _release_frames(error: BaseException | None) -> None:
    """Drop the tracebacks of a handled error.

    Their frames refer to the future of the call, which refers to the error. Until the next full garbage collection,
    this cycle would keep the tables of a failed or stopped query in memory.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _load_handler(name: str) -> Handler:
    module_name, _, function_name = name.partition(":")
    handler: Handler = getattr(import_module(f"omnigraph.server.handlers.{module_name}"), function_name)
    return handler


def _read_request_id(headers: Mapping[str, str]) -> str:
    given_id = headers.get(REQUEST_ID_HEADER.lower(), "")
    return given_id if _REQUEST_ID_PATTERN.fullmatch(given_id) else clock_and_ids.new_nonce()


def _has_body(headers: Mapping[str, str]) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
