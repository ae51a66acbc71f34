"""Maintenance beside writers: what loses its swap takes a smaller bite the next time.

A rewrite of many fragments loses to every update of one of them, and a busy table is never quiet.
Owns only how much is tried; it never waits, and never holds a writer up.
"""

from collections.abc import Callable

from .plan import Prepare, PublishPlan, WriteTxn

FIRST = 32  # fragments of the second try; each further one halves it
LEAST = 2

# Stages maintenance of at most so many fragments; None is no limit.
Bite = Callable[[WriteTxn, int | None], PublishPlan | None]


def in_smaller_bites(stage: Bite) -> Prepare:
    """A preparation that asks for all at first, and for less each time it must prepare again."""
    tries = 0

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        nonlocal tries
        limit = None if tries == 0 else max(LEAST, FIRST >> (tries - 1))
        tries += 1
        return stage(txn, limit)

    return prepare
