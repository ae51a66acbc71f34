"""Retention: which history is kept, and how the rest is removed alongside live readers and writers.

Correctness depends on a handshake between the collector and everything that may reference old data,
never on clocks. No other code may remove a table file, a log chunk or a schema.

Read `collect` first: it shows one run from start to end. Continue with `roots` (what is live),
`protect` (what running operations need), `delete_queue` (the writers' side of the handshake) and
`fence`.
"""
