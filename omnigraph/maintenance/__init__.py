"""Keep a graph healthy: compaction, indexes, retention, check, repair, status, copies.

Never changes what a graph contains: only `repair` publishes rows, and only with confirmation.
Long work runs in an executor that the caller chooses (this process or Spark).
Read first: `check.py`, `optimize.py`, then `retention/`.
"""
