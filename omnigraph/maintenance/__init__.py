"""Graph maintenance: compaction, indexes, retention, check, repair, status and copies.

Maintenance never changes the contents of a graph, except that `repair` publishes rows if confirmed.
Long-running work runs in an executor that the caller chooses (this process or Spark). Read
`check.py` and `optimize.py` first, then `retention/`.
"""
