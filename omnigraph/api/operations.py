"""`graph.maintenance.operations`: long operations that are still running or that were interrupted by a crash."""

from typing import TYPE_CHECKING

from omnigraph.api.facet import Facet
from omnigraph.api.log_events import log_operation
from omnigraph.history.recovery_records import RecoveryRecord, list_recovery_records

if TYPE_CHECKING:
    from omnigraph.publish.intent import PendingIntent, SetAsideIntent


class Operations(Facet):
    """Long operations that are still running or that were interrupted by a crash."""

    __slots__ = ()

    def recoveries(self) -> list[RecoveryRecord]:
        """Return the outcomes of operations that were interrupted by a crash, oldest first."""
        self._handle.require_open()
        return list_recovery_records(self._handle.store)

    def pending(self) -> "list[PendingIntent]":
        """Return the operations that are still running, and the interrupted ones that the next write will recover."""
        from omnigraph.publish.intent import list_intents

        self._handle.require_open()
        return list(list_intents(self._handle.store).pending)

    def set_aside(self) -> "list[SetAsideIntent]":
        """Return the operations that recovery could not resolve, oldest first, each with its error.

        These operations do not block readers or writers. The data that they need is kept until they are dropped.
        """
        from omnigraph.publish.set_aside import list_set_aside_operations

        self._handle.require_open()
        return list_set_aside_operations(self._handle.store)

    def retry(self, operation_id: str) -> RecoveryRecord | None:
        """Resolve an operation that was set aside. Call this method after fixing the cause of the failure.

        Returns the outcome, or None if the operation has already been resolved. If recovery fails again, the error
        is raised and the operation remains set aside.
        """
        from omnigraph.publish.set_aside import retry_operation

        handle = self._handle
        handle.require_writable("retrying an operation")
        with log_operation("recovery_retry", handle.branch_name) as event:
            event.facts["operation_id"] = operation_id
            outcome = retry_operation(handle.store, operation_id)
        handle.refresh()
        return outcome

    def drop(self, operation_id: str) -> RecoveryRecord:
        """Delete an operation that was set aside. A cleanup may then remove the files that the operation staged.

        The deletion is recorded, and `recoveries` lists it.
        """
        from omnigraph.publish.set_aside import drop_operation

        handle = self._handle
        handle.require_writable("dropping an operation")
        with log_operation("recovery_drop", handle.branch_name) as event:
            event.facts["operation_id"] = operation_id
            return drop_operation(handle.store, operation_id, handle.actor)
