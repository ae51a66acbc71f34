"""Retention: determine which history to keep, and remove the rest while readers and writers are active.

Correctness relies on a handshake between the collector and all processes that may reference old data, never on clocks.
No other code may remove a table file, a log chunk or a schema.

Start with `collect_garbage`, which shows one run from start to finish. Continue with `mark_live` (what is live),
`intent_protection` (what running operations need), `history.delete_queue` (the writers' side of the handshake) and
`collector_fence`.
"""
