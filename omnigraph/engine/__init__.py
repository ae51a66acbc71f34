"""Execute a query against a snapshot, using operators over row ids in a single process.

This file must not import anything, so that commands that only parse text do not load numpy and Arrow.
Read first: `run_query.py` (reads), `writes/mutate.py` (writes), `operators/dispatch.py`.
"""
