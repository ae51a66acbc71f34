"""`omnigraph doctor`: check whether this machine and a store can run Omnigraph."""

from typing import TYPE_CHECKING

import click

from . import exits, show
from .address import address, store_option, uri_argument
from .options import settings, shared_options

if TYPE_CHECKING:
    from omnigraph.health.doctor import Diagnosis

_MARKS = {"ok": "ok     ", "warning": "warning", "error": "error  "}


@click.command()
@uri_argument
@click.option(
    "--no-probe", is_flag=True, help="Write nothing to the store; its guarantees are not verified"
)
@store_option
@shared_options
def doctor(uri: str | None, store: str | None, no_probe: bool) -> None:
    """Diagnose this machine: versions, Java and caches; and a store if one is given.

    For a store, checks that creating an object is exclusive, using a small object that is removed
    again, and compares its clock. Exits 1 if something cannot work.
    """
    root = address(uri, store) if uri is not None or store is not None else None
    from omnigraph.health.doctor import examine

    found = examine(root.uri if root is not None else None, probe=not no_probe)
    if settings().json:
        show.document({"ok": _well(found), "diagnoses": [one.to_json() for one in found]})
    else:
        for one in found:
            show.result(f"{_MARKS[one.outcome]}  {one.name}: {one.found}")
            if one.hint is not None and one.outcome != "ok":
                show.result(f"         {one.hint}")
    if not _well(found):
        raise click.exceptions.Exit(exits.FAILED)


def _well(found: "list[Diagnosis]") -> bool:
    return all(one.outcome != "error" for one in found)
