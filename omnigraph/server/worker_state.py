"""State shared by all of a worker's requests: settings, graphs, lanes, authentication and admission."""

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .access.admission import Admission
from .access.authentication import Authenticator
from .branch_watch import BranchWatches
from .graphs import GraphRegistry
from .jobs import JobStore
from .lanes import Lanes
from .settings import ServerSettings
from .wire.body_memory import BodyMemory
from .wire.shared_timer import SharedTimer

if TYPE_CHECKING:
    from .metrics import ServerMetrics
    from .tracing import RequestTracer


@dataclass(slots=True)
class WorkerState:
    """The shared state of one worker process."""

    settings: ServerSettings
    graphs: GraphRegistry
    lanes: Lanes
    authenticator: Authenticator
    admission: Admission
    metrics: "ServerMetrics"
    jobs: JobStore
    tracer: "RequestTracer | None" = None
    is_draining: bool = False
    stopping: threading.Event = field(default_factory=threading.Event)
    watches: BranchWatches = field(init=False)
    body_memory: BodyMemory = field(init=False)
    timer: SharedTimer = field(default_factory=SharedTimer)

    def __post_init__(self) -> None:
        self.watches = BranchWatches(self.stopping)
        self.body_memory = BodyMemory(self.settings.limits.body_memory_bytes)
