"""Load input that is too large for one request: in parts, into a temporary branch that is merged once.

Nodes are sent before the edges that connect them. With an idempotency key, the name of the temporary branch is derived
from the key and the input, so the commits of an earlier load with the same key are recognized in the history of the
target. Whatever happens, the temporary branch is deleted, and a target that the load creates appears with all data.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

from omnigraph.api.results.receipt import Receipt
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import ClientError, InputError, OmnigraphError
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.values import clock_and_ids

from .answers import Document, read_commit
from .branches import create_branch
from .handle import RemoteHandle
from .load_body import LoadBody, LoadPart
from .loads import LoadSettings, send_load
from .merges import run_merge

_MAX_PART_BYTES = 64 << 20  # a part is kept in memory
_SEARCHED_COMMITS = 4096  # the server searches the same number of commits for a key
_POSITIONS = ("line", "first_input_position", "second_input_position")
_LINE = re.compile(r"\bline (\d+)\b")


def load_in_parts(  # noqa: PLR0913, PLR0917 - the parts of one load
    handle: RemoteHandle,
    body: LoadBody,
    target: str,
    limit: int,
    settings: LoadSettings,
    options: WriteOptions,
    report_progress: Callable[[int], None],
) -> Receipt:
    """Load all parts, and make them visible on the target at the same time."""
    _reject_indivisible_load(settings, limit)
    started = clock_and_ids.monotonic()
    names = handle.exchange.get("branches")["branches"]
    is_new = settings.from_ is not None and target not in names
    key = None if options.idempotency_key is None else _digest_key(options.idempotency_key, target)
    digest = f"{body.digest[:16]}-{settings.mode}"
    if key is not None and not is_new:
        commit = _find_earlier_load(handle, target, key, digest, options)
        if commit is not None:
            return _replay(handle, target, body, commit, settings)
    name = f"load-{clock_and_ids.new_ulid().lower()}" if key is None else f"load-{key}-{digest}-{limit}"
    origin = settings.from_ if is_new else target
    temporary = create_branch(handle.on_branch(target), name, origin, exist_ok=key is not None)
    try:
        receipts = _send_parts(temporary, body, limit, settings, options, report_progress)
        commit_id = _publish(handle, temporary, target, options, is_new=is_new)
    except BaseException:
        with suppress(OmnigraphError):
            handle.exchange.call("DELETE", ("branches", temporary.branch_name), {"force": True})
        raise
    commit = handle.exchange.get("commits", commit_id)
    elapsed = clock_and_ids.monotonic() - started
    return replace(
        _add_receipts(receipts), commit=read_commit(commit), branch=target, branch_created=is_new, elapsed=elapsed
    )


def _reject_indivisible_load(settings: LoadSettings, limit: int) -> None:
    if settings.mode != "overwrite" and not settings.dry_run:
        return
    what = "a dry run" if settings.dry_run else "the mode 'overwrite'"
    raise InputError(
        f"{what} must fit into one request, which the server limits to {limit:,} bytes",
        reason="too large",
        hint="start the server with a larger --max-load-bytes, or run the load where the graph is stored",
    )


def _send_parts(
    temporary: RemoteHandle,
    body: LoadBody,
    limit: int,
    settings: LoadSettings,
    options: WriteOptions,
    report_progress: Callable[[int], None],
) -> list[Receipt]:
    receipts: list[Receipt] = []
    sent_bytes = 0
    parts = body.cut_parts(min(limit, _MAX_PART_BYTES), edges_first=settings.mode == "delete")
    for number, part in enumerate(parts, 1):
        key = None if options.idempotency_key is None else f"{temporary.branch_name}/{number}"
        part_options = WriteOptions(message=options.message, idempotency_key=key)
        part_settings = replace(settings, from_=None)
        try:
            receipts.append(
                send_load(
                    temporary, temporary.branch_name, part.content, len(part.content), part_settings, part_options
                )
            )
        except OmnigraphError as error:
            error.effect = "none"  # the target is unchanged
            if isinstance(error, ClientError):
                _relocate_lines(error, part)
            raise
        sent_bytes += len(part.content)
        report_progress(min(sent_bytes, body.size))
    return receipts


def _publish(handle: RemoteHandle, temporary: RemoteHandle, target: str, options: WriteOptions, *, is_new: bool) -> str:
    """Make the parts visible on the target, and return the id of its new head."""
    if is_new:
        handle.exchange.post("branches", temporary.branch_name, "rename", body={"name": target})
        return handle.on_branch(target).head().id
    body = {"source": temporary.branch_name, "target": target, "message": options.message, "delete_branch": True}
    merged = run_merge(handle, ("branches", "merge"), body, options.if_commit)
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


def _find_earlier_load(
    handle: RemoteHandle, target: str, key: str, digest: str, options: WriteOptions
) -> Document | None:
    """Return the commit that made an earlier load with the same key visible on the target, or None."""
    commits: list[Document] = handle.exchange.get("commits", branch=target, limit=_SEARCHED_COMMITS)["commits"]
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
        message = f"idempotency key '{options.idempotency_key}' was already used for a different request"
        raise InputError(message, reason="key reused", commit_id=newest["graph_commit_id"])
    return newest


def _replay(handle: RemoteHandle, target: str, body: LoadBody, commit: Document, settings: LoadSettings) -> Receipt:
    """Return the receipt of a load that was already completed by an earlier call."""
    receipt = Receipt(read_commit(commit), branch=target, replayed=True)
    if settings.mode not in ("append", "merge"):
        return receipt
    catalog = handle.on_branch(target).schema_ir().catalog
    names: Mapping[str, Counter[str]] = {"node": Counter(), "edge": Counter()}
    for document in body.documents():
        entity_type: Any = resolve_type(catalog, document["edge"] if "edge" in document else document["type"])
        names[entity_type.kind][entity_type.name] += 1
    return replace(receipt, nodes=dict(names["node"]), edges=dict(names["edge"]))


# Line numbers -----------------------------------------------------------------------------------


def _relocate_lines(error: ClientError, part: LoadPart) -> None:
    """Replace line numbers in a part with line numbers in the whole input."""

    def line_number_of(position: Any) -> Any:
        is_known = isinstance(position, int) and 0 < position <= len(part.line_numbers)
        return part.line_numbers[position - 1] if is_known else position

    def relocate(text: str) -> str:
        return _LINE.sub(lambda match: f"line {line_number_of(int(match[1]))}", text)

    error.message = relocate(error.message)
    for name in _POSITIONS:
        if name in error.details:
            error.details[name] = line_number_of(error.details[name])
            setattr(error, name, error.details[name])
    for problem in error.details.get("problems", ()):
        problem["line"] = line_number_of(problem.get("line"))
        problem["reason"] = relocate(str(problem.get("reason", "")))
