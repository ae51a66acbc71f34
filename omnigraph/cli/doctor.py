"""`omnigraph doctor`: whether this machine and a store can do what is asked of them."""

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
    "--no-probe", is_flag=True, help="Write nothing to the store: its promises stay unknown."
)
@store_option
@shared_options
def doctor(uri: str | None, store: str | None, no_probe: bool) -> None:
    """Look at versions, Java and caches, and at a store if one is named.

    A store is asked whether of two creators of one name one wins, by a small object that is
    removed again, and what time it has. Exit code 1 when something cannot work.
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
