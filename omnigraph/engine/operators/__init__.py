"""The operators of a plan, each of which takes and returns tuples of row ids.

Only `fetch.py` turns row ids into values. Operators never write.
Read `dispatch.py` first, then `rows.py` and `scan.py`.
"""
