"""Graph maintenance: compaction, indexes, retention, check, repair, status and copies.

Maintenance never changes a graph's content, with one exception: if the caller confirms the repair, `repair` publishes
commits whose manifest versions were lost, and rows that external tools appended. Long-running work runs on an executor
that the caller chooses: this process or Spark. Start with `check.py` and `optimize.py`, then read `retention/`.
"""
