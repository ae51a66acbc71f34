"""Insert, update and delete statements: compute the changes that a mutation makes, before they are published.

Statements run on an overlay over the stored rows, and `publish` makes the result visible. Start with `mutate.py`.
"""
