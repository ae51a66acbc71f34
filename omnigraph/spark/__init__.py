"""Bulk loads, exports and maintenance on Spark, with the same rules and publish as a single write.

Executors call the same functions of `storage`, `ingest` and `rules` as a load in this process.
Nothing here makes data visible: `history` publishes what was staged, once. This is the only package
that imports pyspark. Read `engine.py` and `load.py` first.
"""
