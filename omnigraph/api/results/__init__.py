"""The objects that graph methods return: results, rows, receipts, diffs and the commit log.

This package defines the structure of these objects, and how they appear as text, as JSON and in notebooks. It never
reads storage. Read `result.py` first, then `receipt.py`.
"""
