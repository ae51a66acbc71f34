"""Bulk loads, exports and maintenance on Spark, with the same rules and the same publish step as a single write.

Executors call the same functions of `storage`, `ingest` and `rules` as a load in this process.
This package makes no data visible; `publish` publishes the staged data once. This is the only
package that imports pyspark. Each module in this package drives a session, defines a Spark data
source, or runs in Spark tasks. `api` decides whether Spark is used. Read `session.py` and `load.py`
first.
"""
