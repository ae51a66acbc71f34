"""Maintenance that runs next to writers: after each lost swap it rewrites fewer fragments.

A rewrite of many fragments loses to every update of one of them, and a busy table is never idle.
Owns only how much is tried; it never waits and never blocks a writer.
"""

from collections.abc import Callable

from omnigraph.publish.plan import PreparePlan, PublishPlan
from omnigraph.publish.write_txn import WriteTxn

FIRST_RETRY_FRAGMENTS = 32  # fragments of the second try; every further try halves the number
MIN_RETRY_FRAGMENTS = 2

# Stages maintenance of at most that many fragments; None means no limit.
StageMaintenance = Callable[[WriteTxn, int | None], PublishPlan | None]


def shrink_on_retry(stage: StageMaintenance) -> PreparePlan:
    """Return a prepare function that stages everything first, and less on every retry."""
    attempt_count = 0

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        nonlocal attempt_count
        max_fragments = (
            None if attempt_count == 0 else max(MIN_RETRY_FRAGMENTS, FIRST_RETRY_FRAGMENTS >> (attempt_count - 1))
        )
        attempt_count += 1
        return stage(txn, max_fragments)

    return prepare
