"""The public change feed: streams of commits, pages for polling, and baselines.

This package defines the cursors that a consumer stores, and the JSON format of changes. The `history` package compares
table versions. Read `feed.py` first.
"""
