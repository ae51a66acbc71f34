"""The operators of a plan, each of which takes and returns rows of row ids.

Only `fetch.py` turns row ids into values. Operators never write.
Read first: `dispatch.py`, then `rows.py` and `scan.py`.
"""
