"""The request that is passed to a handler.

A `ServerCall` is built in steps: routing, authentication, the graph, the body. Handlers get their graph from
`graph_for_read` or `graph_for_write`. They never see the token.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from omnigraph.api.log_events import PHASE_LISTENER
from omnigraph.errors.caller_warning import WARNING_LISTENER

from .access.permissions import ANONYMOUS, BranchScope, Principal, authorize
from .engine_access import graph_for_request, graph_for_write
from .engine_warnings import EngineWarnings
from .lanes import LaneContext
from .route_model import CONDITION_HEADER, IDEMPOTENCY_HEADER, Action, Route
from .timing import Timing
from .wire.conditions import read_condition, read_idempotency_key
from .wire.media_types import choose_media_type

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from omnigraph.api.graph import Graph

    from .graphs import ServedGraph
    from .worker_state import WorkerState

Model = TypeVar("Model")
COMPATIBILITY_HEADER = "Omnigraph-Api"
_OLD_VERSION = "0.3"


@dataclass(slots=True)
class ServerCall:
    """A request: its route, its caller, its graph, its parameters and its body."""

    state: "WorkerState"
    route: Route
    headers: "Headers"
    request_id: str
    path_values: Mapping[str, str] = field(default_factory=dict)
    query_values: Mapping[str, Any] = field(default_factory=dict)
    is_flat: bool = False
    principal: Principal = ANONYMOUS
    served: "ServedGraph | None" = None
    body: Any = None
    only_reads: bool = False  # set by a handler if this request cannot change the graph, although its operation can
    has_begun: bool = False  # whether the handler has been called
    timing: Timing = field(default_factory=Timing)
    lane_context: LaneContext = field(default_factory=LaneContext)
    warnings: EngineWarnings = field(default_factory=EngineWarnings)

    def __post_init__(self) -> None:
        self.lane_context.context.run(PHASE_LISTENER.set, self.timing.add_engine_phase)
        self.lane_context.context.run(WARNING_LISTENER.set, self.warnings.add)

    @property
    def actor(self) -> str | None:
        """The actor that is recorded as the author of writes."""
        return self.principal.actor

    @property
    def writes(self) -> bool:
        """Whether the request changes the graph. If so, it needs admission and continues after a disconnect."""
        return self.route.is_write and not self.only_reads

    @property
    def graph(self) -> "ServedGraph":
        """The graph named in the path."""
        assert self.served is not None  # noqa: S101 - only routes below a graph use it
        return self.served

    @property
    def uses_old_names(self) -> bool:
        """Whether the response must also contain the member names of version 0.3."""
        return self.is_flat or self.headers.get(COMPATIBILITY_HEADER) == _OLD_VERSION

    @property
    def condition(self) -> str | None:
        """The commit that the branch must be at for a conditional write."""
        return read_condition(self.route, self.headers.getlist(CONDITION_HEADER))

    @property
    def idempotency_key(self) -> str | None:
        """The idempotency key of a write, or None."""
        return read_idempotency_key(self.route, self.headers.getlist(IDEMPOTENCY_HEADER), self.actor)

    @property
    def media_type(self) -> str:
        """The media type of the response."""
        return choose_media_type(self.headers.get("accept"), self.route.answers)

    def body_as(self, model: type[Model]) -> Model:
        """Return the decoded body. The route table defines its model."""
        assert isinstance(self.body, model)  # noqa: S101 - the route decides the model
        return self.body

    def authorize(self, action: Action, branch: str | None = None, target_branch: str | None = None) -> None:
        """Raise `PermissionDenied` unless the caller may take an action."""
        authorize(self.principal, action, BranchScope(branch, target_branch))

    def graph_for_read(self, branch: str | None = None, snapshot: str | None = None) -> "Graph":
        """Return the graph at the newest commit of a branch, or at a revision."""
        return graph_for_request(self.graph.opened, self.actor, branch, snapshot)

    def graph_for_write(self, branch: str | None = None) -> "Graph":
        """Return the graph for a write to a branch."""
        return graph_for_write(self.graph.opened, self.actor, branch)
