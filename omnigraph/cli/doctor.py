"""`omnigraph doctor`: check whether this machine and a store can run Omnigraph."""

from functools import partial
from typing import TYPE_CHECKING

import click

from . import exits, show
from .address import GraphAddress, graph_arguments, has_address, resolve_target
from .options import settings, shared_options
from .server_target import ServerTarget

if TYPE_CHECKING:
    from omnigraph.maintenance.doctor import EnvironmentDiagnosis
    from omnigraph.storage.root import GraphRoot

_OUTCOME_LABELS = {"ok": "ok     ", "warning": "warning", "error": "error  "}


@click.command()
@click.option("--no-probe", is_flag=True, help="Skip the tests that write to the store")
@graph_arguments()
@shared_options
def doctor(address: GraphAddress, no_probe: bool) -> None:
    """Diagnose this machine (versions, Java and caches) and, if given, a store or a server.

    For a store, the command creates a small temporary object to verify that the store refuses to
    overwrite existing objects, and compares the store's clock with the local clock. For a server, it
    compares versions and clocks, and checks the token. Exits with code 1 if a check fails.
    """
    root = resolve_target(address) if has_address(address) else None
    diagnoses = [*_diagnose_target(root, probe=not no_probe), _diagnose_config()]
    if settings().json:
        show.document({"ok": _is_healthy(diagnoses), "diagnoses": [diagnosis.to_json() for diagnosis in diagnoses]})
    else:
        for diagnosis in diagnoses:
            show.result(f"{_OUTCOME_LABELS[diagnosis.outcome]}  {diagnosis.name}: {diagnosis.found}")
            if diagnosis.hint is not None and diagnosis.outcome != "ok":
                show.result(f"         {diagnosis.hint}")
    if not _is_healthy(diagnoses):
        raise click.exceptions.Exit(exits.FAILED)


def _diagnose_target(root: "GraphRoot | ServerTarget | None", *, probe: bool) -> "list[EnvironmentDiagnosis]":
    """Diagnose this machine, and the store or the server of a graph."""
    from omnigraph.maintenance import doctor as diagnosis

    if isinstance(root, ServerTarget):
        from .remote.diagnosis import diagnose_server

        return [*diagnosis.diagnose_client(), *diagnose_server(root)]
    from omnigraph.spark.diagnosis import diagnose_java

    uri = root.uri if root is not None else None
    return diagnosis.diagnose_environment(uri, probe=probe, spark_probe=diagnose_java)


def _diagnose_config() -> "EnvironmentDiagnosis":
    """Check that the operator configuration can be read and that all of its profiles are valid."""
    from omnigraph.errors import OmnigraphError
    from omnigraph.maintenance.doctor import EnvironmentDiagnosis

    from .operator_config import load_config
    from .profiles import describe_profile

    try:
        config = load_config()
    except OmnigraphError as error:
        return EnvironmentDiagnosis("configuration", "error", error.message, error.advice)
    problems = [described["error"] for described in map(partial(describe_profile, config), config.profiles)]
    problems = [*config.warnings, *filter(None, problems)]
    if problems:
        return EnvironmentDiagnosis("configuration", "warning", "; ".join(problems), f"correct {config.path}")
    return EnvironmentDiagnosis("configuration", "ok", str(config.path) if config.exists else "no configuration file")


def _is_healthy(diagnoses: "list[EnvironmentDiagnosis]") -> bool:
    return all(diagnosis.outcome != "error" for diagnosis in diagnoses)
