"""Retry maintenance while writers are active, rewriting fewer fragments after each lost swap.

Rewriting many fragments conflicts with an update to any of these fragments, and a busy table is updated all the time.
This module only decides how many fragments to rewrite. It never waits and never blocks a writer.
"""

from collections.abc import Callable

from omnigraph.publish.write_plan import PreparePlan, PublishPlan
from omnigraph.publish.write_txn import WriteTxn

FIRST_RETRY_FRAGMENTS = 32  # number of fragments to rewrite on the second attempt; halved on each further attempt
MIN_RETRY_FRAGMENTS = 2

# A function that stages maintenance for at most the given number of fragments; None means no limit.
StageMaintenance = Callable[[WriteTxn, int | None], PublishPlan | None]


def shrink_on_retry(stage: StageMaintenance) -> PreparePlan:
    """Return a prepare function that stages all fragments on the first attempt, and fewer on every retry."""
    attempt_count = 0

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        nonlocal attempt_count
        max_fragments = (
            None if attempt_count == 0 else max(MIN_RETRY_FRAGMENTS, FIRST_RETRY_FRAGMENTS >> (attempt_count - 1))
        )
        attempt_count += 1
        return stage(txn, max_fragments)

    return prepare
