"""Operations that are running or were interrupted, and holds on commits.

A server recovers interrupted operations when it opens a graph. Those that it cannot resolve are set aside, and wait for
a decision by an administrator.
"""

from typing import Any

from omnigraph.api.holds import begin_hold, end_hold, renew_hold
from omnigraph.history.recovery_records import RecoveryRecord
from omnigraph.publish.intent import PendingIntent, SetAsideIntent
from omnigraph.server.call import ServerCall
from omnigraph.server.locations import hide_locations
from omnigraph.server.models.entities import EndedHoldOutput, HoldOutput, OperationOutcomeOutput, OperationsOutput
from omnigraph.server.models.requests import HoldRequest
from omnigraph.server.wire.answer import Answer, json_answer


def list_operations(call: ServerCall) -> Answer:
    """List the recovered operations, the pending ones, and those that were set aside."""
    operations = call.graph_for_read().maintenance.operations
    document = OperationsOutput(
        recoveries=_hide_storage(call, [record.to_json() for record in operations.recoveries()]),
        pending=_hide_storage(call, [_describe_pending(operation) for operation in operations.pending()]),
        set_aside=_hide_storage(call, [_describe_set_aside(operation) for operation in operations.set_aside()]),
    )
    return json_answer(document)


def retry_operation(call: ServerCall) -> Answer:
    """Retry the recovery of an operation that was set aside."""
    outcome = call.graph_for_write().maintenance.operations.retry(call.path_values["operation_id"])
    return _answer_outcome(call, outcome)


def drop_operation(call: ServerCall) -> Answer:
    """Drop an operation that was set aside."""
    outcome = call.graph_for_write().maintenance.operations.drop(call.path_values["operation_id"])
    return _answer_outcome(call, outcome)


def begin(call: ServerCall) -> Answer:
    """Protect a commit from cleanup."""
    body = call.body or HoldRequest()
    hold = begin_hold(call.graph_for_read(body.branch, body.snapshot).refresh())
    return json_answer(HoldOutput(hold_id=hold.id, graph_commit_id=hold.commit_id, seconds=hold.seconds))


def renew(call: ServerCall) -> Answer:
    """Extend a hold."""
    renew_hold(call.graph_for_write(), call.path_values["hold_id"])
    return json_answer(EndedHoldOutput(hold_id=call.path_values["hold_id"]))


def end(call: ServerCall) -> Answer:
    """End a hold."""
    end_hold(call.graph_for_write(), call.path_values["hold_id"])
    return json_answer(EndedHoldOutput(hold_id=call.path_values["hold_id"]))


def _describe_pending(operation: PendingIntent) -> dict[str, Any]:
    intent = operation.intent
    return {
        "operation_id": operation.id,
        "operation": intent.operation,
        "graph_branch": intent.branch,
        "for_actor": intent.actor,
        "graph_commit_id": intent.commit_id,
        "base_commit_id": intent.base_commit,
        "message": intent.message,
        "created_at": intent.created_at,
        "confirmed": operation.confirmed,
        "alive_at": operation.alive_at.isoformat(),
        "armed_at": operation.armed_at.isoformat(),
    }


def _describe_set_aside(operation: SetAsideIntent) -> dict[str, Any]:
    listed = operation.listed_intent
    members = _describe_pending(listed) if isinstance(listed, PendingIntent) else {}
    times = {"alive_at": listed.alive_at.isoformat(), "armed_at": listed.armed_at.isoformat()}
    return {**members, **times, **operation.to_json()}


def _answer_outcome(call: ServerCall, outcome: RecoveryRecord | None) -> Answer:
    document = None if outcome is None else _hide_storage(call, outcome.to_json())
    return json_answer(OperationOutcomeOutput(outcome=document))


def _hide_storage(call: ServerCall, members: Any) -> Any:
    return hide_locations(members, call.graph.secret_names, f"/graphs/{call.graph.graph_id}")
