"""Findings about lost names: missing or damaged ref objects, and manifests that no ref points to.

This module defines the messages. `publish.unnamed_manifests` determines which manifests have lost their names.
"""

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.errors import StorageError
from omnigraph.history import refs
from omnigraph.history.refs import Ref
from omnigraph.publish.unnamed_manifests import UnnamedManifest, find_manifests_without_ref
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .branch_heads import RESTORE_HINT, RefHead
from .finding import FindingSeverity, IntegrityFinding

_RESTORE_HINT = "run `omnigraph repair --confirm` to restore the name; until then, cleanup keeps the data"
_CHOOSE_NAME_HINT = (
    "run `omnigraph repair --confirm --restore {ulid} --name NAME` to restore the branch or tag, or"
    " `omnigraph repair --confirm --drop {ulid}` to drop it; until then, cleanup keeps the data"
)
_CLOSE_HINT = "run `omnigraph repair --confirm` to delete the branch or tag again; until then, cleanup keeps the data"


def find_unnamed_manifests(store: Store) -> list[UnnamedManifest]:
    """Return the manifests that have lost their names, or an empty list if operation records are unreadable.

    If a manifest's ref object is damaged, `reason` is the path of that object.
    """
    try:
        manifests, ref_names = find_manifests_without_ref(store)
    except StorageError:
        return []  # unreadable records are reported elsewhere
    damaged_paths: dict[tuple[str | None, str | None], str]
    damaged_paths = {
        (refs.ref_kind_of(damaged_ref.ref_directory), damaged_ref.name): damaged_ref.object_name
        for damaged_ref in ref_names.damaged_refs
    }
    return [
        replace(manifest, reason=damaged_paths.get((manifest.kind, manifest.name), manifest.reason))
        for manifest in manifests
        if manifest.status != "never_named"
    ]


def unnamed_heads(manifests: list[UnnamedManifest]) -> list[RefHead]:
    """Convert the manifests to heads, so that the check covers everything that the manifests reference."""
    directories_by_kind = {"tag": layout.TAGS}
    return [
        RefHead(
            Ref(
                manifest.name or manifest.ulid,
                manifest.ulid,
                directory=directories_by_kind.get(manifest.kind or "", layout.REFS),
            ),
            loaded_manifest,
        )
        for manifest in manifests
        if (loaded_manifest := manifest.manifest) is not None
    ]


def check_unnamed(manifests: list[UnnamedManifest]) -> Iterator[IntegrityFinding]:
    """Yield one finding per manifest that has lost its name."""
    for manifest in manifests:
        if manifest.status == "unreadable":
            reason = f"no ref object refers to this manifest, and {manifest.reason}"
            yield IntegrityFinding("manifest", reason, name=manifest.directory, hint=RESTORE_HINT)
            continue
        severity: FindingSeverity = "warning" if manifest.status == "unknown" else "error"
        hint = {"closing_lost": _CLOSE_HINT}.get(manifest.status, _RESTORE_HINT if manifest.name else _CHOOSE_NAME_HINT)
        yield IntegrityFinding(
            "ref",
            _describe_unnamed(manifest),
            severity,
            branch=manifest.label,
            name=manifest.reason or manifest.directory,
            hint=hint.format(ulid=manifest.ulid),
        )


def _describe_unnamed(manifest: UnnamedManifest) -> str:
    subject = f"{manifest.kind or 'branch or tag'}{f' {manifest.name!r}' if manifest.name else ''}"
    location = f"{manifest.directory}, head commit {manifest.commit_id}"
    if manifest.status == "closing_lost":
        return f"{subject} was deleted, and the manifest version that marks it as deleted is missing ({location})"
    if manifest.status == "unknown":
        return (
            f"no ref object refers to this {subject} ({location}): either its ref object was lost,"
            " or an older release was interrupted while it created the branch or tag"
        )
    return f"the ref object for {subject} is {'damaged' if manifest.reason else 'missing'} ({location})"
