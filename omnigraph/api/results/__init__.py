"""The objects returned by a graph's methods: results, rows, receipts, diffs and the commit log.

This package defines the structure, text formats, JSON encoding and notebook cards of these values. It never reads
storage. Read `result.py` first, then `receipt.py`.
"""
