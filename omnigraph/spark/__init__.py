"""Bulk loads, exports, merges and maintenance on Spark.

Writes follow the same rules as in a single process: executors call the same functions in `storage`, `ingest` and
`rules`. This package makes no data visible; `publish` publishes the staged data once. This is the only package that
imports pyspark. Most modules drive a session, define a Spark data source, or run in Spark tasks. `api` decides whether
Spark is used. Start with `session.py` and `load.py`.
"""
