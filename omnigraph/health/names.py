"""Findings about lost names: missing or damaged ref objects, manifests that no ref names.

Owns the texts; `history.unnamed` decides which manifests lost their names.
"""

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.errors import StorageError
from omnigraph.history import refs
from omnigraph.history.refs import Ref
from omnigraph.history.unnamed import Unnamed, find_unnamed
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .finding import Finding, Severity
from .heads import RESTORE, Head

_RESTORE = "run `omnigraph repair --confirm` to restore it; until then cleanup keeps its data"
_NAME_IT = (
    "run `omnigraph repair --confirm --restore {ulid} --name NAME` to restore it, or with"
    " `--drop {ulid}` to drop it; until then cleanup keeps its data"
)
_CLOSE = "run `omnigraph repair --confirm` to close it again; until then cleanup keeps its data"


def unnamed_manifests(store: Store) -> list[Unnamed]:
    """Return manifests that lost their names; none while records of operations are unreadable.

    A manifest whose ref object is damaged has the path of that object as its `reason`.
    """
    try:
        found, known = find_unnamed(store)
    except StorageError:
        return []  # unreadable records are reported elsewhere
    paths: dict[tuple[str | None, str | None], str]
    paths = {(refs.kind_of(ref.place), ref.name): ref.path for ref in known.damaged}
    return [
        replace(one, reason=paths.get((one.kind, one.name), one.reason))
        for one in found
        if one.status != "never_named"
    ]


def unnamed_heads(unnamed: list[Unnamed]) -> list[Head]:
    """Return the manifests as heads, so that everything they reference is checked, too."""
    places = {"tag": layout.TAGS}
    return [
        Head(Ref(one.name or one.ulid, one.ulid, place=places.get(one.kind or "", layout.REFS)), o)
        for one in unnamed
        if (o := one.opened) is not None
    ]


def check_unnamed(unnamed: list[Unnamed]) -> Iterator[Finding]:
    """Return one finding per manifest that lost its name."""
    for one in unnamed:
        if one.status == "unreadable":
            reason = f"no ref object names it, and {one.reason}"
            yield Finding("manifest", reason, name=one.directory, hint=RESTORE)
            continue
        severity: Severity = "warning" if one.status == "unknown" else "error"
        hint = {"closing_lost": _CLOSE}.get(one.status, _RESTORE if one.name else _NAME_IT)
        yield Finding(
            "ref",
            _reason(one),
            severity,
            branch=one.label,
            name=one.reason or one.directory,
            hint=hint.format(ulid=one.ulid),
        )


def _reason(one: Unnamed) -> str:
    what = f"{one.kind or 'branch or tag'}{f' {one.name!r}' if one.name else ''}"
    at = f"{one.directory}, head commit {one.commit_id}"
    if one.status == "closing_lost":
        return f"{what} was deleted, and the version that closed it is missing ({at})"
    if one.status == "unknown":
        return (
            f"no ref object names this {what} ({at}): either its ref object was lost, or its"
            " creation by an older release was interrupted"
        )
    return f"the ref object of {what} is {'damaged' if one.reason else 'missing'} ({at})"
