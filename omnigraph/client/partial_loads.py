"""Load input that is too large for one request, by sending it in parts to a temporary branch that is then merged.

Nodes are sent before the edges that connect them, but a deletion sends edges first. With an idempotency key, the name
of the temporary branch is derived from the key and the input. Each commit records the name of the temporary branch, so
a repeated load recognizes the commits of the earlier load in the target's history. The temporary branch is deleted at
the end. If the load creates the target branch, the temporary branch is renamed instead, so the target appears only once
it has all of its data.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

from omnigraph.api.results.receipt import Receipt
from omnigraph.errors import InputError, OmnigraphError
from omnigraph.values import clock_and_ids

from .answers import Document, read_commit, read_load_receipt
from .branches import create_branch
from .handle import RemoteHandle
from .load_counts import count_records
from .load_parts import LoadPart
from .load_pieces import LoadPiece, cut_batches
from .load_requests import LoadSettings, ReportProgress, send_parts
from .loads import find_catalog
from .merges import run_merge

_MAX_BATCH_BYTES = 64 << 20  # a batch is kept in memory
_SEARCHED_COMMITS = 4096  # the server searches the same number of commits for a key


def load_in_parts(
    handle: RemoteHandle,
    parts: Sequence[LoadPart],
    limit: int,
    settings: LoadSettings,
    report_progress: ReportProgress,
) -> Receipt:
    """Load all parts, and make them visible on the target at the same time."""
    _reject_indivisible_load(settings, limit)
    started, target = clock_and_ids.monotonic(), settings.branch
    names = handle.exchange.get("branches")["branches"]
    is_new = settings.from_ is not None and target not in names
    key = None if settings.idempotency_key is None else _digest_key(settings.idempotency_key, target)
    digest = "" if key is None else f"{_digest_parts(parts)}-{settings.mode}"
    if key is not None and not is_new:
        earlier = _find_earlier_load(handle, key, digest, settings)
        if earlier is not None:
            return _replay(handle, parts, earlier, settings)
    name = f"load-{clock_and_ids.new_ulid().lower()}" if key is None else f"load-{key}-{digest}-{limit}"
    origin = settings.from_ if is_new else target
    temporary = create_branch(handle.on_branch(target), name, origin, exist_ok=key is not None)
    try:
        receipts = _send_batches(temporary, parts, limit, settings, report_progress)
        commit_id = _publish(handle, temporary, settings, is_new=is_new)
    except BaseException:
        with suppress(OmnigraphError):
            handle.exchange.call("DELETE", ("branches", temporary.branch_name), {"force": True})
        raise
    has_changed = any(receipt.commit is not None for receipt in receipts)
    commit = read_commit(handle.exchange.get("commits", commit_id)) if has_changed else None
    elapsed = clock_and_ids.monotonic() - started
    return replace(_add_receipts(receipts), commit=commit, branch=target, branch_created=is_new, elapsed=elapsed)


def _reject_indivisible_load(settings: LoadSettings, limit: int) -> None:
    if settings.mode != "overwrite" and not settings.dry_run:
        return
    what = "a dry run" if settings.dry_run else "the mode 'overwrite'"
    raise InputError(
        f"{what} must fit into one request, which the server limits to {limit:,} bytes",
        reason="too large",
        hint="start the server with a larger --max-load-bytes, or run the load where the graph is stored",
    )


def _send_batches(
    temporary: RemoteHandle,
    parts: Sequence[LoadPart],
    limit: int,
    settings: LoadSettings,
    report_progress: ReportProgress,
) -> list[Receipt]:
    receipts: list[Receipt] = []
    sent_bytes = 0
    max_bytes = min(limit, _MAX_BATCH_BYTES)
    catalog, edges_first = temporary.schema_ir().catalog, settings.mode == "delete"
    for number, batch in enumerate(cut_batches(parts, catalog, settings.csv, max_bytes, edges_first=edges_first), 1):
        receipts.append(_send_batch(temporary, batch, number, settings))
        sent_bytes += sum(piece.part.size for piece in batch)
        report_progress(sent_bytes)
    return receipts


def _send_batch(temporary: RemoteHandle, batch: Sequence[LoadPiece], number: int, settings: LoadSettings) -> Receipt:
    """Load a batch into the temporary branch. If it fails, the target is unchanged."""
    own_key = settings.idempotency_key is not None
    key = f"{temporary.branch_name}/{number}" if own_key else clock_and_ids.new_ulid()
    batch_settings = replace(
        settings,
        branch=temporary.branch_name,
        from_=None,
        if_commit=None,
        idempotency_key=key,
        csv=batch[0].csv_options,
    )
    files = [piece.sent_file for piece in batch]
    try:
        reply = send_parts(temporary.exchange, [piece.part for piece in batch], files, batch_settings)
    except OmnigraphError as error:
        error.effect = "none"
        raise
    return read_load_receipt(reply.json(), elapsed=0.0)


def _publish(handle: RemoteHandle, temporary: RemoteHandle, settings: LoadSettings, *, is_new: bool) -> str:
    """Make the parts visible on the target, and return the id of its new head."""
    target = settings.branch
    if is_new:
        handle.exchange.post("branches", temporary.branch_name, "rename", body={"name": target})
        return handle.on_branch(target).head().id
    message = settings.message or "Load in parts"
    body = {"source": temporary.branch_name, "target": target, "message": message, "delete_branch": True}
    merged = run_merge(handle, ("branches", "merge"), body, settings.if_commit)
    if not merged.branch_deleted:
        with suppress(OmnigraphError):
            handle.exchange.call("DELETE", ("branches", temporary.branch_name), {"force": True})
    return merged.source if merged.commit is None else merged.commit.id


def _add_receipts(receipts: list[Receipt]) -> Receipt:
    nodes, edges, missing = Counter[str](), Counter[str](), Counter[str]()
    nulled: dict[str, Counter[str]] = defaultdict(Counter)
    for receipt in receipts:
        nodes.update(receipt.nodes)
        edges.update(receipt.edges)
        missing.update(receipt.missing)
        for type_name, counts in receipt.nulled.items():
            nulled[type_name].update(counts)
    nulled_counts = {type_name: dict(counts) for type_name, counts in nulled.items()}
    return Receipt(None, dict(nodes), dict(edges), missing=dict(missing), nulled=nulled_counts)


# Repeated loads ---------------------------------------------------------------------------------


def _digest_key(idempotency_key: str, target: str) -> str:
    return sha256(f"{target}\0{idempotency_key}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _digest_parts(parts: Sequence[LoadPart]) -> str:
    """Return a digest that distinguishes the input from the input of another load with the same key."""
    digest = sha256()
    for part in parts:
        digest.update(f"{part.file_format}\0{part.type_name or ''}\0{part.size}\0".encode("utf-8", "surrogatepass"))
        for chunk in part.chunks():
            digest.update(chunk)
    return digest.hexdigest()[:16]


def _find_earlier_load(handle: RemoteHandle, key: str, digest: str, settings: LoadSettings) -> Document | None:
    """Return the commit that published an earlier load with the same key on the target, or None."""
    commits: list[Document] = handle.exchange.get("commits", branch=settings.branch, limit=_SEARCHED_COMMITS)["commits"]
    parts = {
        commit["graph_commit_id"]: commit for commit in commits if commit["graph_branch"].startswith(f"load-{key}-")
    }
    reached = (
        commit for commit in commits if commit["graph_commit_id"] in parts or commit["merged_parent_commit_id"] in parts
    )
    newest = next(reached, None)
    if newest is None:
        return None
    if not all(commit["graph_branch"].startswith(f"load-{key}-{digest}-") for commit in parts.values()):
        message = f"idempotency key '{settings.idempotency_key}' was already used for a different request"
        raise InputError(message, reason="key reused", commit_id=newest["graph_commit_id"])
    return newest


def _replay(handle: RemoteHandle, parts: Sequence[LoadPart], commit: Document, settings: LoadSettings) -> Receipt:
    """Return the receipt of a load that was already completed by an earlier call."""
    receipt = Receipt(read_commit(commit), branch=settings.branch, replayed=True)
    if settings.mode not in ("append", "merge"):
        return receipt
    names: Mapping[str, Counter[str]] = {"node": Counter(), "edge": Counter()}
    for entity_type, count in count_records(parts, find_catalog(handle, settings), settings.csv):
        names[entity_type.kind][entity_type.name] += count
    return replace(receipt, nodes=dict(names["node"]), edges=dict(names["edge"]))
