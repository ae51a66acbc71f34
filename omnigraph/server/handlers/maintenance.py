"""The status of a graph, and maintenance jobs."""

from omnigraph.api.graph import Graph
from omnigraph.server.call import ServerCall
from omnigraph.server.jobs import JobWork, ReportProgress
from omnigraph.server.locations import hide_locations
from omnigraph.server.models.entities import JobListOutput, PendingIndexesOutput, PendingIndexOutput, StatusOutput
from omnigraph.server.models.requests import (
    AbsenceRequest,
    CheckRequest,
    CleanupRequest,
    IndexRequest,
    OptimizeRequest,
    RepairRequest,
)
from omnigraph.server.wire.answer import Answer, json_answer

from .documents import commit_output

_ACCEPTED = 202


def status(call: ServerCall) -> Answer:
    """Return the size and condition of a graph."""
    graph = call.graph_for_read(call.query_values.get("branch")).refresh()
    members = graph.maintenance.status().to_json()
    members.pop("cache_directory", None)
    return json_answer(StatusOutput(status=_hide_storage(call, members)))


def check(call: ServerCall) -> Answer:
    """Verify the integrity of a graph, as a job."""
    body = call.body or CheckRequest()
    graph = call.graph_for_read()

    def work(report: ReportProgress) -> object:
        checkup = graph.maintenance.check(quick=body.quick, sample=body.sample, engine="local", progress=report)
        return _hide_storage(call, checkup.to_json())

    return _start_job(call, "check", work)


def optimize(call: ServerCall) -> Answer:
    """Compact and index the tables of a branch, as a job."""
    body = call.body or OptimizeRequest()
    graph = call.graph_for_write(body.branch)

    def work(_: ReportProgress) -> object:
        report = graph.maintenance.optimize(
            types=body.types, engine="local", max_seconds=body.max_seconds, max_bytes=body.max_bytes
        )
        datasets = [
            {**dataset.to_json(), "version_before": dataset.version_before, "version_after": dataset.version_after}
            for dataset in report.datasets
        ]
        commits = [commit_output(commit) for commit in report.commits]
        facts = {"engine": report.engine, "retries": report.retries}
        return _hide_storage(call, {"datasets": datasets}) | {"commits": commits, **facts}

    return _start_job(call, "optimize", work)


def ensure_indices(call: ServerCall) -> Answer:
    """Build the declared indexes of a branch, as a job."""
    body = call.body or IndexRequest()
    graph = call.graph_for_write(body.branch)

    def work(_: ReportProgress) -> object:
        receipt = graph.maintenance.ensure_indices(rebuild=body.rebuild, engine="local")
        return {
            "commit": None if receipt.commit is None else commit_output(receipt.commit),
            "indexes": {key: list(columns) for key, columns in receipt.indexes.items()},
        }

    return _start_job(call, "ensure-indices", work)


def pending_indices(call: ServerCall) -> Answer:
    """List the declared indexes that do not cover all rows."""
    graph = call.graph_for_read(call.query_values.get("branch"), call.query_values.get("snapshot")).refresh()
    pending = [
        PendingIndexOutput(type_key=key, property=name, reason=reason)
        for key, name, reason in graph.maintenance.pending_indices()
    ]
    return json_answer(PendingIndexesOutput(pending_indexes=pending))


def check_absent(call: ServerCall) -> Answer:
    """Search every file for traces of an entity, as a job."""
    body = call.body_as(AbsenceRequest)
    graph = call.graph_for_read()

    def work(_: ReportProgress) -> object:
        return _hide_storage(call, graph.maintenance.check_absent(body.type_, body.id).to_json())

    return _start_job(call, "check-absent", work)


def repair(call: ServerCall) -> Answer:
    """Report damage and external changes, or repair them if `confirm` is set, as a job."""
    body = call.body or RepairRequest()
    graph = call.graph_for_write(body.branch)
    options = {name: getattr(body, name) for name in body.__struct_fields__ if name != "branch"}
    return _start_job(call, "repair", lambda _: _hide_storage(call, graph.maintenance.repair(**options).to_json()))


def cleanup(call: ServerCall) -> Answer:
    """Remove unneeded history, as a job. Without `confirm`, only report what would be removed."""
    body = call.body_as(CleanupRequest)
    graph = call.graph_for_write()
    return _start_job(call, "cleanup", lambda report: _hide_storage(call, _run_cleanup(graph, body, report)))


def _run_cleanup(graph: Graph, body: CleanupRequest, report: ReportProgress) -> object:
    outcome = graph.maintenance.cleanup(
        keep=body.keep,
        older_than=body.older_than,
        grace=body.grace,
        confirm=body.confirm,
        erase=body.erase,
        purge_dropped=body.purge_dropped,
        engine="local",
        progress=lambda *facts: report(" ".join(map(str, facts))),
    )
    return outcome.to_json()


def _start_job(call: ServerCall, kind: str, work: JobWork) -> Answer:
    served = call.graph
    job = call.state.jobs.start(served.graph_id, kind, call.actor, work, served.secret_names)
    location = f"/graphs/{served.graph_id}/jobs/{job.job_id}"
    return json_answer(job, status=_ACCEPTED, headers={"Location": location})


def _hide_storage(call: ServerCall, members: object) -> dict[str, object]:
    hidden = hide_locations(members, call.graph.secret_names, f"/graphs/{call.graph.graph_id}")
    assert isinstance(hidden, dict)  # noqa: S101 - reports are objects
    return hidden


def list_jobs(call: ServerCall) -> Answer:
    """List the jobs of a graph, newest first."""
    return json_answer(JobListOutput(jobs=call.state.jobs.list(call.graph.graph_id)))


def get_job(call: ServerCall) -> Answer:
    """Return the state of a job."""
    return json_answer(call.state.jobs.find(call.graph.graph_id, call.path_values["job_id"]))
