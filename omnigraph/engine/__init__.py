"""Execute a query against a snapshot, using operators over row ids in a single process.

This file must not import anything, so that commands that only parse text do not load NumPy and Arrow. Read
`run_query.py` (reads) and `writes/mutate.py` (writes) first, then `operators/dispatch.py`.
"""
