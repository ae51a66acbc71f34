"""Bulk loads, exports and maintenance on Spark, with the same rules and publish as a single write.

Executors call the same functions of `storage`, `ingest` and `rules` as a load in this process.
Nothing here makes data visible: `publish` does that once, with what was staged. This is the only
package that imports pyspark. Read first: `session.py`, then `load.py` and `stage.py`.
"""
