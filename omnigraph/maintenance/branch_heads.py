"""Read the newest readable state of every branch and tag.

Faults in refs and manifests are reported as findings. If a state cannot be read, the newest earlier state that can be
read is used instead.
"""

from dataclasses import dataclass

from omnigraph.errors import GraphNotInitialized, OmnigraphError, StorageError
from omnigraph.history import refs
from omnigraph.history.manifest import LoadedManifest, manifest_exists, read_manifest
from omnigraph.history.missing_manifest import find_graph_evidence
from omnigraph.history.refs import Ref
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.storage.table_head import list_attached_versions

from .finding import IntegrityFinding

_TAG_PREFIX = "tag "  # prefix of a tag's label

RESTORE_HINT = "restore the file from a backup, or continue from the newest readable commit"


@dataclass(frozen=True, slots=True)
class RefHead:
    """A branch or tag and its state. `is_newest` is false if only an older state could be read."""

    ref: Ref
    manifest: LoadedManifest
    is_newest: bool = True

    @property
    def label(self) -> str:
        """The branch or tag name, as shown in findings."""
        return ref_label(self.ref)


def ref_label(ref: Ref) -> str:
    """Return a branch's name, or `tag NAME` for a tag."""
    return ref.name if ref.directory == layout.REFS else f"{_TAG_PREFIX}{ref.name}"


def is_tag_label(label: str) -> bool:
    """Return whether a label refers to a tag. Labels are unambiguous because branch names contain no spaces."""
    return label.startswith(_TAG_PREFIX)


def read_heads(store: Store, findings: list[IntegrityFinding]) -> list[RefHead]:
    """Read every branch and tag, and append all faults to `findings`."""
    if not manifest_exists(store) and find_graph_evidence(store) is None:
        raise GraphNotInitialized(f"no graph at {store.root.uri}")
    heads = [_read_head(store, ref, findings) for ref in _list_refs(store, findings)]
    return [head for head in heads if head is not None and not head.manifest.state.head.closed]


def reread_head(store: Store, head: RefHead) -> RefHead | None:
    """Read a head again; return None if the ref was deleted, or the old head if the new one cannot be read."""
    ref = head.ref
    is_current = ref == refs.MAIN_REF or refs.find_highest_number(store, ref.name, ref.directory) == ref.number
    if not is_current:
        return None
    try:
        manifest = read_manifest(store, ref.ulid)
    except OmnigraphError:
        return head
    return None if manifest.state.head.closed else RefHead(ref, manifest)


def _list_refs(store: Store, findings: list[IntegrityFinding]) -> list[Ref]:
    all_refs = [refs.MAIN_REF]
    for ref_directory in (layout.REFS, layout.TAGS):
        for ref_name, ref_number in sorted(refs.list_highest_numbers(store, ref_directory).items()):
            try:
                ref = refs.read_ref(store, ref_name, ref_number, ref_directory) if ref_number % 2 else None
            except StorageError as error:
                ref_path = layout.ref_name(ref_name, ref_number, ref_directory)
                branch_label = ref_label(Ref(ref_name, "", directory=ref_directory))
                hint = error.hint or RESTORE_HINT
                findings.append(IntegrityFinding("ref", error.message, branch=branch_label, name=ref_path, hint=hint))
                continue
            all_refs += [ref] if ref is not None else []
    return all_refs


def _read_head(store: Store, ref: Ref, findings: list[IntegrityFinding]) -> RefHead | None:
    try:
        return RefHead(ref, read_manifest(store, ref.ulid))
    except OmnigraphError as error:
        if refs.find_highest_number(store, ref.name, ref.directory) != ref.number:
            return None  # the branch was deleted after it was listed
        manifest_path = layout.manifest_directory(ref.ulid)
        message = error.message if not isinstance(error, GraphNotInitialized) else "the manifest is missing"
        findings.append(
            IntegrityFinding("manifest", message, branch=ref_label(ref), name=manifest_path, hint=RESTORE_HINT)
        )
    return _read_older_head(store, ref)


def _read_older_head(store: Store, ref: Ref) -> RefHead | None:
    """Return a branch's newest readable state, or None if no state is readable."""
    manifest_path = layout.manifest_directory(ref.ulid)
    for version in reversed(list_attached_versions(store, manifest_path)):
        try:
            return RefHead(ref, read_manifest(store, ref.ulid, version), is_newest=False)
        except OmnigraphError:
            continue
    return None
