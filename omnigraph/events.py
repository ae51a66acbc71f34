"""One log event per operation, and per table of a maintenance run, on the logger `omnigraph`.

Owns the content of an event: an id, the branch, rows, requests, milliseconds by phase, retries and
the outcome. Events never hold values, parameters, query texts or secrets.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from omnigraph import ids

LOGGER = logging.getLogger("omnigraph")
LOGGER.addHandler(logging.NullHandler())


@dataclass(slots=True)
class Event:
    """A running operation."""

    operation: str
    branch: str
    began: float = field(default_factory=perf_counter)
    rows: int | None = None
    requests: int | None = None
    retries: int = 0
    phases: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    _phase: str = ""
    _since: float = 0.0
    _id: str = ""

    @property
    def id(self) -> str:
        """The id shared by all events of one operation; generated on first use."""
        self._id = self._id or ids.new_ulid()
        return self._id

    def rows_told(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Log one event for every table that the operation examined."""
        if not LOGGER.isEnabledFor(logging.INFO):
            return
        for row in rows:
            told = {"id": self.id, "operation": name, "verb": self.operation, "branch": self.branch}
            told |= {key: value for key, value in row.items() if value is not None}
            LOGGER.info("%s", _line(told), extra={"event": told})

    def phase(self, name: str) -> None:
        """Start a phase; the previous phase ends here."""
        now = perf_counter()
        if self._phase:
            spent = (now - self._since) * 1000
            self.phases[self._phase] = self.phases.get(self._phase, 0.0) + spent
        self._phase, self._since = name, now

    def seconds(self) -> float:
        """Return the seconds since the operation began."""
        return perf_counter() - self.began

    def to_json(self, outcome: str) -> dict[str, Any]:
        """Return the event as plain data; absent facts are omitted."""
        told = {
            "id": self.id,
            "operation": self.operation,
            "branch": self.branch,
            "rows": self.rows,
            "requests": self.requests,
            "milliseconds": round(self.seconds() * 1000, 3),
            "phases": {name: round(spent, 3) for name, spent in self.phases.items()},
            "retries": self.retries,
            "outcome": outcome,
            **self.facts,
        }
        return {name: value for name, value in told.items() if value is not None}


@contextmanager
def operation(name: str, branch: str) -> Iterator[Event]:
    """Measure one operation and log it once, however it ends.

    A failure caused by the caller is logged at level INFO, any other as a warning.
    """
    event = Event(name, branch)
    try:
        yield event
    except BaseException as error:
        event.phase("")
        _failed(event, error)
        raise
    event.phase("")
    if LOGGER.isEnabledFor(logging.INFO):
        _tell(logging.INFO, event, "ok")


def _failed(event: Event, error: BaseException) -> None:
    from omnigraph.errors import ClientError

    level = logging.INFO if isinstance(error, ClientError) else logging.WARNING
    if LOGGER.isEnabledFor(level):
        _tell(level, event, getattr(error, "code", type(error).__name__))


def _tell(level: int, event: Event, outcome: str) -> None:
    told = event.to_json(outcome)
    LOGGER.log(level, "%s", _line(told), extra={"event": told})


def _line(told: dict[str, Any]) -> str:
    phases = " ".join(f"{name}={spent}" for name, spent in told.get("phases", {}).items())
    facts = " ".join(
        f"{name}={value}" for name, value in told.items() if name not in ("phases", "operation")
    )
    return f"{told['operation']} {facts}{f' ({phases})' if phases else ''}"


class JsonLines(logging.Formatter):
    """Formats each record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the event, or the message of a record without one, with level and time."""
        event = getattr(record, "event", None) or {"message": record.getMessage()}
        told = {"level": record.levelname.lower(), "time": _time(record), **event}
        return json.dumps(told, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds")
