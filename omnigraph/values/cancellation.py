"""The signal to stop an operation whose caller is no longer waiting for the outcome.

A program that runs calls in worker threads sets `STOP_EVENT` in the context of each call. Queries check the event
between chunks, and writes check it before each attempt. Publishing is never interrupted: once a write begins to
publish, the operation waits for the outcome.
"""

import threading
from contextvars import ContextVar

# Setting this event stops the reads and writes in the current context, for example when a coroutine is cancelled.
STOP_EVENT: ContextVar[threading.Event | None] = ContextVar("omnigraph_stop", default=None)
