"""Maintenance that runs next to writers: after each lost swap it rewrites fewer fragments.

A rewrite of many fragments loses to every update of one of them, and a busy table is never idle.
Owns only how much is tried; it never waits and never blocks a writer.
"""

from collections.abc import Callable

from .plan import Prepare, PublishPlan, WriteTxn

FIRST = 32  # fragments of the second try; every further try halves the number
LEAST = 2

# Stages maintenance of at most that many fragments; None means no limit.
Bite = Callable[[WriteTxn, int | None], PublishPlan | None]


def in_smaller_bites(stage: Bite) -> Prepare:
    """Return a prepare function that stages everything first, and less on every retry."""
    tries = 0

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        nonlocal tries
        limit = None if tries == 0 else max(LEAST, FIRST >> (tries - 1))
        tries += 1
        return stage(txn, limit)

    return prepare
