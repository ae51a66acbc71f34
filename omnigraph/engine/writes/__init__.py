"""Insert, update and delete statements: compute a mutation's changes before they are published.

Statements run on an overlay of the stored rows, and `publish` makes the result visible. Read `mutate.py` first.
"""
