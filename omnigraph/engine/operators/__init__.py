"""Plan operators, each of which accepts and returns tuples of row ids.

Only `fetch.py` turns row ids into values. Operators never write. Start with `dispatch.py`, then read `rows.py` and
`scan.py`.
"""
