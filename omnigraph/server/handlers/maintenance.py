"""The status of a graph, and maintenance jobs."""

from omnigraph.api.graph import Graph
from omnigraph.server.call import ServerCall
from omnigraph.server.jobs import JobWork, ReportProgress
from omnigraph.server.locations import hide_locations
from omnigraph.server.models.entities import JobListOutput, StatusOutput
from omnigraph.server.models.requests import CheckRequest, CleanupRequest, OptimizeRequest
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
        report = graph.maintenance.optimize(types=body.types, engine="local")
        datasets = [dataset.to_json() for dataset in report.datasets]
        commits = [commit_output(commit) for commit in report.commits]
        return _hide_storage(call, {"datasets": datasets}) | {"commits": commits}

    return _start_job(call, "optimize", work)


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
    hidden = hide_locations(members, call.graph.secret_names, call.graph.uri)
    assert isinstance(hidden, dict)  # noqa: S101 - reports are objects
    return hidden


def list_jobs(call: ServerCall) -> Answer:
    """List the jobs of a graph, newest first."""
    return json_answer(JobListOutput(jobs=call.state.jobs.list(call.graph.graph_id)))


def get_job(call: ServerCall) -> Answer:
    """Return the state of a job."""
    return json_answer(call.state.jobs.find(call.graph.graph_id, call.path_values["job_id"]))
