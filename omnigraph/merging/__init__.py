"""Three-way merges, which combine the changes of both sides into a single change to the target, or report conflicts.

A merged graph is validated by `rules`, like any other write. Read `merge.py`, `planner.py` and
`table_merge.py` first.
"""
