"""`graph.maintenance.operations` on a server: operations that are running or were interrupted."""

from omnigraph.history.recovery_records import RecoveryRecord
from omnigraph.publish.intent import PendingIntent, SetAsideIntent
from omnigraph.values.name_rules import require_text

from . import reports
from .answers import Document
from .facet import RemoteFacet


class RemoteOperations(RemoteFacet):
    """Long-running operations on a served graph: those in progress, and those whose process crashed."""

    __slots__ = ()

    def recoveries(self) -> list[RecoveryRecord]:
        """Return the outcomes of operations whose process crashed, oldest first."""
        return list(map(reports.read_recovery, self._list()["recoveries"]))

    def pending(self) -> list[PendingIntent]:
        """Return the running operations, and operations from crashed processes that the next write will recover."""
        return list(map(reports.read_pending, self._list()["pending"]))

    def set_aside(self) -> list[SetAsideIntent]:
        """Return the operations that recovery could not resolve, oldest first, each with its error."""
        return list(map(reports.read_set_aside, self._list()["set_aside"]))

    def retry(self, operation_id: str) -> RecoveryRecord | None:
        """Resolve an operation that was set aside; see `Graph.maintenance.operations.retry`."""
        self._handle.require_writable("retrying an operation")
        outcome = self._send("retry", operation_id)
        return None if outcome is None else reports.read_recovery(outcome)

    def drop(self, operation_id: str) -> RecoveryRecord:
        """Delete an operation that was set aside; see `Graph.maintenance.operations.drop`."""
        self._handle.require_writable("dropping an operation")
        return reports.read_recovery(self._send("drop", operation_id) or {})

    def _list(self) -> Document:
        self._handle.require_open()
        document: Document = self._handle.exchange.get("operations")
        return reports.name_graph(document, self._handle.uri)  # type: ignore[no-any-return]

    def _send(self, verb: str, operation_id: str) -> Document | None:
        path = ("operations", require_text(operation_id, "operation id"), verb)
        outcome: Document | None = self._handle.exchange.call("POST", path, {})["outcome"]
        return outcome
