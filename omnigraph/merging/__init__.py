"""Three-way merges: turn the changes of both sides into one change of the target, or conflicts.

Builds on `rules`, so that a merged graph is validated like any other write. Read `merge.py`,
`planner.py` and `sides.py` first.
"""
