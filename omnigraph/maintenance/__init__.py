"""Keep a graph healthy: compaction, indexes, retention, check, repair, status and copies.

Maintenance never changes what a graph contains, except that `repair` publishes rows if confirmed.
Long work runs in an executor that the caller chooses (this process or Spark). Read first:
`check.py`, `optimize.py`, then `retention/`.
"""
