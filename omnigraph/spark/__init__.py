"""Bulk loads, exports, merges and maintenance on Spark, with the same rules and publish step as any other write.

Executors call the same functions of `storage`, `ingest` and `rules` that a load in a single process calls. This package
makes no data visible; `publish` publishes the staged data once. This is the only package that imports pyspark. Each
module in this package drives a session, defines a Spark data source, or runs in Spark tasks. `api` decides whether
Spark is used. Read `session.py` and `load.py` first.
"""
