"""Log events to the `omnigraph` logger: one per operation, and one per table in a maintenance run.

An event contains an id, the branch, row and request counts, milliseconds per phase, the number of retries, and the
outcome. It never contains values, parameters, query text or secrets.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from omnigraph.values import clock_and_ids

LOGGER = logging.getLogger("omnigraph")
LOGGER.addHandler(logging.NullHandler())
# Called whenever a phase ends in the current context, with the phase's name and duration in seconds.
PHASE_LISTENER: ContextVar[Callable[[str, float], None] | None] = ContextVar("omnigraph_phases", default=None)


@dataclass(slots=True)
class OperationEvent:
    """A running operation."""

    operation: str
    branch: str
    started_at: float = field(default_factory=perf_counter)
    rows: int | None = None
    requests: int | None = None
    retries: int = 0
    phases: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    _current_phase: str = ""
    _phase_started_at: float = 0.0
    _event_id: str = ""

    @property
    def id(self) -> str:
        """The id shared by all events in one operation, generated on first use."""
        self._event_id = self._event_id or clock_and_ids.new_ulid()
        return self._event_id

    def log_tables(self, event_name: str, table_rows: Iterable[Mapping[str, Any]]) -> None:
        """Log one event for every table that the operation examined."""
        if not LOGGER.isEnabledFor(logging.INFO):
            return
        for table_row in table_rows:
            event_data = {"id": self.id, "operation": event_name, "verb": self.operation, "branch": self.branch}
            event_data |= {
                field_name: field_value for field_name, field_value in table_row.items() if field_value is not None
            }
            LOGGER.info("%s", _format_event(event_data), extra={"event": event_data})

    def start_phase(self, phase_name: str) -> None:
        """Start a phase and end the previous one."""
        current_time = perf_counter()
        if self._current_phase:
            elapsed = current_time - self._phase_started_at
            self.phases[self._current_phase] = self.phases.get(self._current_phase, 0.0) + elapsed * 1000
            listener = PHASE_LISTENER.get()
            if listener is not None:
                listener(self._current_phase, elapsed)
        self._current_phase, self._phase_started_at = phase_name, current_time

    def __enter__(self) -> "OperationEvent":
        return self

    def __exit__(self, error_type: object, error: BaseException | None, traceback: object) -> None:
        self.start_phase("")
        if error is not None:
            _log_failure(self, error)
        elif LOGGER.isEnabledFor(logging.INFO):
            _log_event(logging.INFO, self, "ok")

    def elapsed_seconds(self) -> float:
        """Return the number of seconds since the operation began."""
        return perf_counter() - self.started_at

    def to_json(self, outcome: str) -> dict[str, Any]:
        """Return the event as plain data, omitting unknown values."""
        event_data = {
            "id": self.id,
            "operation": self.operation,
            "branch": self.branch,
            "rows": self.rows,
            "requests": self.requests,
            "milliseconds": round(self.elapsed_seconds() * 1000, 3),
            "phases": {field_name: round(elapsed_ms, 3) for field_name, elapsed_ms in self.phases.items()},
            "retries": self.retries,
            "outcome": outcome,
            **self.facts,
        }
        return {field_name: field_value for field_name, field_value in event_data.items() if field_value is not None}


def log_operation(operation_name: str, branch: str) -> OperationEvent:
    """Return a context manager that measures an operation and logs one event, whether the operation succeeds or fails.

    A failure caused by the caller is logged at level INFO, and any other failure at level WARNING.
    """
    return OperationEvent(operation_name, branch)


def _log_failure(event: OperationEvent, error: BaseException) -> None:
    from omnigraph.errors import ClientError

    log_level = logging.INFO if isinstance(error, ClientError) else logging.WARNING
    if LOGGER.isEnabledFor(log_level):
        _log_event(log_level, event, getattr(error, "code", type(error).__name__))


def _log_event(log_level: int, event: OperationEvent, outcome: str) -> None:
    event_data = event.to_json(outcome)
    LOGGER.log(log_level, "%s", _format_event(event_data), extra={"event": event_data})


def _format_event(event_data: dict[str, Any]) -> str:
    phase_text = " ".join(
        f"{field_name}={elapsed_ms}" for field_name, elapsed_ms in event_data.get("phases", {}).items()
    )
    fact_text = " ".join(
        f"{field_name}={field_value}"
        for field_name, field_value in event_data.items()
        if field_name not in ("phases", "operation")
    )
    return f"{event_data['operation']} {fact_text}{f' ({phase_text})' if phase_text else ''}"


class JsonLinesFormatter(logging.Formatter):
    """A log formatter that writes each record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a log record's level and time, together with its event or, if it has none, its message."""
        event_data = getattr(record, "event", None) or {"message": record.getMessage()}
        log_entry = {"level": record.levelname.lower(), "time": _format_time(record), **event_data}
        return json.dumps(log_entry, ensure_ascii=False)


def _format_time(record: logging.LogRecord) -> str:
    from datetime import UTC, datetime

    created_at = datetime.fromtimestamp(record.created, UTC)
    return created_at.isoformat(timespec="milliseconds")
