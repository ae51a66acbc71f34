"""Graph maintenance: compaction, indexes, retention, check, repair, status and copies.

Maintenance never changes the contents of a graph, with one exception: with confirmation, `repair` publishes rows that
external tools appended. Long-running work runs on an executor chosen by the caller: this process or Spark. Read
`check.py` and `optimize.py` first, then `retention/`.
"""
