"""Maintenance jobs and the ends of their workers: reloads, shutdowns and kills."""

import http.client
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import Shutdown
from omnigraph.server.jobs import JobStore
from tests.rig.http_server import HttpServer, serving, wait_until, workers_of
from tests.rig.stalled_file import StalledReads
from tests.rig.timeouts import PATIENCE
from tests.server.conftest import make_graph

GRAPH = "/graphs/default"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs") / "graph"
    make_graph(folder)
    return folder


@contextmanager
def running_check(template: Path, folder: Path, *arguments: str) -> Iterator[tuple[HttpServer, str, StalledReads]]:
    """A server with a check that waits for a file, and the path of its job."""
    uri, reads = str(shutil.copytree(template, folder / "graph")), StalledReads(folder)
    with (
        serving(folder, uri, "--unauthenticated", *arguments, variables=reads.variables) as server,
        reads.stalled() as file,
    ):
        started = server.post(f"{GRAPH}/maintenance/check")
        assert started.status == 202, started.body
        yield server, started.headers["location"], file


@contextmanager
def watching_the_drain(server: HttpServer) -> Iterator[http.client.HTTPConnection]:
    """An idle connection to the worker, which the worker closes when it drains."""
    with closing(server.connect()) as connection:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        yield connection


def wait_for_drain(connection: http.client.HTTPConnection) -> None:
    assert connection.sock.recv(1) == b"", "the worker closes idle connections when it drains"


def job_at(server: HttpServer, path: str) -> dict[str, Any]:
    reply = server.get(path)
    assert reply.status == 200, reply.body
    job: dict[str, Any] = reply.json()
    return job


def test_job_continues_after_its_command_is_interrupted(template: Path, tmp_path: Path) -> None:
    uri, reads = str(shutil.copytree(template, tmp_path / "graph")), StalledReads(tmp_path)
    program = [sys.executable, "-m", "omnigraph"]
    with (
        serving(tmp_path, uri, "--unauthenticated", variables=reads.variables) as server,
        reads.stalled() as file,
    ):
        url = f"http://{server.address}{GRAPH}"
        command = subprocess.Popen([*program, "check", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: "/jobs/{job_id}" in server.log.read_text())  # the command has requested the state
            job_id = server.get(f"{GRAPH}/jobs").json()["jobs"][0]["job_id"]
            command.send_signal(signal.SIGINT)
            output, errors = command.communicate(timeout=PATIENCE)
        finally:
            command.kill()
        advice = f"the job continues on the server; run `omnigraph job wait {url} {job_id}` to wait for its result"
        assert (command.returncode, output, errors.strip()) == (130, "", f"interrupted; {advice}")
        assert job_at(server, f"{GRAPH}/jobs/{job_id}")["state"] == "running"
        file.release()
        waited = subprocess.run([*program, "job", "wait", url, job_id], capture_output=True, text=True, check=True)
        assert "succeeded" in waited.stdout


def test_a_reload_lets_a_running_job_finish(template: Path, tmp_path: Path) -> None:
    with running_check(template, tmp_path) as (server, path, file):
        (old,) = workers_of(server)
        with watching_the_drain(server) as connection:
            server.signal(signal.SIGHUP)
            wait_for_drain(connection)
        for _ in range(50):  # longer than an idle worker needs to exit
            assert job_at(server, path)["state"] == "running", "the successor knows the job"
        file.release()
        wait_until(lambda: old not in workers_of(server))
        assert job_at(server, path)["state"] == "succeeded"


def test_a_shutdown_lets_a_running_job_finish(template: Path, tmp_path: Path) -> None:
    with running_check(template, tmp_path) as (server, _, file):
        with watching_the_drain(server) as connection:
            server.signal(signal.SIGTERM)
            wait_for_drain(connection)
        file.release()
        server.wait()  # a second signal would stop the worker immediately
    assert "state=succeeded" in server.log.read_text()


def test_a_job_that_outlasts_the_grace_of_a_reload_has_failed(template: Path, tmp_path: Path) -> None:
    with running_check(template, tmp_path, "--shutdown-grace", "0") as (server, path, _):
        (old,) = workers_of(server)
        server.signal(signal.SIGHUP)
        wait_until(lambda: old not in workers_of(server))
        job = job_at(server, path)
        assert (job["state"], job["error"]["kind"]) == ("failed", "Shutdown")
        assert job["error"]["effect"] == "unknown"
        assert "start the job again" in job["error"]["hint"]
        assert job["finished_at"] >= job["started_at"]


def test_a_job_whose_worker_was_killed_has_failed(template: Path, tmp_path: Path) -> None:
    with running_check(template, tmp_path) as (server, path, _):
        (old,) = workers_of(server)
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: bool(workers_of(server) - {old}))
        job = job_at(server, path)
        assert (job["state"], job["error"]["effect"]) == ("failed", "unknown")
        assert "start the job again" in job["error"]["hint"]
        assert job["finished_at"] >= job["started_at"]
        assert [listed["state"] for listed in server.get(f"{GRAPH}/jobs").json()["jobs"]] == ["failed"]


def test_a_worker_that_has_ended_its_jobs_starts_no_others(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    store.close(0.0)
    with pytest.raises(Shutdown):
        store.start("default", "check", None, lambda _: None, ())
    assert store.list("default") == []


def test_an_unknown_job_may_be_a_job_of_another_server(template: Path, tmp_path: Path) -> None:
    with serving(tmp_path, str(template), "--unauthenticated") as server:
        missing = server.get(f"{GRAPH}/jobs/01AAAAAAAAAAAAAAAAAAAAAAAA")
        assert missing.status == 404
        assert "the server that started the job" in missing.json()["hint"]
