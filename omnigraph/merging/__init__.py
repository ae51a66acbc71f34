"""Three-way merges: what both sides changed becomes one change of the target, or conflicts.

Stands on the rules, so that a merged graph is judged as any other write is.
"""
