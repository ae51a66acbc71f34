"""Bulk data in and out, on Spark: the same rules and the same publish as for a single row.

Executors call the functions of `storage`, `ingest` and `rules` that a load in this process calls.
Nothing here makes anything visible: `history` publishes what was staged, once.
"""
