"""Withdraw an operation that was decided but could not be completed.

The owner may merely be suspended and resume later. Each kind of operation is therefore blocked in such a way that the
owner's later attempts fail. An operation that turns out to have been completed is left unchanged.
"""

import logging
from contextlib import suppress

from omnigraph.errors import GraphNotInitialized, StorageError
from omnigraph.history import refs
from omnigraph.history.branch_state import branch_state_of
from omnigraph.publish.branch_lifecycle import CREATE_OPERATIONS, ref_directory
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.store import Store

from . import intent as intents
from .closing_version import publish_closing_version
from .intent import Intent
from .lease import READ_OPERATION
from .long_operations import REFUSED_OPERATION, publish_refusal
from .recovery_failure import judge_failure
from .rename import RENAME, rename_refs

_log = logging.getLogger("omnigraph")


def withdraw_operation(store: Store, intent: Intent) -> bool:
    """Ensure that no process can complete an operation; return True if a process has already completed it.

    Raises an error if the operation cannot be blocked now but a later call may succeed, for example if the store is
    down or the branch is busy.
    """
    if intent.operation == READ_OPERATION or _obtain_verdict(store, intent) != "publish":
        return False
    try:
        with as_storage_errors("unknown"):
            return _block_late_owner(store, intent)
    except Exception as error:
        # A step that fails permanently here would also fail for any process that tries to complete the operation.
        if judge_failure(error) == "later":
            raise
        _log.warning("operation %s was dropped, but its process could not be blocked: %s", intent.id, error)
        return False


def _obtain_verdict(store: Store, intent: Intent) -> str | None:
    """Request the verdict "discard" and return the recorded verdict. An unreadable verdict counts as "publish"."""
    try:
        return intents.decide(store, intent, "discard")
    except StorageError as error:
        if error.kind != "permanent":
            raise
        return "publish"


def _block_late_owner(store: Store, intent: Intent) -> bool:
    if intent.operation in CREATE_OPERATIONS:
        return _block_creation(store, intent)
    if intent.operation == RENAME:
        return _block_rename(store, intent)
    if intent.commit_id is None:  # a newer release wrote the intent, and this release does not support the operation
        return False
    branch_state = branch_state_of(store, intent.branch, intent.branch_ulid)
    logged_commit = publish_refusal(branch_state, intent)
    return logged_commit is not None and logged_commit.operation != REFUSED_OPERATION


def _block_creation(store: Store, intent: Intent) -> bool:
    """Close the manifest and return False, or return True if the branch or tag has already been created."""
    created_name, created_ulid = intent.facts["name"], intent.created_ulid or ""
    try:
        open_ref = refs.find_open_ref(store, created_name, ref_directory(intent))
    except StorageError as error:
        if judge_failure(error) == "later":
            raise
        open_ref = None
    if open_ref is not None and open_ref.ulid == created_ulid:
        return True
    with suppress(GraphNotInitialized):  # the manifest was never created
        publish_closing_version(store, branch_state_of(store, created_name, created_ulid))
    return False


def _block_rename(store: Store, intent: Intent) -> bool:
    """Release the new name and return False, or return True if the branch has already been renamed."""
    old_ref, new_ref = rename_refs(intent)
    if refs.find_highest_number(store, old_ref.name) > old_ref.number:
        return True
    refs.close_name(store, new_ref)
    return False
