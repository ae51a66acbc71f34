"""Insert, update and delete statements: compute the changes of a mutation before it is published.

Statements run on an overlay of the stored rows, and `publish` makes the result visible.
Read first: `mutate.py`.
"""
