"""The return values of a graph's methods: results, rows, receipts, diffs and the commit log.

This package owns their shapes, text formats, JSON encoding and notebook cards. Nothing here reads
storage. Read first: `result.py`, then `receipt.py`.
"""
