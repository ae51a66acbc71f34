"""Three-way merges, which combine the changes of both sides into one change of the target or conflicts.

A merged graph is validated by `rules`, like any other write. Read first: `merge.py`, `planner.py`
and `sides.py`.
"""
