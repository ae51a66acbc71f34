"""Insert, update and delete statements: what a mutation changes, before it is published.

Statements run on an overlay of the stored rows; `publish` makes the result visible.
Read first: `mutate.py`.
"""
