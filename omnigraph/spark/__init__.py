"""Bulk loads, exports, merges and maintenance on Spark, with the same rules and publish step as any other write.

Executors call the same functions in `storage`, `ingest` and `rules` as a load in a single process. This package makes
no data visible; `publish` publishes the staged data once. This is the only package that imports pyspark. Each module
drives a session, defines a Spark data source, or runs in Spark tasks. `api` decides whether Spark is used. Start with
`session.py` and `load.py`.
"""
