"""What the verbs of a graph return: results, rows, receipts, diffs and the commit log.

Owns their shapes, text formats, JSON encoding and notebook cards. Nothing here reads storage.
Read first: `result.py`, then `receipt.py`.
"""
