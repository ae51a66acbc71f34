"""Three-way merges, which combine both sides' changes into a single change to the target, or report conflicts.

Like any other write, a merge is validated by `rules`. Start with `merge.py`, `planner.py` and `table_merge.py`.
"""
